"""Mechanical transforms of Triton kernels, one file each."""

from __future__ import annotations

from collections.abc import Mapping

from library.transforms import Transform
from library.transforms.triton.descriptors import descriptors
from library.transforms.triton.dot_accumulate import dot_accumulate
from library.transforms.triton.even_k import even_k
from library.transforms.triton.eviction import eviction_hints
from library.transforms.triton.grouped_order import grouped_order
from library.transforms.triton.launch_options import gemm_tile, launch_options
from library.transforms.triton.online_softmax import online_softmax
from library.transforms.triton.persistent import persistent_grid
from library.transforms.triton.row_alignment import row_alignment
from library.transforms.triton.whole_row import whole_row

TRANSFORMS: Mapping[str, Transform] = {
    "triton.descriptors": descriptors,
    "triton.dot-accumulate": dot_accumulate,
    "triton.even-k": even_k,
    "triton.eviction-hints": eviction_hints,
    "triton.gemm-tile": gemm_tile,
    "triton.grouped-order": grouped_order,
    "triton.launch-options": launch_options,
    "triton.online-softmax": online_softmax,
    "triton.persistent-grid": persistent_grid,
    "triton.row-alignment": row_alignment,
    "triton.whole-row": whole_row,
}
