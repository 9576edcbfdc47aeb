"""PoCL on a CPU newer than the compiler inside it.

The PoCL wheel carries LLVM 14 (2022). On a CPU that LLVM does not know by model, such as Zen 5, it
calls the CPU "generic"; its own clang refuses that name, and every build fails with "unknown target
CPU 'generic'". No environment variable or build option overrides it: PoCL copies the name from the
device's record just before it compiles. So, only once a build was refused for that name, the record
is given the x86-64 level that the CPU's own flags show, which that clang does know (x86-64 psABI,
"Microarchitecture levels"), and the build is tried again.
"""

from __future__ import annotations

import ctypes
import os
import re
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import pyopencl as cl

from .problems import EnvironmentProblem

T = TypeVar("T")

REFUSED = "unknown target CPU 'generic'"
GENERIC = b"generic\0"

NAME_WORDS = {"3.0": 80}
"""PoCL release → the word of `struct _cl_device_id` that points to the CPU's name (`llvm_cpu` in
pocl_cl.h). Other releases lay their record out otherwise, and are left alone."""

ADVICE = "pip install a newer pyopencl[pocl], or name another device as opencl in [gate.devices]"

_LEVELS = {
    "x86-64-v4": {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"},
    "x86-64-v3": {"avx2", "bmi1", "bmi2", "f16c", "fma", "abm", "movbe"},
    "x86-64-v2": {"cx16", "popcnt", "sse4_1", "sse4_2", "ssse3"},
}

_kept: dict[str, ctypes.Array[ctypes.c_char]] = {}
"""Names that device records point to; they must outlive the devices."""


def built_for_host(device: Any, build: Callable[[], T]) -> tuple[T, str]:
    """What `build` gives, and the name the CPU was given for it; empty if PoCL's own would do.

    Raises what `build` raises, and EnvironmentProblem if the CPU cannot be named.
    """
    try:
        return build(), ""
    except cl.Error as error:
        if REFUSED not in str(error):
            raise
    name = name_host_cpu(device)
    try:
        return build(), name
    except cl.Error as error:
        if REFUSED in str(error):
            raise _unnamed(device, "naming it had no effect") from error
        raise


def name_host_cpu(device: Any) -> str:
    """Give a device whose CPU PoCL calls "generic" a name its compiler takes; returns the name.

    Raises EnvironmentProblem, and leaves the record as it was, unless this release of PoCL keeps
    the name where it is known to and the name there is "generic".
    """
    release = release_of(device.platform.version)
    word = NAME_WORDS.get(release)
    if word is None:
        raise _unnamed(device, f"this tool knows how to name it for {', '.join(NAME_WORDS)} only")
    slot = device.int_ptr + 8 * word
    if _text_at(slot) != GENERIC:
        raise _unnamed(device, "its device record is laid out in another way than that release's")
    level = level_of(_cpu_flags())
    name = _kept.setdefault(level, ctypes.create_string_buffer(level.encode()))
    ctypes.c_void_p.from_address(slot).value = ctypes.addressof(name)
    return level


def release_of(platform_version: str) -> str:
    """`3.0` of `OpenCL 3.0 PoCL 3.0-rc2 …`; empty if it is not PoCL's."""
    found = re.search(r"\bPoCL (\d+\.\d+)", platform_version, re.IGNORECASE)
    return found[1] if found else ""


def level_of(flags: set[str]) -> str:
    """The highest x86-64 level whose flags, and those of the levels below, are all there."""
    level = "x86-64"
    for name, needed in reversed(_LEVELS.items()):
        if not needed <= flags:
            break
        level = name
    return level


def _text_at(slot: int) -> bytes:
    """The bytes that the pointer at `slot` leads to, as many as GENERIC has; empty if it leads
    nowhere.

    Memory is read through /proc/self/mem, which answers a bad pointer with an error.
    """
    memory = os.open("/proc/self/mem", os.O_RDONLY)
    try:
        (pointer,) = struct.unpack("Q", os.pread(memory, 8, slot))
        return os.pread(memory, len(GENERIC), pointer) if 0 < pointer < 1 << 47 else b""
    except (OSError, struct.error):
        return b""
    finally:
        os.close(memory)


def _cpu_flags() -> set[str]:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("flags"):
            return set(line.partition(":")[2].split())
    return set()


def _unnamed(device: Any, why: str) -> EnvironmentProblem:
    return EnvironmentProblem(
        f"the compiler of {device.platform.version.strip()} does not know this CPU, and {why}; "
        f"{ADVICE}"
    )
