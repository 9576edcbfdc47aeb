"""Values of a workload file (numpy or torch) as tensors that cross processes, and back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from .arrays import CARRIERS, is_float, to_float64
from .distributions import redraw
from .languages import Input, Tensor, TensorSpec
from .namespace import is_tensor, namespace_of
from .problems import WorkloadProblem


def to_input(name: str, value: Any, source: str = "make_inputs") -> Input:
    """An array, torch tensor or number as an input. Raises WorkloadProblem for anything else."""
    if isinstance(value, (bool, int, float)):
        return value
    if isinstance(value, np.generic):
        number: bool | int | float = value.item()
        return number
    if isinstance(value, np.ndarray) and value.dtype.kind in "fiub":
        forward = value if min(value.strides, default=0) >= 0 else value.copy()
        return Tensor(forward.dtype.name, forward)
    if is_tensor(value):
        return _from_torch(value)
    raise WorkloadProblem(
        f"{source}: {name}: expected an array, a tensor or a number, got {type(value).__name__} "
        f"{getattr(value, 'dtype', '')}".rstrip()
    )


def to_output(value: Any) -> Tensor:
    """A reference's output as a tensor on the host."""
    output = to_input("output", value, "the reference")
    return output if isinstance(output, Tensor) else Tensor("float64", np.asarray(output))


def spec_of(value: Any) -> TensorSpec:
    """Dtype and shape of a reference's output."""
    if is_tensor(value):
        return TensorSpec(str(value.dtype).removeprefix("torch."), tuple(value.shape))
    output = to_output(value)
    return TensorSpec(output.dtype, output.array.shape)


def exact(value: Any) -> Any:
    """An output to compare with: floats in float64 where they are, what must be equal on the host."""
    if is_tensor(value) and value.is_floating_point():
        return value.detach().double()
    output = to_output(value)
    return to_float64(output) if is_float(output.dtype) else output.array


def _from_torch(value: Any) -> Tensor:
    dtype = str(value.dtype).removeprefix("torch.")
    host = value.detach().cpu()
    if dtype in CARRIERS:
        import torch

        host = host.view(torch.uint16 if host.element_size() == 2 else torch.uint8)
    return Tensor(dtype, host.numpy())


def widened(value: Any) -> Any:
    """A private copy for the reference, floats in float64."""
    if isinstance(value, np.ndarray):
        return value.astype(np.float64) if value.dtype.kind == "f" else value.copy()
    if is_tensor(value):
        return value.double() if value.is_floating_point() else value.clone()
    return value


def copied(value: Any) -> Any:
    """A private copy, as it is."""
    if is_tensor(value):
        return value.clone()
    return np.copy(value) if isinstance(value, np.ndarray) else value


def redrawn(made: Mapping[str, Any], distribution: str, seed: int) -> dict[str, Any] | None:
    """Inputs under another distribution; None if there is no floating input to redraw."""
    if distribution == "normal":
        return dict(made)
    inputs: dict[str, Any] = {}
    changed = False
    for index, (name, value) in enumerate(made.items()):
        if _is_floating(value):
            inputs[name] = _like(value, redraw(exact(value), distribution, seed + index))
            changed = True
        else:
            inputs[name] = value
    return inputs if changed else None


def _is_floating(value: Any) -> bool:
    if is_tensor(value):
        return bool(value.is_floating_point())
    return isinstance(value, np.ndarray) and value.dtype.kind == "f"


def _like(value: Any, new: Any) -> Any:
    """`new` in the type, dtype, strides and device of `value`."""
    if isinstance(value, np.ndarray):
        with np.errstate(over="ignore"):
            made = np.empty_like(value)
            made[...] = new
        return made
    return namespace_of(value).empty_like(value).copy_(new)


def in_form_of(tensor: Tensor, like: Any) -> Any:
    """A kernel's output as the reference would have returned it, for `check_outputs`."""
    if isinstance(like, (np.ndarray, np.generic)):
        return tensor.array
    import torch

    host = torch.from_numpy(np.ascontiguousarray(tensor.array))
    return host.view(getattr(torch, tensor.dtype)).to(like.device)
