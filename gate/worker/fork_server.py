"""A process that has imported a language's runtime and forks workers which then need not.

Importing torch and Triton takes seconds; a fork of a process that has them, milliseconds. What must
be each worker's own is made after the fork: its device and context, its buffers, its threads. So
the server opens no device and leaves no thread running, looks whether that is so, and says no if it
is not. It imports nothing of the person's. One message at a time over its socket, each with an
answer; the descriptors of a worker's pipes come along with the request for it.
"""

from __future__ import annotations

import ctypes
import gc
import importlib
import json
import mmap
import os
import secrets
import socket
import sys
import tempfile
import traceback
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from .languages import language_module
from .lifeline import die_with_parent, limit_files
from .serve import ROLES
from .serve import serve as answer_requests

MESSAGE_BYTES = 1 << 17
WORKER_DESCRIPTORS = 4
"""Of requests, replies, what is printed, and the lifeline."""

DEVICE_FILES = ("/dev/nvidia", "/dev/dri/", "/dev/kfd", "/dev/dxg")
"""Where open descriptors lead once a process has opened a GPU."""

SHIFT_PAGES = 4096
"""Up to 16 MiB: more than the 2 MiB within which the place of a page matters."""


def serve(language: str, file_bytes: int, control: int, lifeline: int) -> None:
    """Answer until the parent closes the socket."""
    with socket.socket(fileno=control) as line:
        server = ForkServer(language, file_bytes, line, lifeline)
        while server.answer_one():
            pass


class ForkServer:
    """Forks workers, and keeps those that ended until their exit code is asked for."""

    def __init__(self, language: str, file_bytes: int, line: socket.socket, lifeline: int) -> None:
        self._language = language
        self._file_bytes = file_bytes
        self._line = line
        self._lifeline = lifeline
        self._began_with = dict(os.environ)

    def answer_one(self) -> bool:
        """Receive a message and answer it; False once the parent has closed."""
        data, descriptors, _, _ = socket.recv_fds(self._line, MESSAGE_BYTES, WORKER_DESCRIPTORS)
        if not data:
            return False
        request = json.loads(data)
        if request["do"] == "preload":
            self._answer({"refuses": self._preload(request["here"])})
        elif request["do"] == "fork":
            self._fork(request, descriptors)
        else:
            self._answer({"code": _reaped(request["pid"])})
        return True

    def _answer(self, message: Mapping[str, object], descriptors: tuple[int, ...] = ()) -> None:
        socket.send_fds(self._line, [json.dumps(message).encode()], descriptors)

    def _preload(self, here: bool) -> str:
        """Import what workers need; why this process cannot be forked from, empty if it can."""
        try:
            language_module(self._language).preload(here)
            for name in ROLES.values():
                importlib.import_module(f".{name}", __package__)
        except Exception as error:
            return f"importing {self._language}'s runtime: {type(error).__name__}: {error}"
        return standing_in_the_way()

    def _fork(self, request: Mapping[str, Any], descriptors: list[int]) -> None:
        # Without it the child's first collection would copy every page that holds an object.
        gc.freeze()
        apart, inside = os.pipe()
        pid = os.fork()
        if pid == 0:
            os.close(apart)
            self._become(request, descriptors, inside)
        for fd in (*descriptors, inside):
            os.close(fd)
        # Until the child has a session of its own, what ends this server's group ends it, too.
        os.read(apart, 1)
        os.close(apart)
        # Nobody reaps it before it is asked for, so the descriptor is of this very process.
        process = os.pidfd_open(pid)
        self._answer({"pid": pid}, (process,))
        os.close(process)

    def _become(self, request: Mapping[str, Any], descriptors: list[int], inside: int) -> None:
        """The child: a worker like one that was started by itself. Does not return.

        Closes `inside` once it stands apart from the server.
        """
        try:
            requests, replies, printed, lifeline = descriptors
            os.setsid()
            die_with_parent(lifeline)
            self._line.close()
            os.close(self._lifeline)
            os.close(inside)
            os.dup2(printed, 1)
            os.dup2(printed, 2)
            os.close(printed)
            limit_files(self._file_bytes)
            self._move_in(Path(request["folder"]), request["environment"])
            shifted = shift_addresses()
            answer_requests(request["role"], self._language, requests, replies)
            shifted.close()
        except BaseException:  # the process boundary: nothing of a child may run the server's loop
            traceback.print_exc()
            sys.stderr.flush()
            os._exit(1)
        os._exit(0)

    def _move_in(self, folder: Path, environment: Mapping[str, str]) -> None:
        """The worker's own folder and variables, besides those that its imports have set."""
        set_by_imports = {
            name: value for name, value in os.environ.items() if self._began_with.get(name) != value
        }
        os.environ.clear()
        os.environ.update({**environment, **set_by_imports})
        os.chdir(folder)
        tempfile.tempdir = None  # it may have been looked up in the server's environment
        if "numpy.random" in sys.modules:
            sys.modules["numpy.random"].seed()


def standing_in_the_way() -> str:
    """Why this process cannot be forked from: a thread that goes on, or an open device."""
    if threads := threads_beside_a_fork():
        return f"its imports leave threads running: {', '.join(threads)}"
    for descriptor in Path("/proc/self/fd").iterdir():
        try:
            leads_to = str(descriptor.readlink())
        except OSError:  # the one that listed the folder
            continue
        if leads_to.startswith(DEVICE_FILES):
            return f"its imports open {leads_to}"
    return ""


def threads_beside_a_fork() -> list[str]:
    """Names of threads that do not end before a fork, as those of OpenBLAS do."""
    pid = os.fork()
    if pid == 0:
        os._exit(0)
    os.waitpid(pid, 0)
    threads = [task for task in Path("/proc/self/task").iterdir() if task.name != str(os.getpid())]
    return [(task / "comm").read_text().strip() for task in threads]


def shift_addresses() -> mmap.mmap:
    """Move what this process allocates from here on by a random number of pages.

    Where code and buffers lie decides up to several percent of a CPU kernel's time. A started
    process is laid out at random; forks of one server would all share its layout, and agree with
    one another more than processes do. What is returned must be kept.
    """
    ctypes.CDLL(None).sbrk(ctypes.c_ssize_t(mmap.PAGESIZE * secrets.randbelow(SHIFT_PAGES)))
    return mmap.mmap(-1, mmap.PAGESIZE * (1 + secrets.randbelow(SHIFT_PAGES)))


def _reaped(pid: int) -> int | None:
    """Exit code of a worker that was ended, negative for a signal; None if it is not ours."""
    try:
        _, status = os.waitpid(pid, 0)
    except ChildProcessError:
        return None
    return os.waitstatus_to_exitcode(status)
