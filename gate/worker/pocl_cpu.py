"""PoCL on a CPU newer than the compiler inside it.

The PoCL wheel carries LLVM 14 (2022). On a CPU that LLVM does not know by model, such as Zen 5, it
calls the CPU "generic"; its own clang refuses that name, and every build fails with "unknown target
CPU 'generic'". No environment variable or build option overrides it: PoCL copies the name from the
device's record just before it compiles. So the record is given the x86-64 level that the CPU's own
flags show, which that clang does know (x86-64 psABI, "Microarchitecture levels").
"""

from __future__ import annotations

import ctypes
import os
import struct
from pathlib import Path
from typing import Any

_UNKNOWN = b"generic\0"
_RECORD_WORDS = 256
"""Pointers to look at; PoCL 3.0's record holds the CPU's name in the 81st."""

_LEVELS = {
    "x86-64-v4": {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"},
    "x86-64-v3": {"avx2", "bmi1", "bmi2", "f16c", "fma", "abm", "movbe"},
    "x86-64-v2": {"cx16", "popcnt", "sse4_1", "sse4_2", "ssse3"},
}

_kept: dict[str, ctypes.Array[ctypes.c_char]] = {}
"""Names that device records point to; they must outlive the devices."""


def level_of(flags: set[str]) -> str:
    """The highest x86-64 level whose flags, and those of the levels below, are all there."""
    level = "x86-64"
    for name, needed in reversed(_LEVELS.items()):
        if not needed <= flags:
            break
        level = name
    return level


def name_host_cpu(device: Any) -> str:
    """Give a PoCL CPU device whose CPU is "generic" a name its compiler takes.

    Returns the name given, empty where PoCL knew the CPU. Call before the first build.
    """
    slots = _slots_holding(device.int_ptr, _UNKNOWN)
    if not slots:
        return ""
    level = level_of(_cpu_flags())
    name = _kept.setdefault(level, ctypes.create_string_buffer(level.encode()))
    for slot in slots:
        ctypes.c_void_p.from_address(slot).value = ctypes.addressof(name)
    return level


def _slots_holding(record: int, text: bytes) -> list[int]:
    """Addresses, within a record, of pointers to `text`.

    Memory is read through /proc/self/mem, which answers a bad pointer with an error.
    """
    found = []
    memory = os.open("/proc/self/mem", os.O_RDONLY)
    try:
        words = struct.unpack(f"{_RECORD_WORDS}Q", os.pread(memory, 8 * _RECORD_WORDS, record))
        for index, word in enumerate(words):
            if 4096 < word < 1 << 47 and _read(memory, word, len(text)) == text:
                found.append(record + 8 * index)
    finally:
        os.close(memory)
    return found


def _read(memory: int, address: int, count: int) -> bytes:
    try:
        return os.pread(memory, count, address)
    except OSError:
        return b""


def _cpu_flags() -> set[str]:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("flags"):
            return set(line.partition(":")[2].split())
    return set()
