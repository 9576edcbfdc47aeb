"""Compile recorded launches for a GPU that is not here, in a child process.

Under TRITON_INTERPRET a decorated kernel has no compiler, and the choice holds for a process. So a
child is forked before Triton is imported; it loads the same bytes, and replays the launches that
the interpreter saw up to the binary. The child inherits torch, which makes it quick to start.
"""

from __future__ import annotations

import hashlib
import io
import multiprocessing
import os
import pickle
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from typing import Any

import torch

from .languages import BuildFailed, CannotRun, Source
from .triton_interpreter import install_absent_gpu
from .triton_launch import options_of
from .triton_target import Target, shared_memory_limit_bytes
from .wrapper import Wrapper, failure_log

JitKey = tuple[str, str, int]
"""Module, qualified name and first line of a jit function."""


@dataclass(frozen=True, slots=True)
class Binary:
    """One kernel compiled for the target."""

    digest: str
    ir: dict[str, str]
    resources: dict[str, int | None]
    options: dict[str, int | str] = field(default_factory=dict)


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
    """A launch without its memory: tensors become pointers, jit functions their names."""
    buffer = io.BytesIO()
    _Packer(buffer, pickle.HIGHEST_PROTOCOL).dump((_Jit(_key(function.fn)), grid, args, kwargs))
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


def binary_of(compiled: Any) -> Binary:
    """What Triton made: the cubin's digest, IR by layer, and what a launch of it takes."""
    metadata = compiled.metadata._asdict()
    loaded = getattr(compiled, "n_regs", None) is not None
    usage = (
        # Triton divides the driver's local memory size by four: 32-bit slots.
        {"registers": int(compiled.n_regs), "spill_bytes": int(compiled.n_spills) * 4}
        if loaded
        else _resource_usage(compiled.asm["cubin"])
    )
    options = options_of(metadata)
    return Binary(
        digest=hashlib.sha256(compiled.asm["cubin"]).hexdigest(),
        ir={layer: compiled.asm[layer] for layer in ("ttgir", "ptx") if layer in compiled.asm},
        resources={
            **usage,
            "shared_bytes": int(metadata["shared"]),
            "num_warps": int(metadata["num_warps"]),
            "num_stages": int(metadata["num_stages"]),
        },
        options=options,
    )


def _resource_usage(cubin: bytes) -> dict[str, int | None]:
    """Registers and local memory by the cuobjdump of Triton's wheel; None where it has none."""
    from triton import knobs

    unavailable: dict[str, int | None] = {"registers": None, "spill_bytes": None}
    try:
        tool = knobs.nvidia.cuobjdump.path
    except RuntimeError:
        return unavailable
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(cubin)
        file.flush()
        done = subprocess.run(
            [tool, "-res-usage", file.name], capture_output=True, text=True, check=False
        )
    found = dict(re.findall(r"\b(REG|STACK|LOCAL):(\d+)", done.stdout))
    if "REG" not in found:
        return unavailable
    local_bytes = int(found.get("STACK", 0)) + int(found.get("LOCAL", 0))
    return {"registers": int(found["REG"]), "spill_bytes": local_bytes}
