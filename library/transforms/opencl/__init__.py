"""Mechanical transforms of OpenCL kernels, by the name a card's carrier gives."""

from __future__ import annotations

from collections.abc import Mapping

from library.transforms import Transform
from library.transforms.opencl.coarsen import coarsen
from library.transforms.opencl.native_math import native_math
from library.transforms.opencl.restrict import restrict
from library.transforms.opencl.stage_local import stage_local
from library.transforms.opencl.unit_stride import unit_stride
from library.transforms.opencl.unroll import unroll
from library.transforms.opencl.vector_columns import vector_columns
from library.transforms.opencl.vector_row import vector_row

TRANSFORMS: Mapping[str, Transform] = {
    "opencl.coarsen": coarsen,
    "opencl.native_math": native_math,
    "opencl.restrict": restrict,
    "opencl.stage_local": stage_local,
    "opencl.unit_stride": unit_stride,
    "opencl.unroll": unroll,
    "opencl.vector_columns": vector_columns,
    "opencl.vector_row": vector_row,
}
