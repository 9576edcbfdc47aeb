"""Arrays as they cross processes, to and from torch."""

from __future__ import annotations

import torch

from .languages import Tensor

_CARRIERS = {1: torch.uint8, 2: torch.uint16}
"""Item size → dtype whose bits carry what numpy has no dtype for."""


def to_torch(tensor: Tensor, device: str) -> torch.Tensor:
    """A tensor with the array's strides, in fresh storage on `device`."""
    carried = torch.from_numpy(tensor.array)
    placed = torch.empty_strided(
        carried.shape, carried.stride(), dtype=carried.dtype, device=device
    )
    placed.copy_(carried)
    return placed.view(getattr(torch, tensor.dtype))


def from_torch(value: torch.Tensor) -> Tensor:
    """The bits of a tensor, on the host and contiguous.

    Raises TypeError for anything but a plain tensor: a subclass could compute its values only
    when they are read.
    """
    if type(value) not in (torch.Tensor, torch.nn.Parameter):
        raise TypeError(f"expected a torch.Tensor, got {type(value).__qualname__}")
    host = value.detach().resolve_conj().resolve_neg().cpu().contiguous()
    if host.dtype == torch.bfloat16 or "float8" in str(host.dtype):
        return Tensor(dtype_name(value), host.view(_CARRIERS[host.element_size()]).numpy())
    return Tensor(dtype_name(value), host.numpy())


def dtype_name(value: torch.Tensor) -> str:
    """`float32`, `bfloat16`, …"""
    return str(value.dtype).removeprefix("torch.")


def same_bits(left: torch.Tensor, right: torch.Tensor) -> bool:
    """Whether two tensors of one shape, dtype and device hold the same bytes; NaN is no exception."""
    return bool(torch.equal(_bytes(left), _bytes(right)))


def _bytes(value: torch.Tensor) -> torch.Tensor:
    return value.contiguous().reshape(-1).view(torch.uint8)
