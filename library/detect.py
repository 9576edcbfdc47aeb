"""From a file to the kernels in it, and from a kernel to the target that retrieval sees."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePosixPath

from gate.values.kernel import Kernel, Language
from gate.values.platform import Platform
from gate.values.trace import LaunchTrace
from gate.values.workload import Workload
from library.languages import Found, LanguageSupport, Problem, ReadFile
from library.languages.opencl import OpenCL
from library.languages.triton import Triton
from library.target import Target
from library.workload_source import find_workload, read_workload

SUPPORTED: tuple[LanguageSupport, ...] = (OpenCL(), Triton())
"""Add a language here once its file in library/languages/ is written."""

MAX_BYTES = 4 * 1024 * 1024
BINARY_PROBE_BYTES = 8192


def detect(
    path: str, data: bytes, read: ReadFile, configured_workloads: Mapping[str, str]
) -> Found:
    """The kernels of a file in every language its suffix may hold, each with closure and launch.

    A file that is binary, larger than 4 MiB or not UTF-8 gives a problem and no kernels; one with a
    suffix of no language gives neither. Nothing of the file is run.
    """
    languages = [each for each in SUPPORTED if PurePosixPath(path).suffix in each.suffixes]
    if not languages:
        return Found(())
    if reason := _unreadable(data):
        return Found((), (Problem(path, 1, reason),))
    workload = find_workload(path, read, configured_workloads)
    found = [language.find(path, data, workload, read) for language in languages]
    kernels = tuple(kernel for each in found for kernel in each.kernels)
    problems = [problem for each in found for problem in each.problems]
    if kernels and workload is not None:
        problems += read_workload(workload).problems
    return Found(kernels, tuple(dict.fromkeys(problems)))


def target_for(
    kernel: Kernel,
    workload: Workload | None,
    platform: Platform | None,
    traces: tuple[LaunchTrace, ...] = (),
) -> Target:
    """The kernel with its state and facts, on a platform (None: not known yet).

    `traces` are real launches of it, one for each shape; facts that need one are missing without.
    """
    analysis = support(kernel.language).analyse(kernel, workload, platform, traces)
    case = read_workload(workload).operator if workload is not None else ""
    return Target(kernel, analysis, workload, platform, case)


def support(language: Language) -> LanguageSupport:
    """What the library knows of a language. Raises KeyError for one it does not support."""
    for each in SUPPORTED:
        if each.language is language:
            return each
    raise KeyError(language)


def _unreadable(data: bytes) -> str:
    """Why a file cannot be a kernel's source; empty if it can."""
    if len(data) > MAX_BYTES:
        return f"larger than {MAX_BYTES // 2**20} MiB; exclude it under [watch] in klineage.toml"
    if b"\0" in data[:BINARY_PROBE_BYTES]:
        return "not a text file"
    try:
        data.decode("utf-8")
    except UnicodeDecodeError as error:
        return f"not UTF-8 at byte {error.start}; save it as UTF-8"
    return ""
