"""Kernel: source files, a surface language, an entry point and how it is launched."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from enum import StrEnum


class Language(StrEnum):
    """Surface language of a kernel."""

    OPENCL = "opencl"
    TRITON = "triton"
    CUDA = "cuda"
    TILELANG = "tilelang"


class LaunchKind(StrEnum):
    """Who launches the kernel when it is gated."""

    NDRANGE = "ndrange"
    """The gate does, with the ranges and build options a `launch(axes)` function returns."""
    WRAPPER = "wrapper"
    """A host function of the kernel's own module does; the gate calls that function."""


def digest(data: bytes) -> str:
    """SHA-256 of `data`, 64 hex digits."""
    return hashlib.sha256(data).hexdigest()


@dataclass(frozen=True, slots=True)
class SourceFile:
    """One file of a kernel's closure, with the bytes that were read."""

    path: str
    """Relative to the worktree root, with forward slashes."""
    data: bytes

    @property
    def digest(self) -> str:
        """SHA-256 of the whole file, 64 hex digits."""
        return digest(self.data)


@dataclass(frozen=True, slots=True)
class Launch:
    """Where a kernel's launch is written. Editing a launch means editing this function."""

    kind: LaunchKind
    path: str
    """File that holds the function: a workload file for NDRANGE, the kernel's module for WRAPPER."""
    symbol: str
    """Name of the function: `launch`, `launch_<entry>`, or the host wrapper."""


@dataclass(frozen=True, slots=True)
class Kernel:
    """A kernel as it stands on disk (or as a candidate would leave it)."""

    language: Language
    path: str
    """File that defines `entry`."""
    entry: str
    files: tuple[SourceFile, ...]
    """Every file of the closure: kernel, includes, helpers' modules, launch site."""
    launch: Launch | None
    """None when no launch was found; such a kernel can be shown but not gated."""
    closure: str
    """Digest of what decides the kernel's behaviour: its function, helpers, globals, includes,
    wrapper and launch. Verdicts are keyed by it; comments and unrelated code leave it alone."""

    def file(self, path: str) -> SourceFile:
        """The closure's file at `path`. Raises KeyError if it has none."""
        for file in self.files:
            if file.path == path:
                return file
        raise KeyError(path)
