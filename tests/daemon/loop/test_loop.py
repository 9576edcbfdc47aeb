"""What happens when files change: real files, the real library, every change told once."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from loop_parts import (
    GEMM,
    GEMM_KERNEL,
    SAMPLES,
    add_gemm,
    asking,
    change_of,
    paths_of,
    running,
)
from scripted_gate import FASTEST, ScriptedGate

import daemon.loop.detecting
from daemon.protocol import Empty, Suggest
from daemon.watcher import Batch, Change
from library.card import read_card, write_card

NAIVE = (SAMPLES / "gemm/opencl/gemm_naive.cl").read_text()


@pytest.fixture
def state(tmp_path: Path) -> Path:
    return tmp_path / "state"


def add_kernels(root: Path, count: int) -> list[str]:
    """Kernels in folders of their own, each with another closure and a workload."""
    paths = []
    for number in range(count):
        folder = root / f"op{number}"
        folder.mkdir()
        (folder / "gemm_naive.cl").write_text(NAIVE.replace("acc", f"acc{number}"))
        (folder / "workload.py").write_bytes((SAMPLES / "gemm/opencl/workload.py").read_bytes())
        paths.append(f"op{number}/gemm_naive.cl")
    return paths


def fill_library(user: Path, wanted: int) -> None:
    """Shipped cards copied under other ids into the user's place."""
    shipped = sorted((SAMPLES.parent / "library" / "skills").glob("*/references/card.json"))
    for number in range(wanted - len(shipped)):
        source = shipped[number % len(shipped)]
        card = read_card(source)
        fields = {name: getattr(card, name) for name in card.__struct_fields__}
        fields["skill_id"] = f"{card.skill_id}-copy-{number}"
        folder = user / f"copy-{number}"
        write_card(type(card)(**fields), folder / "references" / "card.json")
        (folder / "SKILL.md").write_text("A copy.\n")


async def test_a_scan_with_few_kernels_gates_them_and_one_with_many_gates_none(
    place: Path, state: Path
) -> None:
    paths = add_kernels(place, 3)
    (place / "klineage.toml").write_text("[daemon]\ngate_at_start = 3\n")
    async with running(place, state) as parts:
        await parts.scan()
        await parts.until_idle()
        assert {kernel.path for kernel, _ in parts.gate.traced} == set(paths)
    (place / "klineage.toml").write_text("[daemon]\ngate_at_start = 2\n")
    async with running(place, state / "two") as parts:
        await parts.scan()
        await parts.until_idle()
        assert parts.gate.traced == []
        assert len(parts.board.kernels) == 3
        await parts.edit(paths[0], "acc0", "total")
        await parts.until_idle()
        assert {kernel.path for kernel, _ in parts.gate.traced} == {paths[0]}


async def test_asking_for_everything_gates_nothing_and_asking_for_one_file_gates_it(
    place: Path, state: Path
) -> None:
    paths = add_kernels(place, 3)
    (place / "klineage.toml").write_text("[daemon]\ngate_at_start = 2\n")
    async with running(place, state) as parts:
        await parts.scan()
        every = await parts.handlers.suggest(Suggest())
        assert {s.path for s in every.suggestions} == set(paths)
        await parts.until_idle()
        assert parts.gate.asked == []
        one = await parts.handlers.suggest(Suggest(path=paths[1], wait=True))
        assert {s.path for s in one.suggestions} == {paths[1]}
        assert {asked.baseline.path for asked in parts.gate.asked} == {paths[1]}


async def test_a_deleted_file_is_forgotten_with_its_kernels_and_jobs(
    place: Path, state: Path
) -> None:
    add_gemm(place)
    gate = ScriptedGate(holds=lambda asked: True)
    async with running(place, state, gate) as parts:
        await parts.save(GEMM)
        await parts.until(lambda: bool(gate.asked))
        (place / GEMM).unlink()
        await parts.save(GEMM)
        await parts.until_idle()
        assert (parts.board.files, parts.board.kernels) == ({}, {})
        assert parts.queue.jobs == ()
        last = parts.heard("file.changed")[-1]
        assert (last.gone, last.file.path) == (True, GEMM)  # type: ignore[attr-defined]
        gone = parts.heard("suggestions.changed")[-1]
        assert (gone.kernel, gone.suggestions) == (GEMM_KERNEL, ())  # type: ignore[attr-defined]


async def test_a_file_with_a_problem_keeps_its_place_and_says_what_is_wrong(
    place: Path, state: Path
) -> None:
    add_gemm(place)
    async with running(place, state) as parts:
        await parts.save(GEMM)
        await parts.edit(GEMM, "float acc = 0.0f;", "float acc = ;")
        file = parts.board.files[GEMM]
        assert file.problems
        assert file.problems[0].startswith("line ")
        await parts.loop.deliver(
            Batch((Change(GEMM, problem="cannot be read: Permission denied"),), rescan=False)
        )
        assert parts.board.files[GEMM].problems == ("cannot be read: Permission denied",)
        assert parts.board.kernels == {}
        await parts.save(GEMM, NAIVE)
        assert parts.board.files[GEMM].problems == ()
        assert GEMM_KERNEL in parts.board.kernels


async def test_a_file_that_holds_no_kernel_is_not_told(place: Path, state: Path) -> None:
    async with running(place, state) as parts:
        await parts.save("setup.py", "print('hello')\n")
        assert parts.board.files == {}
        assert parts.heard("file.changed") == []


async def test_an_edited_include_renews_the_kernels_that_include_it(
    place: Path, state: Path
) -> None:
    add_gemm(place)
    (place / "gemm/sizes.cl").write_text("#define ONE 1\n")
    source = '#include "sizes.cl"\n' + NAIVE.replace("++k", "k += ONE")
    async with running(place, state) as parts:
        await parts.save(GEMM, source)
        before = parts.kernel().kernel.closure
        await parts.save("gemm/sizes.cl", "#define ONE 2\n")
        assert parts.kernel().kernel.closure != before
        assert paths_of(parts.heard("file.changed"))[-1] == GEMM


async def test_an_include_written_later_is_found(place: Path, state: Path) -> None:
    add_gemm(place)
    source = '#include "sizes.cl"\n' + NAIVE.replace("++k", "k += ONE")
    async with running(place, state) as parts:
        await parts.save(GEMM, source)
        assert parts.board.files[GEMM].problems
        await parts.save("gemm/sizes.cl", "#define ONE 1\n")
        assert parts.board.files[GEMM].problems == ()
        assert "gemm/sizes.cl" in {file.path for file in parts.kernel().kernel.files}


async def test_a_configured_workload_written_later_is_found(place: Path, state: Path) -> None:
    add_gemm(place)
    (place / "gemm/workload.py").rename(place / "inputs.py")
    workload = (place / "inputs.py").read_bytes()
    (place / "inputs.py").unlink()
    (place / "klineage.toml").write_text(f'[watch.workloads]\n"{GEMM}" = "inputs.py"\n')
    async with running(place, state) as parts:
        await parts.save(GEMM)
        assert parts.kernel().workload is None
        await parts.save("inputs.py", workload)
        await parts.until_idle()
        assert parts.suggestion(FASTEST).is_confirmed_faster


async def test_the_same_content_is_told_once_however_often_it_is_delivered(
    place: Path, state: Path
) -> None:
    add_gemm(place)
    async with running(place, state) as parts:
        await parts.scan()
        await parts.until_idle()
        count = len(parts.gate.asked)
        await parts.scan()
        await parts.loop.refresh([GEMM, "gemm/workload.py"])
        await parts.until_idle()
        assert paths_of(parts.heard("file.changed")) == [GEMM]
        assert len(parts.gate.asked) == count


async def test_what_is_learned_of_the_device_does_not_swallow_a_save(
    place: Path, state: Path
) -> None:
    add_gemm(place)
    async with running(place, state) as parts:
        await parts.save(GEMM)
        await parts.until_idle()
        # Saved, and not yet told by the watcher, when the kernel is ranked again.
        (place / GEMM).write_text(NAIVE.replace("acc", "total"))
        await parts.loop.relook([GEMM])
        await parts.save(GEMM)
        await parts.until_idle()
        data = (place / GEMM).read_bytes()
        assert {a.baseline.file(GEMM).data for a in parts.gate.asked} >= {data}


@pytest.mark.timeout(110)
async def test_two_hundred_changed_files_are_each_told_once_before_any_is_ranked(
    place: Path, state: Path, tmp_path: Path
) -> None:
    fill_library(tmp_path / "xdg_data_home" / "klineage" / "skills", 300)
    for number in range(200):
        (place / f"k{number}.cl").write_text(NAIVE.replace("acc", f"acc{number}"))
    async with running(place, state) as parts:
        assert len(parts.store.entries) == 300
        async with asking(parts.scan()) as scanning:
            await parts.until(lambda: bool(parts.said))
            status = await parts.handlers.status(Empty())
            assert status.files < 200
            await scanning
        told = Counter(paths_of(parts.heard("file.changed")))
        assert told == Counter({f"k{number}.cl": 1 for number in range(200)})
        features = {n.file.kernels[0].features for n in parts.heard("file.changed")}  # type: ignore[attr-defined]
        assert all(features)
        ranked = [s for s in parts.heard("suggestions.changed") if s.suggestions]  # type: ignore[attr-defined]
        assert len(ranked) < 200
        # A save meanwhile is not kept waiting until all of them are ranked.
        await parts.edit("k0.cl", "acc0", "total")
        unranked = sum(not state.suggestions for state in parts.board.kernels.values())
        assert parts.kernel("k0.cl::gemm_naive").suggestions
        assert unranked > 0
        # Nor is a question about a file.
        last = next(s for s in parts.board.kernels.values() if not s.suggestions)
        answer = await parts.handlers.suggest(Suggest(path=last.kernel.path))
        assert answer.suggestions
        assert Counter(paths_of(parts.heard("file.changed"))) == told + Counter({"k0.cl": 1})


async def test_source_nobody_foresaw_hides_no_other_file(
    place: Path, state: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    add_kernels(place, 2)
    real = daemon.loop.detecting.detect

    def trips(path, data, read, configured):  # type: ignore[no-untyped-def]
        if path.startswith("op0"):
            raise ZeroDivisionError("nobody foresaw this")
        return real(path, data, read, configured)

    monkeypatch.setattr(daemon.loop.detecting, "detect", trips)
    async with running(place, state) as parts:
        await parts.scan()
        (problem,) = parts.board.files["op0/gemm_naive.cl"].problems
        assert "nobody foresaw this" in problem
        assert parts.kernel("op1/gemm_naive.cl::gemm_naive").suggestions
    assert "nobody foresaw this" in caplog.text


async def test_an_analysis_that_fails_on_one_kernel_hides_no_other(
    place: Path, state: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    add_kernels(place, 2)
    real = daemon.loop.detecting.retrieve

    def trips(target, store):  # type: ignore[no-untyped-def]
        if target.kernel.path.startswith("op0"):
            raise ZeroDivisionError("nobody foresaw this")
        return real(target, store)

    monkeypatch.setattr(daemon.loop.detecting, "retrieve", trips)
    async with running(place, state) as parts:
        await parts.scan()
        await parts.until_idle()
        assert parts.kernel("op0/gemm_naive.cl::gemm_naive").suggestions == ()
        assert parts.suggestion(FASTEST, "op1/gemm_naive.cl::gemm_naive").is_confirmed_faster
    assert "nobody foresaw this" in caplog.text


async def test_requests_about_a_kernel_wait_for_the_look_that_is_under_way(
    place: Path, state: Path
) -> None:
    add_gemm(place)
    async with running(place, state, trusted=False) as parts:
        await parts.save(GEMM)
        (place / GEMM).write_text(NAIVE.replace("acc", "total"))
        batch = Batch((change_of(place, GEMM),), rescan=False)
        async with asking(parts.loop.deliver(batch)) as delivering:
            await parts.loop.ranked([GEMM])
            assert b"total" in parts.kernel().kernel.file(GEMM).data
            assert parts.with_candidate()
            await delivering


async def test_a_client_that_leaves_leaves_no_half_a_look_behind(place: Path, state: Path) -> None:
    add_gemm(place)
    async with running(place, state) as parts:
        await parts.save(GEMM)
        await parts.until_idle()
        (place / GEMM).write_text(NAIVE.replace("acc", "total"))
        async with asking(parts.handlers.suggest(Suggest(GEMM))) as leaving:
            leaving.cancel()
        await parts.until(lambda: b"total" in parts.kernel().kernel.file(GEMM).data)
        await parts.save(GEMM)
        await parts.until_idle()
        assert paths_of(parts.heard("file.changed")) == [GEMM, GEMM]
        assert parts.suggestion(FASTEST).is_confirmed_faster


async def test_a_client_that_leaves_while_a_kernel_is_ranked_leaves_it_to_be_ranked(
    place: Path, state: Path
) -> None:
    paths = [f"k{number}.cl" for number in range(40)]
    for number, path in enumerate(paths):
        (place / path).write_text(NAIVE.replace("acc", f"acc{number}"))
    async with running(place, state, trusted=False) as parts:
        await parts.scan()
        async with asking(parts.loop.ranked(paths)) as leaving:
            leaving.cancel()
        await parts.until(lambda: all(state.suggestions for state in parts.board.kernels.values()))
