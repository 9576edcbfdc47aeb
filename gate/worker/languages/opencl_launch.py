"""The dict a `launch(axes)` function returns, checked, and parameters bound to values by name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..workload_module import execute
from . import Case, LaunchFailed, Source, Tensor

KEYS = ("global", "local", "options", "arguments", "local_memory")

SCALARS = {
    "char": "int8",
    "uchar": "uint8",
    "unsigned char": "uint8",
    "short": "int16",
    "ushort": "uint16",
    "unsigned short": "uint16",
    "int": "int32",
    "uint": "uint32",
    "unsigned int": "uint32",
    "long": "int64",
    "ulong": "uint64",
    "unsigned long": "uint64",
    "half": "float16",
    "float": "float32",
    "double": "float64",
}
"""OpenCL C scalar type → numpy dtype (OpenCL C specification, table of built-in scalars)."""


@dataclass(frozen=True, slots=True)
class NdRange:
    """How a kernel is called at one shape."""

    global_size: tuple[int, ...]
    local_size: tuple[int, ...] | None
    """None: the driver chooses."""
    options: str
    arguments: tuple[str, ...] | None
    """Names to bind in order; None: the kernel's own parameter names."""
    local_memory: Mapping[str, int] = field(default_factory=dict)
    """Bytes for `__local` pointer parameters, by name."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """A kernel parameter as clGetKernelArgInfo tells it."""

    name: str
    type_name: str
    space: str
    """`global`, `constant`, `local` or `private`; a pointer unless private."""


def launch_at(source: Source, axes: Mapping[str, int]) -> NdRange:
    """Call the launch function of the source's own bytes. Raises LaunchFailed."""
    where = f"{source.launch_path}: {source.launch_symbol}"
    path = source.root / source.launch_path
    try:
        data = source.locate(source.launch_path).read_bytes()
        function = getattr(execute(path, data, source.root), source.launch_symbol)
        answer = function(dict(axes))
    except Exception as error:
        raise LaunchFailed(f"{where}({dict(axes)}): {type(error).__name__}: {error}") from error
    return read_launch(answer, where)


def read_launch(answer: object, where: str) -> NdRange:
    """The launch that a returned dict describes. Raises LaunchFailed with key, expected and got."""
    if not isinstance(answer, Mapping):
        raise LaunchFailed(f"{where}: expected a dict, got {type(answer).__name__}")
    unknown = sorted(str(key) for key in set(answer) - set(KEYS))
    if unknown:
        raise LaunchFailed(f"{where}: unknown key {unknown[0]!r}; there are {', '.join(KEYS)}")
    if "global" not in answer:
        raise LaunchFailed(f'{where}: expected "global", a tuple of one to three integers')
    global_size = _sizes(answer["global"], "global", where)
    local = answer.get("local")
    local_size = None if local is None else _sizes(local, "local", where)
    if local_size is not None and len(local_size) != len(global_size):
        raise LaunchFailed(
            f'{where}: "local" {local_size} and "global" {global_size} differ in rank'
        )
    if local_size is not None and any(n % m for n, m in zip(global_size, local_size, strict=True)):
        raise LaunchFailed(
            f'{where}: "global" {global_size} is not a multiple of "local" {local_size}'
        )
    options, arguments = answer.get("options", ""), answer.get("arguments")
    if not isinstance(options, str):
        raise LaunchFailed(f'{where}: "options": expected a string, got {options!r}')
    if arguments is not None and not all(isinstance(name, str) for name in arguments):
        raise LaunchFailed(f'{where}: "arguments": expected names, got {arguments!r}')
    return NdRange(
        global_size,
        local_size,
        options,
        None if arguments is None else tuple(arguments),
        dict(answer.get("local_memory", {})),
    )


def _sizes(value: Any, key: str, where: str) -> tuple[int, ...]:
    sizes = tuple(value) if isinstance(value, Sequence) else (value,)
    if not 1 <= len(sizes) <= 3 or not all(
        isinstance(n, (int, np.integer)) and not isinstance(n, bool) and n >= 1 for n in sizes
    ):
        raise LaunchFailed(f'{where}: "{key}": expected 1 to 3 positive integers, got {value!r}')
    return tuple(int(n) for n in sizes)


def scalar(parameter: Parameter, name: str, case: Case) -> np.generic:
    """An input or axis of that name in the parameter's type. Raises LaunchFailed."""
    value: object = case.inputs.get(name, case.axes.get(name))
    if value is None or isinstance(value, Tensor):
        raise unbindable(parameter, name, case)
    dtype = SCALARS.get(parameter.type_name)
    if dtype is None:
        raise LaunchFailed(
            f"parameter {parameter.name}: no scalar type {parameter.type_name}; "
            f"the gate binds {', '.join(sorted(SCALARS))}"
        )
    kind = np.dtype(dtype)
    try:
        bound = kind.type(value)
    except (OverflowError, TypeError) as error:
        raise LaunchFailed(f"parameter {parameter.name}: {value} is no {dtype}") from error
    return bound  # type: ignore[no-any-return]


def unbindable(parameter: Parameter, name: str, case: Case) -> LaunchFailed:
    """What the parameter could have been bound to."""
    if parameter.space == "private":
        numbers = [key for key, value in case.inputs.items() if not isinstance(value, Tensor)]
        known = f"axes {_names(case.axes)}; scalar inputs {_names(numbers)}"
    else:
        arrays = [key for key, value in case.inputs.items() if isinstance(value, Tensor)]
        known = f"array inputs {_names(arrays)}; outputs {_names(case.outputs)}"
    return LaunchFailed(
        f"parameter {parameter.name} ({parameter.type_name}): nothing is named {name}: {known}. "
        'Name the values in order with "arguments" in the launch dict'
    )


def _names(names: Any) -> str:
    return ", ".join(names) or "none"
