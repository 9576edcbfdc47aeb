"""The daemon as it is wired, over its real socket and watcher, with a scripted gate."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from loop_parts import GEMM, PATIENCE_S, add_gemm
from scripted_gate import FASTEST, ScriptedGate

from daemon.client import Client
from daemon.configuration import load_configuration
from daemon.instance import Instance
from daemon.journal import Journal
from daemon.protocol import (
    Apply,
    Empty,
    Ok,
    Shutdown,
    StatusView,
    Subscribe,
    Suggest,
    Suggestions,
    SuggestionView,
    Trust,
)
from daemon.runtime_dir import socket_path
from daemon.supervisor import Supervisor
from daemon.worktree import journal_path, lock_path, user_configuration_path


@asynccontextmanager
async def supervised(root: Path, gate: ScriptedGate) -> AsyncIterator[Client]:
    """A client of a daemon in this process; the daemon has ended afterwards."""
    instance = Instance(lock_path(root), socket_path(root))
    journal = Journal(journal_path(root))
    try:
        supervisor = Supervisor(root, load_configuration(root), journal, gate)  # type: ignore[arg-type]
        gate.skills = {e.digest: e.card.skill_id for e in supervisor._store.entries}
        served = asyncio.create_task(supervisor.run())
        while not socket_path(root).exists() and not served.done():
            await asyncio.wait({served}, timeout=0.01)
        client = await Client.connect(root, spawn=False, name="test")
        try:
            yield client
        finally:
            await client.call("shutdown", Shutdown())
            await client.close()
            await served
    finally:
        journal.close()
        instance.release()


async def suggestion(client: Client, skill: str) -> SuggestionView:
    """The suggestion of a skill as it is now, once its kernel is ranked."""
    answer = await client.call("suggest", Suggest(GEMM))
    assert isinstance(answer, Suggestions)
    return next(s for s in answer.suggestions if s.skill == skill)


async def until_stage(client: Client, skill: str, stage: str) -> SuggestionView:
    """The suggestion of a skill, once it is at a stage."""
    async with asyncio.timeout(PATIENCE_S):
        async for method, notice in client.notices():
            found = getattr(notice, "suggestions", None) or (
                [notice.suggestion] if method == "suggestion.changed" else []  # type: ignore[attr-defined]
            )
            for one in found:
                if (one.skill, one.stage) == (skill, stage):
                    return one
    raise AssertionError("the daemon ended")


async def test_a_saved_kernel_is_confirmed_and_applied_over_the_socket(place: Path) -> None:
    kernel = add_gemm(place)
    async with supervised(place, ScriptedGate()) as client:
        await client.call("subscribe", Subscribe())
        await client.call("trust", Trust(True))
        await until_stage(client, FASTEST, "confirmed")
        kernel.write_text(kernel.read_text().replace("acc", "total"))
        await until_stage(client, FASTEST, "screening")
        found = await until_stage(client, FASTEST, "confirmed")
        await client.call("apply", Apply(found.id))
        assert "total0" in kernel.read_text() or kernel.read_text().count("total") > 3


async def test_status_is_answered_while_the_gate_works(place: Path) -> None:
    add_gemm(place)
    gate = ScriptedGate(holds=lambda asked: True)
    async with supervised(place, gate) as client:
        await client.call("subscribe", Subscribe())
        await client.call("trust", Trust(True))
        async with asyncio.timeout(PATIENCE_S):
            async for method, notice in client.notices():
                if method == "job.progress" and notice.job.step == "timing":  # type: ignore[attr-defined]
                    break
        status = await client.call("status", Empty())
        assert isinstance(status, StatusView)
        running, *queued = status.jobs
        assert (running.state, running.step) == ("running", "timing")
        assert queued
        assert {job.state for job in queued} == {"queued"}


async def test_ending_interrupts_the_running_job_and_a_restart_takes_it_up(place: Path) -> None:
    add_gemm(place)
    gate = ScriptedGate(holds=lambda asked: True)
    async with supervised(place, gate) as client:
        await client.call("subscribe", Subscribe())
        await client.call("trust", Trust(True))
        async with asyncio.timeout(PATIENCE_S):
            async for method, notice in client.notices():
                if method == "job.progress" and notice.job.step == "timing":  # type: ignore[attr-defined]
                    break
    assert len(gate.cancelled) == 1
    journal = Journal(journal_path(place))
    states = {record.state for record in journal.jobs.newest(50)}
    assert journal.recover() == ()
    journal.close()
    assert "interrupted" in states
    assert "running" not in states
    async with supervised(place, ScriptedGate()) as client:
        await client.call("subscribe", Subscribe())
        found = await suggestion(client, FASTEST)
        if found.stage != "confirmed":
            await until_stage(client, FASTEST, "confirmed")


async def test_what_a_crash_cut_off_is_in_the_warnings_of_the_next_daemon(place: Path) -> None:
    journal = Journal(journal_path(place))
    journal.jobs.begin("0123456789ab", "c" * 64, "confirm")
    journal.close()
    async with supervised(place, ScriptedGate()) as client:
        status = await client.call("status", Empty())
        assert isinstance(status, StatusView)
        assert status.warnings == (
            "interrupted: confirm of 0123456789ab was running when the daemon ended",
        )
        assert client.hello.warnings[0] == status.warnings[0]


@pytest.mark.parametrize("kind", ["openai", "command", "spool"])
async def test_a_rewriter_that_is_configured_is_said_to_have_no_effect(
    place: Path, kind: str
) -> None:
    path = user_configuration_path()
    path.parent.mkdir(parents=True)
    path.write_text(f'[rewriter]\nkind = "{kind}"\n')
    async with supervised(place, ScriptedGate()) as client:
        status = await client.call("status", Empty())
        assert isinstance(status, StatusView)
        (warning,) = status.warnings
        assert warning.startswith(f'[rewriter] kind = "{kind}" has no effect: no rewriter')


async def test_no_rewriter_is_nothing_to_warn_of(place: Path) -> None:
    async with supervised(place, ScriptedGate()) as client:
        status = await client.call("status", Empty())
        assert isinstance(status, StatusView)
        assert status.warnings == ()
        assert isinstance(await client.call("ping", Empty()), Ok)
