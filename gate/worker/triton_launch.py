"""Record the launches a wrapper makes: what was compiled, and what each argument was."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from math import gcd
from typing import Any

import torch

from .languages import LaunchFailed
from .torch_tensors import dtype_name

_ALIGNMENT_CAP_BYTES = 4096
WARP_THREADS = 32


@dataclass(frozen=True, slots=True)
class Argument:
    """One argument of one launch. Holds no tensor, so that recording keeps no memory alive."""

    kind: str
    """`pointer`, `scalar` or `constexpr`, as gate.values.trace.ArgumentTrace."""
    dtype: str
    value: int | float | bool | str | None = None
    pointer: int = 0
    extent_bytes: int = 0
    """From the pointer to the end of the last element that shape and strides reach."""
    shape: tuple[int, ...] = ()
    strides: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Launch:
    """One launch of one jit function."""

    function: object
    """The jit function itself, undecorated by autotuners and heuristics."""
    name: str
    grid: tuple[int, ...]
    arguments: Mapping[str, Argument]
    options: Mapping[str, int | str] = field(default_factory=dict)
    """`num_warps`, `num_stages`, …"""
    compiled: Any = None
    """Triton's CompiledKernel; None when the launch was interpreted."""


def jit_function(entry: object) -> Any:
    """The jit function beneath autotuners, heuristics and other launchers stacked on it."""
    from triton.runtime.interpreter import InterpretedFunction
    from triton.runtime.jit import JITFunction

    while not isinstance(entry, (JITFunction, InterpretedFunction)):
        entry = getattr(entry, "fn", None)
        if entry is None:
            return None
    return entry


@contextmanager
def recording_compiled(launches: list[Launch]) -> Iterator[None]:
    """Inside, each launch on the device is added to `launches`.

    Every launcher Triton has asks the compiled kernel for its launch metadata first, with the grid
    and the bound arguments. The question is answered as before.
    """
    from triton.compiler.compiler import CompiledKernel

    original = CompiledKernel.launch_metadata

    def launch_metadata(self: Any, grid: Any, stream: Any, *args: Any) -> Any:
        function = getattr(self.src, "fn", None)
        if function is None:  # built from IR text: it has no parameter names
            return original(self, grid, stream, *args)
        bound = dict(zip(function.arg_names, args, strict=False))
        constexprs = {function.arg_names[index] for index in function.constexprs}
        launches.append(
            Launch(
                function=function,
                name=function.__name__,
                grid=_grid(grid),
                arguments=describe_arguments(bound, constexprs),
                options=options_of(self.metadata._asdict()),
                compiled=self,
            )
        )
        return original(self, grid, stream, *args)

    CompiledKernel.launch_metadata = launch_metadata
    try:
        yield
    finally:
        CompiledKernel.launch_metadata = original


@contextmanager
def noting_refusals(refusals: list[Exception]) -> Iterator[None]:
    """Inside, what Triton raises before it launches is added to `refusals`, and raised as before.

    A launch that does not fit the kernel's parameters, source that does not compile, a block that
    needs more shared memory than there is: all come from one call, as do errors of the device.
    Raises LaunchFailed for arguments that the kernel does not have.
    """
    from triton.runtime.jit import JITFunction

    original = JITFunction.run

    def run(self: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            return original(self, *args, **kwargs)
        except Exception as error:
            if isinstance(error, TypeError) and "dynamic_func()" in str(error):
                # Triton binds arguments in a function it generates under this name.
                said = str(error).replace("dynamic_func()", self.fn.__name__)
                raise LaunchFailed(said) from None
            if "[CUDA]" not in str(error) and "CUDA error" not in str(error):
                refusals.append(error)
            raise

    JITFunction.run = run
    try:
        yield
    finally:
        JITFunction.run = original


def describe_arguments(bound: Mapping[str, object], constexprs: set[str]) -> dict[str, Argument]:
    """Arguments by parameter name, in order."""
    return {name: _describe(value, name in constexprs) for name, value in bound.items()}


def options_of(metadata: Mapping[str, object]) -> dict[str, int | str]:
    """The options that decide code generation, from compile metadata or launch keywords."""
    names = ("num_warps", "num_stages", "num_ctas", "maxnreg")
    return {name: value for name in names if isinstance(value := metadata.get(name), int)}


def trace_fields(axes: Mapping[str, int], launches: list[Launch]) -> dict[str, object]:
    """The first of an entry's launches as the fields of gate.values.trace.LaunchTrace.

    `options` also has `launches`, how many there were.
    """
    first = launches[0]
    return {
        "axes": dict(axes),
        "kernel": first.name,
        "grid": list(first.grid),
        "block": [int(first.options.get("num_warps", 4)) * WARP_THREADS],
        "options": {**first.options, "launches": len(launches)},
        "arguments": {
            name: {
                "kind": argument.kind,
                "dtype": argument.dtype,
                "value": argument.value,
                "alignment_bytes": _alignment_bytes(argument),
                "shape": list(argument.shape),
                "strides": list(argument.strides),
                "overlaps": _overlaps(name, first.arguments),
            }
            for name, argument in first.arguments.items()
        },
    }


def _describe(value: object, is_constexpr: bool) -> Argument:
    value = getattr(value, "value", value) if type(value).__name__ == "constexpr" else value
    if is_constexpr or value is None or isinstance(value, str) or callable(value):
        plain = value if isinstance(value, (bool, int, float, str, type(None))) else _label(value)
        return Argument("constexpr", type(value).__name__, plain)
    base = getattr(value, "base", None)
    if isinstance(value, torch.Tensor):
        return _pointer(value, dtype_name(value), value.shape, value.stride())
    if isinstance(base, torch.Tensor) and hasattr(value, "block_shape"):  # a TensorDescriptor
        return _pointer(base, dtype_name(base), value.shape, value.strides)  # type: ignore[attr-defined]
    if isinstance(base, torch.Tensor):  # reinterpreted: its dtype is Triton's
        return _pointer(base, str(value.dtype), base.shape, base.stride())  # type: ignore[attr-defined]
    if isinstance(value, bool):
        return Argument("scalar", "bool", value)
    if isinstance(value, int):
        return Argument("scalar", "int32" if -(2**31) <= value < 2**31 else "int64", value)
    if isinstance(value, float):
        return Argument("scalar", "float32", value)
    return Argument("scalar", type(value).__name__, str(value))


def _pointer(tensor: torch.Tensor, dtype: str, shape: Any, strides: Any) -> Argument:
    extents = tuple(int(extent) for extent in shape)
    steps = tuple(int(step) for step in strides)
    reach = sum((extent - 1) * step for extent, step in zip(extents, steps, strict=True)) + 1
    length = 0 if 0 in extents else reach * tensor.element_size()
    return Argument("pointer", dtype, None, tensor.data_ptr(), length, extents, steps)


def _label(value: object) -> str:
    return str(getattr(value, "__name__", value))


def _grid(grid: Any) -> tuple[int, ...]:
    return tuple(int(extent) for extent in grid)


def _alignment_bytes(argument: Argument) -> int | None:
    if argument.kind != "pointer":
        return None
    return gcd(argument.pointer, _ALIGNMENT_CAP_BYTES)


def _overlaps(name: str, arguments: Mapping[str, Argument]) -> list[str]:
    own = arguments[name]
    return [
        other
        for other, argument in arguments.items()
        if other != name
        and own.extent_bytes
        and argument.extent_bytes
        and own.pointer < argument.pointer + argument.extent_bytes
        and argument.pointer < own.pointer + own.extent_bytes
    ]
