"""A daemon's socket that gives the answers a test wants, and verbs run against it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from daemon import handshake
from daemon.instance import Instance
from daemon.journal import Journal
from daemon.notices import Notices
from daemon.protocol import (
    CheckView,
    ConditionView,
    EntryView,
    FeatureView,
    FileView,
    Hello,
    HelloReply,
    JobView,
    KernelView,
    SkillView,
    StatusView,
    SuggestionView,
    TimingView,
    VerdictView,
    Wire,
)
from daemon.runtime_dir import socket_path
from daemon.server import Server
from daemon.verbs import main
from daemon.worktree import journal_path, lock_path

Answer = Wire | Exception


@dataclass
class Answering:
    """What was asked, and how to run a verb."""

    root: Path
    asked: list[Wire] = field(default_factory=list)

    async def run(self, *arguments: str) -> int:
        """`klineage …` for this worktree; its exit status."""
        return await asyncio.to_thread(main, [*arguments, "--root", str(self.root)])


@asynccontextmanager
async def answering(
    root: Path, answers: Mapping[str, Answer], warnings: tuple[str, ...] = ()
) -> AsyncIterator[Answering]:
    """A daemon for `root` that answers each method as told."""
    instance = Instance(lock_path(root), socket_path(root))
    journal = Journal(journal_path(root))
    made = Answering(root)

    def hello(said: Hello) -> HelloReply:
        return handshake.reply(said, root, trusted=True, seq=1, warnings=warnings)

    def handler(answer: Answer) -> Any:
        async def give(asked: Wire) -> Wire:
            made.asked.append(asked)
            if isinstance(answer, Exception):
                raise answer
            return answer

        return give

    handlers = {method: handler(answer) for method, answer in answers.items()}
    server = Server(root, socket_path(root), handlers, hello, Notices(journal.events))
    stop, ready = asyncio.Event(), asyncio.Event()
    served = asyncio.create_task(server.serve(stop, ready.set))
    try:
        await ready.wait()
        yield made
    finally:
        stop.set()
        await served
        journal.close()
        instance.release()


# ---- views with defaults ------------------------------------------------------------------------


def make_timing(**changed: Any) -> TimingView:
    fields: dict[str, Any] = {
        "shape": "M=256 N=256 K=256",
        "before_us": 1920.0,
        "after_us": 640.0,
        "speedup": 3.0,
        "speedup_low": 2.9,
        "speedup_high": 3.1,
        "confidence": 0.97,
        "method": "ABBA",
    }
    return TimingView(**{**fields, **changed})


def make_verdict(**changed: Any) -> VerdictView:
    fields: dict[str, Any] = {
        "status": "faster",
        "tier": "screen",
        "message": "faster at every shape",
        "at": "2026-11-30T12:00:00Z",
        "platform": "pocl-cpu",
        "device": "a CPU",
        "trust": "harness-launched",
        "equivalent_to": "reference",
        "checks": (CheckView("correctness", "passed", "96 cases"),),
        "timings": (make_timing(),),
    }
    return VerdictView(**{**fields, **changed})


def make_condition(**changed: Any) -> ConditionView:
    fields: dict[str, Any] = {
        "id": "aligned",
        "category": "shape",
        "text": "K is a multiple of 8",
        "truth": "met",
        "because": "K=256 % 8 == 0",
    }
    return ConditionView(**{**fields, **changed})


def make_suggestion(**changed: Any) -> SuggestionView:
    fields: dict[str, Any] = {
        "id": "0123456789ab",
        "kernel": "gemm.cl::gemm",
        "path": "gemm.cl",
        "line": 2,
        "skill": "opencl.coarsen-rows-8",
        "card": "d" * 64,
        "intent": "Compute 8 rows in each work-item",
        "stage": "screened",
        "rank": 1,
        "conditions": (make_condition(),),
        "verdict": make_verdict(),
    }
    return SuggestionView(**{**fields, **changed})


def make_entry(**changed: Any) -> EntryView:
    fields: dict[str, Any] = {
        "id": 1,
        "at": "2026-11-30T12:00:00Z",
        "kind": "applied",
        "suggestion": "0123456789ab",
        "skill": "opencl.coarsen-rows-8",
        "kernel": "gemm.cl::gemm",
        "files": ("gemm.cl",),
        "gain": "3x [2.9, 3.1] at M=256",
    }
    return EntryView(**{**fields, **changed})


def make_status(**changed: Any) -> StatusView:
    fields: dict[str, Any] = {
        "pid": 4711,
        "version": "0.1.0",
        "root": "/work/flash",
        "uptime_s": 12.0,
        "trusted": True,
        "watching": "inotify",
        "platform": "pocl-cpu",
        "device": "a CPU",
        "files": 3,
        "kernels": 4,
        "skills": 27,
        "jobs": (JobView("job-1", "0123456789ab", "screen", "running", "timing"),),
    }
    return StatusView(**{**fields, **changed})


def make_file(**changed: Any) -> FileView:
    feature = FeatureView("F08", "fp32 accumulation", "present", "source", 11, "acc")
    kernel = KernelView(
        "gemm.cl::gemm", "gemm.cl", "gemm", "opencl", 2, "c" * 64, "workload.py", (feature,)
    )
    return FileView(**{"path": "gemm.cl", "kernels": (kernel,), **changed})


def make_skill(**changed: Any) -> SkillView:
    fields: dict[str, Any] = {
        "skill_id": "opencl.coarsen-rows-8",
        "digest": "d" * 64,
        "intent": "Compute 8 rows in each work-item",
        "languages": ("opencl",),
        "platforms": ("*",),
        "status": "hypothesis",
        "place": "shipped",
        "trials": 0,
    }
    return SkillView(**{**fields, **changed})
