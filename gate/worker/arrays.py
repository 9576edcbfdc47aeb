"""Arrays that cross processes: one file each, a JSON line and then the bytes of its memory span.

Strides survive, since a kernel reads them. numpy lacks some GPU dtypes, so their bits travel in an
unsigned integer of the same size.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from .languages import Input, Tensor

CARRIERS = {"bfloat16": "uint16", "float8_e4m3fn": "uint8", "float8_e5m2": "uint8"}
"""dtype → numpy dtype that carries its bits."""

MAX_BYTES = 64 * 1024**3


def carrier(dtype: str) -> np.dtype[Any]:
    """The numpy dtype whose memory holds a `dtype`. Raises TypeError for an unknown name."""
    return np.dtype(CARRIERS.get(dtype, dtype))


def is_float(dtype: str) -> bool:
    """True for floating dtypes, those numpy lacks included."""
    return dtype in CARRIERS or np.dtype(dtype).kind == "f"


def write_array(path: Path, tensor: Tensor) -> None:
    """Write a tensor with its strides, whole or not at all. Strides must not be negative."""
    array = tensor.array
    strides = [stride // array.itemsize for stride in array.strides]
    head = {"dtype": tensor.dtype, "shape": list(array.shape), "strides": strides}
    # A workload may have forked: its child writes the same file, while a kernel's worker reads it.
    unfinished = path.with_name(f"{path.name}.{os.getpid()}")
    with unfinished.open("wb") as file:
        file.write(json.dumps(head).encode() + b"\n")
        flat = np.lib.stride_tricks.as_strided(
            array, (span(array.shape, strides),), (array.itemsize,)
        )
        file.write(flat.view(np.uint8).data)
    unfinished.replace(path)


def read_array(path: Path) -> Tensor:
    """A private, writable copy of what `write_array` wrote. Raises ValueError on a damaged file."""
    with path.open("rb") as file:
        head = json.loads(file.readline(65_536))
        dtype, shape, strides = head["dtype"], tuple(head["shape"]), tuple(head["strides"])
        kind = carrier(dtype)
        count = span(shape, strides)
        if len(shape) != len(strides) or min((*shape, *strides), default=0) < 0:
            raise ValueError(f"{path.name}: shape {shape} with strides {strides}")
        if count * kind.itemsize > MAX_BYTES:
            raise ValueError(f"{path.name}: {count} elements of {dtype}")
        flat = np.fromfile(file, dtype=kind, count=count)
    if flat.size != count:
        raise ValueError(f"{path.name}: {flat.size} elements where {count} were announced")
    bytes_strides = tuple(stride * kind.itemsize for stride in strides)
    return Tensor(dtype, np.lib.stride_tricks.as_strided(flat, shape, bytes_strides))


def span(shape: tuple[int, ...], strides: tuple[int, ...] | list[int]) -> int:
    """Elements from the first to the last one addressed, both included; 0 if there are none."""
    if 0 in shape:
        return 0
    return 1 + sum((n - 1) * stride for n, stride in zip(shape, strides, strict=True))


def write_arrays(folder: Path, values: Mapping[str, Input]) -> list[dict[str, object]]:
    """Write tensors as `0.bin`, `1.bin`, … under `folder` and give the manifest, in order."""
    folder.mkdir(parents=True, exist_ok=True)
    manifest: list[dict[str, object]] = []
    for index, (name, value) in enumerate(values.items()):
        if isinstance(value, Tensor):
            path = folder / f"{index}.bin"
            write_array(path, value)
            manifest.append({"name": name, "file": str(path)})
        elif isinstance(value, float) and not math.isfinite(value):
            # JSON has no word for it, and masks are full of it.
            manifest.append({"name": name, "odd": str(value)})
        else:
            manifest.append({"name": name, "value": value})
    return manifest


def read_arrays(manifest: list[dict[str, Any]]) -> dict[str, Input]:
    """What `write_arrays` wrote, by name and in order."""
    return {entry["name"]: _value(entry) for entry in manifest}


def _value(entry: Mapping[str, Any]) -> Input:
    if "file" in entry:
        return read_array(Path(entry["file"]))
    if "odd" in entry:
        return float(entry["odd"])
    value: Input = entry["value"]
    return value


def to_float64(tensor: Tensor) -> Any:
    """The values in float64; those of wide integers are rounded."""
    array = tensor.array
    if tensor.dtype == "bfloat16":
        return (array.astype(np.uint32) << 16).view(np.float32).astype(np.float64)
    if tensor.dtype == "float8_e4m3fn":
        return _float8_table(exponent_bits=4, finite=True)[array]
    if tensor.dtype == "float8_e5m2":
        return _float8_table(exponent_bits=5, finite=False)[array]
    return array.astype(np.float64)


def _float8_table(exponent_bits: int, finite: bool) -> Any:
    """The 256 values of an 8-bit float (OCP 8-bit Floating Point Specification, revision 1.0).

    `finite`: no infinities, and NaN only where all bits but the sign are set.
    """
    mantissa_bits = 7 - exponent_bits
    code = np.arange(256)
    sign = np.where(code & 0x80, -1.0, 1.0)
    exponent = (code >> mantissa_bits) & ((1 << exponent_bits) - 1)
    mantissa = code & ((1 << mantissa_bits) - 1)
    bias = (1 << (exponent_bits - 1)) - 1
    fraction = mantissa / (1 << mantissa_bits)
    normal = (1.0 + fraction) * 2.0 ** (exponent - bias)
    subnormal = fraction * 2.0 ** (1 - bias)
    values = sign * np.where(exponent == 0, subnormal, normal)
    top = exponent == (1 << exponent_bits) - 1
    if finite:
        values[(code & 0x7F) == 0x7F] = np.nan
    else:
        values[top] = np.where(mantissa[top] == 0, sign[top] * np.inf, np.nan)
    return values
