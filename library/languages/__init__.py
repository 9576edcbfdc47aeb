"""One file a surface language: how its kernels are found, parsed and analysed.

To add a language, write one file here that provides a `LanguageSupport` and add it to `SUPPORTED`
in library/detect.py; the gate needs one of the same name in gate/worker/languages/.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from gate.values.kernel import Kernel, Language
from gate.values.platform import Platform
from gate.values.trace import LaunchTrace
from gate.values.workload import Workload
from library.target import Analysis

ReadFile = Callable[[str], bytes | None]
"""Bytes of a file of the worktree by its relative path, or None if there is none."""


@dataclass(frozen=True, slots=True)
class Problem:
    """Something in a source file a person should know: a syntax error, a missing include."""

    path: str
    line: int
    message: str


@dataclass(frozen=True, slots=True)
class Found:
    """What one file holds."""

    kernels: tuple[Kernel, ...]
    problems: tuple[Problem, ...] = ()


class LanguageSupport(Protocol):
    """What the library needs of a surface language."""

    @property
    def language(self) -> Language:
        """Which language it is."""
        ...

    @property
    def suffixes(self) -> tuple[str, ...]:
        """Of files that may hold its kernels, with the dot."""
        ...

    def find(self, path: str, data: bytes, workload: Workload | None, read: ReadFile) -> Found:
        """The kernels defined in a file, each with its closure and launch.

        A file with a syntax error gives a Problem with its line and whatever kernels still parse.
        """
        ...

    def analyse(
        self,
        kernel: Kernel,
        workload: Workload | None,
        platform: Platform | None,
        traces: tuple[LaunchTrace, ...] = (),
    ) -> Analysis:
        """Features, facts and anchors of a kernel. Runs nothing of the repository.

        Facts about a launch (alignment, strides, overlap, dtypes) are Missing until the gate has
        traced one; with `traces`, one for each shape, they are Known.
        """
        ...
