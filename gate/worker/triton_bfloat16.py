"""bfloat16 arithmetic for Triton's interpreter, which has none.

It keeps bfloat16 as 16-bit unsigned integers and would add, compare and multiply those: no error,
wrong numbers. Here each operation widens to float32 and rounds its result to nearest even, which is
what the hardware does. A reduction is rounded once, at its end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from .languages import CannotRun


@contextmanager
def widened_bfloat16() -> Iterator[None]:
    """Inside, interpreted operations on bfloat16 give what a GPU gives."""
    from triton.runtime import interpreter

    builder = interpreter.InterpreterBuilder
    replaced = {
        (builder, "binary_op"): _arithmetic(builder.binary_op, operands=2),
        (builder, "unary_op"): _arithmetic(builder.unary_op, operands=1),
        (builder, "ternary_op"): _arithmetic(builder.ternary_op, operands=3),
        (builder, "create_fma"): _arithmetic(builder.create_fma, operands=3),
        (builder, "create_dot"): _dot(builder.create_dot),
        (builder, "get_bf16"): _constant,  # some releases lack it
        (builder, "cast_impl"): _cast(builder.cast_impl),
        (builder, "create_atomic_rmw"): _refusing(builder.create_atomic_rmw),
        (interpreter.ReduceScanOpInterface, "apply"): _reduction(
            interpreter.ReduceScanOpInterface.apply
        ),
    }
    originals = {(owner, name): vars(owner).get(name) for owner, name in replaced}
    for (owner, name), method in replaced.items():
        setattr(owner, name, method)
    try:
        yield
    finally:
        for (owner, name), original in originals.items():
            if original is None:
                delattr(owner, name)
            else:
                setattr(owner, name, original)


def widen(bits: np.ndarray) -> np.ndarray:
    """The float32 values of bfloat16 bits."""
    return (bits.astype(np.uint32) << 16).view(np.float32)


def narrow(values: np.ndarray) -> np.ndarray:
    """The bfloat16 bits nearest to float32 values, ties to even; NaN stays NaN."""
    bits = np.ascontiguousarray(values, dtype=np.float32).view(np.uint32)
    rounded = (bits + np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1))) >> np.uint32(16)
    return np.where(np.isnan(values), np.uint32(0x7FC0), rounded).astype(np.uint16)


def _arithmetic(original: Callable[..., Any], operands: int) -> Callable[..., Any]:
    def operation(self: Any, *args: Any) -> Any:
        if not any(_is_bfloat16(arg) for arg in args[:operands]):
            return original(self, *args)
        result = original(self, *(_wide(arg) for arg in args[:operands]), *args[operands:])
        if result.data.dtype == np.bool_:
            return result
        return _handle(narrow(result.data), bfloat16=True)

    return operation


def _constant(self: Any, value: float) -> Any:
    return _handle(narrow(np.array([value], dtype=np.float32)), bfloat16=True)


def _dot(original: Callable[..., Any]) -> Callable[..., Any]:
    def operation(self: Any, a: Any, b: Any, *args: Any) -> Any:
        return original(self, _wide(a), _wide(b), *args)

    return operation


def _cast(original: Callable[..., Any]) -> Callable[..., Any]:
    import triton.language as tl

    def operation(self: Any, source: Any, target: Any) -> Any:
        wide = _wide(source)
        if target.scalar == tl.bfloat16:
            as_float = original(self, wide, tl.float32) if wide.dtype.scalar != tl.float32 else wide
            return _handle(narrow(as_float.data), bfloat16=True)
        if wide is not source and target.scalar == tl.float32:
            return wide
        return original(self, wide, target)

    return operation


def _reduction(original: Callable[..., Any]) -> Callable[..., Any]:
    import triton.language as tl

    def retyped(tensor: Any, handle: Any) -> Any:
        scalar = handle.dtype.scalar
        block = tensor.type.is_block()
        return tl.tensor(handle, tl.block_type(scalar, tensor.type.shape) if block else scalar)

    def apply(self: Any, inputs: Any) -> Any:
        if not isinstance(inputs, tuple) or not any(_is_bfloat16(part) for part in inputs):
            return original(self, inputs)
        narrowed = [_is_bfloat16(part) for part in inputs]
        results = original(self, tuple(retyped(part, _wide(part.handle)) for part in inputs))
        return tuple(
            retyped(part, _handle(narrow(part.handle.data), bfloat16=True)) if was else part
            for part, was in zip(results, narrowed, strict=True)
        )

    return apply


def _refusing(original: Callable[..., Any]) -> Callable[..., Any]:
    def operation(self: Any, *args: Any) -> Any:
        if any(_is_bfloat16(arg) for arg in args):
            raise CannotRun("Triton's interpreter has no bfloat16 atomics")
        return original(self, *args)

    return operation


def _is_bfloat16(value: Any) -> bool:
    import triton.language as tl

    scalar = getattr(getattr(value, "dtype", None), "scalar", None)
    return scalar is not None and scalar == tl.bfloat16


def _wide(handle: Any) -> Any:
    return _handle(widen(handle.data), bfloat16=False) if _is_bfloat16(handle) else handle


def _handle(data: np.ndarray, *, bfloat16: bool) -> Any:
    import triton.language as tl
    from triton.runtime.interpreter import TensorHandle

    return TensorHandle(data, tl.bfloat16 if bfloat16 else tl.float32)
