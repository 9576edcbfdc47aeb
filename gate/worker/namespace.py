"""numpy or torch, whichever an array is of: what both write alike is written once here.

A reference in torch is computed, and outputs are compared with it, where its tensors are: on the GPU
if there is one, where comparing 32 Mi elements takes milliseconds instead of seconds.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from .arrays import to_float64
from .languages import Tensor


def is_tensor(value: Any) -> bool:
    """Whether a value is torch's."""
    return type(value).__module__.partition(".")[0] == "torch"


def namespace_of(array: Any) -> Any:
    """The module with the functions for this array, as the array API standard has it."""
    return sys.modules["torch"] if is_tensor(array) else np


def float64(array: Any) -> Any:
    """The values in float64, where the array is."""
    return array.double() if is_tensor(array) else array.astype(np.float64)


def elements(array: Any) -> Any:
    """Its elements in order, in one dimension."""
    return array.reshape(-1) if is_tensor(array) else np.ascontiguousarray(array).reshape(-1)


def size_of(array: Any) -> int:
    """How many elements it has."""
    return int(array.numel()) if is_tensor(array) else int(array.size)


def float64_beside(tensor: Tensor, like: Any) -> Any:
    """A tensor's values in float64, where `like` is."""
    if not is_tensor(like):
        return to_float64(tensor)
    torch = namespace_of(like)
    host = torch.from_numpy(np.ascontiguousarray(tensor.array))
    return host.view(getattr(torch, tensor.dtype)).to(like.device).double()


def give_back_device_memory() -> None:
    """What torch keeps of a GPU after use goes to the processes of kernels.

    A reference in float64 may have taken tens of GiB.
    """
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_initialized():
        torch.cuda.empty_cache()
