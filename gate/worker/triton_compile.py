"""Compile recorded launches for a GPU that is not here, in a child process.

Under TRITON_INTERPRET a decorated kernel has no compiler, and the choice holds for a process. So a
child is forked before Triton is imported; it loads the same bytes, and replays the launches that
the interpreter saw up to the binary. The child inherits torch, which makes it quick to start.
"""

from __future__ import annotations

import io
import multiprocessing
import os
import pickle
import sys
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any

import torch

from .languages import BuildFailed, CannotRun, Source
from .triton_binary import Binary, binary_of
from .triton_interpreter import install_absent_gpu
from .triton_target import Target, shared_memory_limit_bytes
from .wrapper import Wrapper, failure_log

JitKey = tuple[str, str, int]
"""Module, qualified name and first line of a jit function."""


class TargetCompiler:
    """A child process that compiles for `target`. Start it before Triton is imported."""

    def __init__(self, source: Source, target: Target) -> None:
        self._near, far = multiprocessing.Pipe()
        context = multiprocessing.get_context("fork")
        self._child = context.Process(target=_serve, args=(source, target, far), daemon=True)
        self._child.start()
        far.close()

    def compile(self, call: bytes) -> Binary:
        """The binary of one call, as `pack_call` packs it. Raises BuildFailed or CannotRun."""
        try:
            self._near.send_bytes(call)
            reply = self._near.recv()
        except (EOFError, OSError) as error:
            self._child.join()
            raise BuildFailed(f"the compiler died (status {self._child.exitcode})") from error
        if isinstance(reply, Binary):
            return reply
        raise reply

    def close(self) -> None:
        """End the child."""
        self._near.close()
        self._child.terminate()
        self._child.join()


def pack_call(function: Any, grid: tuple[int, ...], args: Any, kwargs: Any) -> bytes:
    """A launch without its memory: tensors become pointers, jit functions their names.

    Raises CannotRun if an argument cannot go to another process.
    """
    buffer = io.BytesIO()
    jit = _Jit(_key(function.fn))
    try:
        _Packer(buffer, pickle.HIGHEST_PROTOCOL).dump((jit, grid, args, kwargs))
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise CannotRun(f"{jit.key[1]} cannot be compiled apart: {error}") from error
    return buffer.getvalue()


@dataclass(frozen=True, slots=True)
class _Jit:
    key: JitKey


@dataclass(frozen=True, slots=True)
class _Pointer:
    """Stands for a tensor where Triton only asks for its type and how it is aligned."""

    dtype: torch.dtype
    pointer: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    size_bytes: int

    def data_ptr(self) -> int:
        return self.pointer

    def ptr_range(self) -> int:
        return self.size_bytes

    def stride(self) -> tuple[int, ...]:
        return self.strides


class _Packer(pickle.Pickler):
    def persistent_id(self, value: object) -> object:
        from triton.runtime.interpreter import InterpretedFunction

        if isinstance(value, torch.Tensor):
            size_bytes = value.untyped_storage().nbytes()
            shape, strides = tuple(value.shape), tuple(value.stride())
            return _Pointer(value.dtype, value.data_ptr(), shape, strides, size_bytes)
        return _Jit(_key(value.fn)) if isinstance(value, InterpretedFunction) else None


class _Unpacker(pickle.Unpickler):
    def __init__(self, data: bytes, functions: dict[JitKey, Any]) -> None:
        super().__init__(io.BytesIO(data))
        self._functions = functions

    def persistent_load(self, reference: object) -> object:
        if isinstance(reference, _Jit):
            return self.function(reference)
        return reference

    def function(self, reference: _Jit) -> Any:
        if reference.key not in self._functions:
            name = reference.key[1]
            raise CannotRun(f"{name} is made while its wrapper runs: it cannot be compiled apart")
        return self._functions[reference.key]


def _key(function: Any) -> JitKey:
    return function.__module__, function.__qualname__, function.__code__.co_firstlineno


def _serve(source: Source, target: Target, far: Connection) -> None:
    """The child: answer each packed call with a Binary or with the exception to raise."""
    # What the worker has open (its protocol above all) would stay open if the worker died.
    os.dup2(sys.stderr.fileno() if sys.stderr else 2, 1)
    os.closerange(3, far.fileno())
    os.closerange(far.fileno() + 1, os.sysconf("SC_OPEN_MAX"))
    os.environ.pop("TRITON_INTERPRET", None)
    install_absent_gpu(target)
    compiler = _Compiler(source, shared_memory_limit_bytes(target.capability))
    while True:
        try:
            call = far.recv_bytes()
        except EOFError:
            return
        far.send(compiler.answer(call))


class _Compiler:
    def __init__(self, source: Source, shared_limit_bytes: int | None) -> None:
        self._source = source
        self._shared_limit_bytes = shared_limit_bytes
        self._functions = _collect_jit_functions()
        self._wrapper = Wrapper(source, "cpu")
        self._binaries: dict[int, Binary] = {}
        """By identity: each jit function keeps what it compiled."""

    def answer(self, call: bytes) -> Binary | Exception:
        try:
            self._wrapper.attribute(self._source.path, self._source.entry)
            unpacker = _Unpacker(call, self._functions)
            jit, grid, args, kwargs = unpacker.load()
            compiled = unpacker.function(jit).run(*args, grid=grid, warmup=True, **kwargs)
            if id(compiled) not in self._binaries:
                self._require_room(compiled)
                self._binaries[id(compiled)] = binary_of(compiled)
            return self._binaries[id(compiled)]
        except (BuildFailed, CannotRun) as error:
            return type(error)(str(error))
        except Exception as error:
            return BuildFailed(failure_log(error, self._source.root))

    def _require_room(self, compiled: Any) -> None:
        """Triton refuses a block that needs more than there is when it loads it on a device."""
        from triton.runtime.errors import OutOfResources

        limit, needed = self._shared_limit_bytes, int(compiled.metadata.shared)
        if limit is not None and needed > limit:
            raise OutOfResources(needed, limit, "shared memory")


def _collect_jit_functions() -> dict[JitKey, Any]:
    """Every jit function that is made from here on, by what names it in the other process."""
    from triton.runtime.jit import JITFunction

    functions: dict[JitKey, Any] = {}
    original: Callable[..., None] = JITFunction.__init__

    def __init__(self: Any, fn: Any, *args: Any, **kwargs: Any) -> None:  # noqa: N807
        original(self, fn, *args, **kwargs)
        functions[_key(fn)] = self

    JITFunction.__init__ = __init__
    return functions
