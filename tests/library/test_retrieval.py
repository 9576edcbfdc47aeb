"""What applies, what is blocked and excluded, in which order, and why."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from target_builders import MadeUpAnalysis, card, feature, locus, platform, target, trial

from gate.values.kernel import Language
from library.card import Card, Effect, FeatureRef, Scope, SketchCarrier
from library.conditions import Truth
from library.evidence import derive
from library.retrieval import Answer, Offer, explain, retrieve
from library.retrieval.ranking import claimed, expect
from library.skill_folder import write_skill
from library.store import Entry, Place, Store
from library.target import Presence, Target
from library.trial import Trial

CPU = platform("pocl-cpu", device_type="cpu", tma=False)


def store_of(*cards: Card, trials: Sequence[Trial] = ()) -> Store:
    """A store that holds these cards, as if loaded."""
    store = Store([])
    store.entries = tuple(entry_of(each, trials) for each in cards)
    return store


def entry_of(skill: Card, trials: Sequence[Trial] = ()) -> Entry:
    own = [each for each in trials if each.card == skill.digest]
    return Entry(skill, skill.digest, "shipped", Path("skills"), derive(own))


def only(on: Target, skill: Card, trials: Sequence[Trial] = ()) -> Offer:
    (offer,) = retrieve(on, store_of(skill, trials=trials)).offers
    return offer


def about(offer: Offer) -> list[tuple[str, Truth]]:
    return [(reason.about, reason.truth) for reason in offer.reasons]


def test_a_skill_whose_conditions_all_hold_applies_with_the_facts_that_decided() -> None:
    on = target(MadeUpAnalysis(shapes=({"N": 64},)), on=CPU)
    offer = only(on, card(checks={"whole-vectors": "N % 8 == 0"}))
    assert offer.answer is Answer.APPLIES
    assert offer.reason == ""
    assert offer.conditions[0].judgement.because == "N=64 % 8 == 0"
    assert offer.locus is not None


@pytest.mark.parametrize(
    ("check", "truth"),
    [("N % 8 == 0", Truth.UNMET), ("M % 8 == 0", Truth.UNKNOWN), (None, Truth.UNKNOWN)],
)
def test_an_unmet_an_unknown_and_an_unjudged_condition_block(
    check: str | None, truth: Truth
) -> None:
    on = target(MadeUpAnalysis(shapes=({"N": 60},)), on=CPU)
    offer = only(on, card(checks={"whole-vectors": check}))
    assert offer.answer is Answer.BLOCKED
    assert ("whole-vectors", truth) in about(offer)


def test_a_condition_of_the_device_alone_excludes_when_it_is_unmet() -> None:
    offer = only(target(on=CPU), card(checks={"has-tma": 'capability("tma")'}, category="hardware"))
    assert offer.answer is Answer.EXCLUDED
    unasked = only(target(), card(checks={"has-tma": 'capability("tma")'}, category="hardware"))
    assert unasked.answer is Answer.BLOCKED


def test_another_language_excludes() -> None:
    assert only(target(language=Language.CUDA, on=CPU), card()).reason.startswith("language unmet")
    scoped = card(scope=Scope(languages=("triton",)))
    assert only(target(on=CPU), scoped).answer is Answer.EXCLUDED


@pytest.mark.parametrize(
    ("patterns", "name", "answer"),
    [
        (("sm_*",), "sm_90a", Answer.APPLIES),
        (("sm_9*", "pocl-*"), "pocl-cpu", Answer.APPLIES),
        (("sm_9*",), "sm_120", Answer.EXCLUDED),
    ],
)
def test_platforms_are_matched_by_pattern(
    patterns: tuple[str, ...], name: str, answer: Answer
) -> None:
    skill = card(scope=Scope(platforms=patterns))
    assert only(target(on=platform(name)), skill).answer is answer


def test_an_unasked_device_blocks_a_skill_that_is_for_some_platforms() -> None:
    offer = only(target(), card(scope=Scope(platforms=("sm_*",))))
    assert offer.answer is Answer.BLOCKED
    assert "klineage doctor" in offer.reasons[1].supply


def test_another_operator_excludes_and_an_undeclared_one_blocks() -> None:
    skill = card(scope=Scope(cases=("gemm",)))
    assert only(target(on=CPU, case="gemm"), skill).answer is Answer.APPLIES
    assert only(target(on=CPU, case="softmax"), skill).answer is Answer.EXCLUDED
    undeclared = only(target(on=CPU, case=""), skill)
    assert undeclared.answer is Answer.BLOCKED
    assert "OPERATOR" in undeclared.against[0].supply


@pytest.mark.parametrize(
    ("presence", "required", "conflicting", "provided"),
    [
        (Presence.PRESENT, Answer.APPLIES, Answer.EXCLUDED, Answer.EXCLUDED),
        (Presence.ABSENT, Answer.EXCLUDED, Answer.APPLIES, Answer.APPLIES),
        (Presence.UNKNOWN, Answer.BLOCKED, Answer.BLOCKED, Answer.APPLIES),
    ],
)
def test_features_required_conflicting_and_provided(
    presence: Presence, required: Answer, conflicting: Answer, provided: Answer
) -> None:
    on = target(MadeUpAnalysis(features=(feature("F05", presence),)), on=CPU)
    assert only(on, card(requires=("F05",))).answer is required
    assert only(on, card(conflicts=("F05",))).answer is conflicting
    assert only(on, card(provides=("F05",))).answer is provided


def test_a_skill_is_offered_until_all_it_provides_is_there() -> None:
    features = (feature("F05"), feature("F03", Presence.ABSENT))
    on = target(MadeUpAnalysis(features=features), on=CPU)
    assert only(on, card(provides=("F05", "F03"))).answer is Answer.APPLIES


def test_a_feature_provided_at_a_loop_is_judged_at_that_loop() -> None:
    first, second = locus("for (a)", 10), locus("for (b)", 40)
    analysis = MadeUpAnalysis(
        features=(feature("F29", Presence.PRESENT, first),),
        matches=({"loop": (first,)}, {"loop": (second,)}),
    )
    skill = msgspec.structs.replace(card(), provides=(FeatureRef("F29", "loop"),))
    offer = only(target(analysis, on=CPU), skill)
    assert offer.answer is Answer.APPLIES
    assert offer.locus == second


def test_a_feature_at_a_locus_that_nothing_captured_is_judged_in_the_whole_kernel() -> None:
    features = (feature("F05"), feature("F02", Presence.ABSENT))
    on = target(MadeUpAnalysis(features=features), on=CPU)
    for required, answer in (("F05", Answer.APPLIES), ("F02", Answer.EXCLUDED)):
        skill = msgspec.structs.replace(card(), requires=(FeatureRef(required, "tile"),))
        assert only(on, skill).answer is answer
    provided = (FeatureRef("F05", "tile"), FeatureRef("F02"))
    skill = msgspec.structs.replace(card(), provides=provided)
    assert only(on, skill).answer is Answer.APPLIES


def test_every_place_a_skill_applies_at_is_an_offer_of_its_own() -> None:
    loops = [locus(f"for ({name})", 10 * n) for n, name in enumerate("abc", 1)]
    analysis = MadeUpAnalysis(matches=tuple({"loop": (loop,)} for loop in loops))
    offers = retrieve(target(analysis, on=CPU), store_of(card())).offers
    assert [offer.locus for offer in offers] == loops
    assert len({offer.id for offer in offers}) == 3


def test_an_anchor_that_captures_the_kernel_gives_one_offer() -> None:
    kernel = locus("kernel", 0)
    matches = tuple({"kernel": (kernel,), "loop": (locus("for", at),)} for at in (10, 20))
    offers = retrieve(target(MadeUpAnalysis(matches=matches), on=CPU), store_of(card())).offers
    assert len(offers) == 1
    assert offers[0].locus == locus("for", 10)


def test_where_a_skill_applies_nowhere_the_closest_place_is_shown() -> None:
    class TripCounts(MadeUpAnalysis):
        def call(self, function, arguments, axes):  # type: ignore[no-untyped-def]
            self.calls = {"trips": arguments[0].start}
            return super().call(function, arguments, axes)

    matches = ({"loop": (locus("for", 3),)}, {"loop": (locus("for", 9),)})
    checks = {"long": "trips(loop) >= 8", "longer": "trips(loop) >= 10"}
    offer = only(target(TripCounts(matches=matches), on=CPU), card(checks=checks))
    assert offer.answer is Answer.BLOCKED
    assert offer.locus is not None
    assert offer.locus.start == 9


def test_no_match_of_the_anchor_excludes() -> None:
    offer = only(target(MadeUpAnalysis(matches=()), on=CPU), card())
    assert offer.answer is Answer.EXCLUDED
    assert "anchor" in offer.reason


def test_an_anchor_that_is_no_query_excludes_with_the_fault() -> None:
    class Strict(MadeUpAnalysis):
        def anchors(self, query):  # type: ignore[no-untyped-def]
            raise ValueError("Invalid node type at row 0, column 1: foo")

    assert "Invalid node type" in only(target(Strict(), on=CPU), card()).reason


def test_a_card_that_meets_a_fault_of_ours_costs_the_others_nothing(
    caplog: pytest.LogCaptureFixture,
) -> None:
    class Faulty(MadeUpAnalysis):
        def call(self, function, arguments, axes):  # type: ignore[no-untyped-def]
            raise TypeError("unhashable")

    cards = (card("opencl.a", checks={"x": "f(1)"}), card("opencl.b"))
    offers = retrieve(target(Faulty(), on=CPU), store_of(*cards)).offers
    assert [offer.answer for offer in offers] == [Answer.APPLIES, Answer.EXCLUDED]
    assert "TypeError: unhashable" in offers[1].reason
    assert "opencl.a" in caplog.text
    assert "could not be judged" in explain(entry_of(cards[0]), target(Faulty())).lines[1]


def test_offer_ids_depend_on_kernel_closure_card_and_match_alone() -> None:
    skill = card()
    offer = only(target(on=CPU), skill)
    assert len(offer.id) == 12
    assert only(target(on=platform("other")), skill).id == offer.id
    assert only(target(on=CPU, closure="9" * 64), skill).id != offer.id
    assert only(target(on=CPU), card(claims=(1.0, 9.0))).id != offer.id


def test_a_kernel_where_a_skill_was_slower_is_not_offered_it_again_on_that_platform() -> None:
    skill = card()
    slower = trial(skill.digest, "slower", 0.93, closure="c" * 64)
    offer = only(target(on=CPU), skill, [slower])
    assert offer.answer is Answer.BLOCKED
    assert offer.reason == "evidence unmet: slower here on pocl-cpu: measured 0.93x (trial t1)"
    assert only(target(on=platform("sm_90a")), skill, [slower]).answer is Answer.APPLIES
    assert only(target(on=CPU, closure="9" * 64), skill, [slower]).answer is Answer.APPLIES


def test_a_suspended_skill_is_excluded_with_the_trial_that_suspended_it() -> None:
    skill = card()
    trials = [trial(skill.digest), trial(skill.digest, "wrong", None, id="t2", closure="e" * 64)]
    offer = only(target(on=CPU), skill, trials)
    assert offer.answer is Answer.EXCLUDED
    assert "trial t2" in offer.reason


def test_expected_text_names_trials_and_platform_or_says_it_is_a_claim() -> None:
    skill = card(claims=(1.2, 2.0))
    three = [
        trial(skill.digest, speedup=speedup, id=f"t{n}", closure=f"{n}" * 64)
        for n, speedup in enumerate((2.0, 2.1, 1.9))
    ]
    assert only(target(on=CPU), skill, three).expected == "1.78x (3 trials on pocl-cpu)"
    assert only(target(on=CPU), skill, three[:1]).expected.endswith("(1 trial on pocl-cpu)")
    assert (
        only(target(on=platform("sm_90a")), skill, three).expected == "1.2–2x claimed, untried here"
    )
    assert only(target(on=CPU), card(claims=None)).expected == "no gain claimed, untried here"


def test_prediction_is_the_stated_shrinkage() -> None:
    skill = card(claims=(1.0, 4.0))
    trials = [trial(skill.digest, speedup=3.0), trial(skill.digest, "crashed", None, id="t2")]
    gain = expect(skill, derive(trials), "pocl-cpu").gain
    prior = 0.5 * math.log(2.0)
    assert gain == pytest.approx(math.exp((prior + math.log(3.0) + 0.0) / 3))


def test_a_claim_may_be_given_as_speedup_or_as_latency() -> None:
    assert claimed([Effect("latency", "down", 0.5, 0.8)]) == (1.25, 2.0)
    assert claimed([Effect("registers", "up", 1, 2), Effect("speedup", "up", 1.1, 1.3)]) == (
        1.1,
        1.3,
    )
    assert claimed([Effect("speedup", "up")]) is None


def test_applying_offers_are_ranked_by_predicted_gain_then_blocked_then_excluded() -> None:
    modest = card("opencl.modest", claims=(1.01, 1.1))
    bold = card("opencl.bold", claims=(2.0, 8.0))
    proven = card("opencl.proven", claims=(1.2, 2.0))
    blocked = card("opencl.blocked", claims=(9.0, 9.0), checks={"k": "1 > 2"})
    excluded = card("opencl.excluded", claims=(9.0, 9.0), scope=Scope(platforms=("sm_*",)))
    trials = [trial(proven.digest, speedup=4.0, id=f"t{n}", closure=f"{n}" * 64) for n in range(5)]
    cards = [excluded, modest, blocked, bold, proven]
    offers = retrieve(target(on=CPU), store_of(*cards, trials=trials)).offers
    names = [offer.entry.card.skill_id.removeprefix("opencl.") for offer in offers]
    assert names == ["proven", "bold", "modest", "blocked", "excluded"]
    assert [offer.rank for offer in offers] == [1, 2, 3, 4, 5]


def test_the_nearest_miss_is_the_first_of_the_blocked() -> None:
    far = card("opencl.a-far", claims=(9.0, 9.0), checks={"k": "1 > 2", "l": "missing"})
    near = card("opencl.b-near", checks={"k": "1 > 2", "l": "2 > 1"})
    offers = retrieve(target(on=CPU), store_of(far, near)).offers
    assert [offer.entry.card.skill_id for offer in offers] == ["opencl.b-near", "opencl.a-far"]


def test_slower_elsewhere_lowers_the_rank() -> None:
    tried, untried = card("opencl.a-tried"), card("opencl.b-untried")
    slower = trial(tried.digest, "slower", 0.8)
    offers = retrieve(target(on=CPU), store_of(tried, untried, trials=[slower])).offers
    assert [offer.entry.card.skill_id for offer in offers] == ["opencl.b-untried", "opencl.a-tried"]


@given(order=st.permutations(range(6)))
@settings(max_examples=25, deadline=None)
def test_the_order_of_offers_does_not_depend_on_the_order_of_cards(order: list[int]) -> None:
    cards = [card(f"opencl.s{n}", claims=(1.1, 1.1 + (n % 3))) for n in range(6)]
    expected = [o.id for o in retrieve(target(on=CPU), store_of(*cards)).offers]
    shuffled = store_of(*(cards[n] for n in order))
    assert [o.id for o in retrieve(target(on=CPU), shuffled).offers] == expected


def test_a_carrier_without_a_transform_applies_but_is_not_mechanical() -> None:
    offer = only(target(on=CPU), card(carrier=SketchCarrier("Stage the tile.")))
    assert offer.answer is Answer.APPLIES
    assert not offer.mechanical


def test_an_explanation_gives_every_reason_and_what_would_make_it_apply() -> None:
    on = target(MadeUpAnalysis(shapes=({"K": 100},)), on=CPU)
    explanation = explain(entry_of(card(checks={"whole-tiles": "K % 64 == 0"})), on)
    assert explanation.answer is Answer.BLOCKED
    assert explanation.lines[0] == "opencl.scale-wide blocked on scale.cl::scale"
    assert "unmet    whole-tiles: K=100 % 64 == 0" in explanation.lines
    assert "would apply if whole-tiles must hold (now K=100 % 64 == 0)" in explanation.lines
    assert any(
        line.startswith("expected 1.2–2x claimed, untried here") for line in explanation.lines
    )


def test_an_excluded_skill_is_explained_down_to_its_conditions() -> None:
    skill = card(scope=Scope(platforms=("sm_90a",)), checks={"tiles": "K % 64 == 0"})
    explanation = explain(entry_of(skill), target(on=CPU))
    assert explanation.answer is Answer.EXCLUDED
    assert "unmet    platform: pocl-cpu (the skill is for sm_90a)" in explanation.lines
    assert any(line.startswith("unknown  tiles:") for line in explanation.lines)
    assert not any(line.startswith("would apply") for line in explanation.lines)


def test_an_explanation_names_trials_and_the_other_places() -> None:
    skill = card()
    loops = tuple({"loop": (locus("for", at),)} for at in range(10, 90, 10))
    explanation = explain(
        entry_of(skill, [trial(skill.digest)]), target(MadeUpAnalysis(matches=loops), on=CPU)
    )
    assert "trial t1: faster at confirm on scale.cl::scale (pocl-cpu)" in explanation.lines
    assert explanation.lines[-1] == "and at 2 more places"


def test_retrieval_reads_cards_and_evidence_from_disk(tmp_path: Path) -> None:
    skill = card(checks={"n": "N >= 8"})
    write_skill(tmp_path / "opencl-scale-wide", skill, "# Overview\n")
    store = Store([Place("user", tmp_path)]).load()
    on = target(MadeUpAnalysis(shapes=({"N": 64},)), on=CPU)
    assert retrieve(on, store).having(Answer.APPLIES)[0].expected == "1.2–2x claimed, untried here"
    store.add_trial(store.find(skill.skill_id), trial(skill.digest, speedup=3.0))
    again = retrieve(on, store)
    assert again.having(Answer.APPLIES)[0].expected == "1.93x (1 trial on pocl-cpu)"
