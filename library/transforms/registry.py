"""Every mechanical transform by the name cards give it, `<language>.<what it does>`."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from library.transforms import Transform
from library.transforms.opencl import TRANSFORMS as OPENCL
from library.transforms.triton import TRANSFORMS as TRITON

TRANSFORMS: Mapping[str, Transform] = MappingProxyType({**OPENCL, **TRITON})
