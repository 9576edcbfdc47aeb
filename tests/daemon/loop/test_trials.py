"""Which verdicts become evidence, and what is written down of them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import msgspec
import pytest
from loop_parts import GEMM, GEMM_KERNEL, Parts, add_gemm, running
from scripted_gate import CPU, FASTEST, make_verdict

from daemon.loop.publishing import Publisher
from daemon.loop.trials import Trials
from gate.values.verdict import Status, Tier
from library.card import Provenance
from library.trial import Trial


@pytest.fixture
def state(tmp_path: Path) -> Path:
    return tmp_path / "state"


def kept(parts: Parts) -> tuple[Trial, ...]:
    return parts.store.find(FASTEST).evidence.trials


def trials_of(parts: Parts) -> Trials:
    publisher = Publisher(parts.notices, parts.board)
    return Trials(parts.store, publisher, lambda: "2026-11-30T12:00:00.5Z")


@pytest.mark.parametrize(
    ("tier", "status", "is_kept"),
    [
        (Tier.SCREEN, Status.FASTER, False),
        (Tier.SCREEN, Status.TIE, False),
        (Tier.SCREEN, Status.NOISY, False),
        (Tier.SCREEN, Status.SLOWER, False),
        (Tier.SCREEN, Status.UNMEASURED, False),
        (Tier.SCREEN, Status.WRONG, True),
        (Tier.SCREEN, Status.COMPILE_ERROR, True),
        (Tier.SCREEN, Status.CRASHED, True),
        (Tier.SCREEN, Status.TIMEOUT, True),
        (Tier.SCREEN, Status.SUSPICIOUS, True),
        (Tier.CONFIRM, Status.FASTER, True),
        (Tier.CONFIRM, Status.TIE, True),
        (Tier.CONFIRM, Status.SLOWER, True),
    ],
)
async def test_confirmations_and_failures_are_evidence_and_screened_speed_is_not(
    place: Path, state: Path, tier: Tier, status: Status, is_kept: bool
) -> None:
    add_gemm(place)
    async with running(place, state, trusted=False) as parts:
        await parts.save(GEMM)
        await parts.until(lambda: bool(parts.with_candidate()))
        suggestion = parts.suggestion(FASTEST)
        verdict = make_verdict(status=status, tier=tier)
        trials_of(parts).of_verdict(suggestion, parts.kernel(), verdict)
        assert [trial.status for trial in kept(parts)] == ([status.value] if is_kept else [])


async def test_a_trial_says_what_was_tried_where_and_what_came_of_it(
    place: Path, state: Path, tmp_path: Path
) -> None:
    add_gemm(place)
    async with running(place, state) as parts:
        await parts.save(GEMM)
        await parts.until_idle()
        (trial,) = kept(parts)
        entry = parts.store.find(FASTEST)
        user = tmp_path / "xdg_data_home" / "klineage" / "skills"
        (path,) = user.rglob("evidence/*/*.json")
        assert path.parent.name == entry.digest
        assert path.parent.parent.parent.name == entry.folder.name
        assert msgspec.json.decode(path.read_bytes(), type=Trial) == trial
        assert (trial.case, trial.language, trial.platform) == ("gemm", "opencl", CPU.name)
        assert (trial.kernel, trial.closure) == (GEMM_KERNEL, parts.kernel().kernel.closure)
        assert (trial.status, trial.tier) == ("faster", "confirm")
        assert trial.held_out
        (timing,) = trial.timings
        assert (timing.speedup, timing.axes) == (4.0, {"M": 256, "N": 256, "K": 256})


async def test_a_card_of_a_lineage_is_not_called_held_out_on_a_kernel_it_may_have_come_from(
    place: Path, state: Path
) -> None:
    add_gemm(place)
    async with running(place, state, trusted=False) as parts:
        await parts.save(GEMM)
        await parts.until(lambda: bool(parts.with_candidate()))
        suggestion = parts.suggestion(FASTEST)
        card = suggestion.offer.entry.card
        fields = {name: getattr(card, name) for name in card.__struct_fields__}
        fields["provenance"] = Provenance("lineage", GEMM)
        own = type(card)(**fields)
        entry = replace(suggestion.offer.entry, card=own, digest=own.digest)
        suggestion = replace(suggestion, offer=replace(suggestion.offer, entry=entry))
        trials_of(parts).of_verdict(suggestion, parts.kernel(), make_verdict(tier=Tier.CONFIRM))
        (trial,) = parts.store.evidence(own.digest).trials
        assert not trial.held_out


async def test_evidence_that_cannot_be_written_is_said_and_the_verdict_stands(
    place: Path, state: Path, tmp_path: Path
) -> None:
    add_gemm(place)
    skills = tmp_path / "xdg_data_home" / "klineage" / "skills"
    skills.parent.mkdir(parents=True)
    skills.write_text("in the way")
    async with running(place, state) as parts:
        await parts.save(GEMM)
        await parts.until_idle()
        assert parts.suggestion(FASTEST).is_confirmed_faster
        assert any(text.startswith("evidence not kept") for text in parts.messages("warning"))
