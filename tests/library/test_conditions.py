"""The condition language: what parses, what it decides, and what it says about it."""

from __future__ import annotations

import ast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from target_builders import MadeUpAnalysis, feature, locus, platform, target

from library.conditions import Judgement, TargetFacts, Truth, judge, parse
from library.errors import ConditionError
from library.fact import Known, Missing
from library.target import Captures, Presence, Target


def decide(text: str, on: Target | None = None, captures: Captures | None = None) -> Judgement:
    return judge(parse(text), TargetFacts(on or target()), captures or {})


def with_facts(**names: object) -> Target:
    return target(MadeUpAnalysis(names=names))  # type: ignore[arg-type]


def test_a_met_condition_reads_with_its_values() -> None:
    judgement = decide("K % BLOCK_K == 0", with_facts(K=4096, BLOCK_K=64))
    assert judgement.truth is Truth.MET
    assert judgement.because == "K=4096 % BLOCK_K=64 == 0"
    assert [fact.text for fact in judgement.facts] == ["K", "BLOCK_K"]


@pytest.mark.parametrize(
    "text",
    [
        "A == 1 and B == 2 and A < B",
        "(A == 1 or B == 1) and not B == 1",
        "A == 1 or B == 1 and A == 2",
        "not (A == 1 and B == 1)",
        "(A + B) * 2 - (A - (B - 1)) == 6",
        "(A - B) - B == -3 and A - (B - B) == 1",
        "(A * B) ** 2 == 4 and A * B ** 2 == 4 and (-A) ** 2 == -(-A)",
        "(A < B) == (B > A)",
        "A in (1, 2) and A not in (3, (4, 5))",
    ],
)
def test_a_reading_groups_as_the_condition_does(text: str) -> None:
    judgement = decide(text, with_facts(A=1, B=2))
    assert judgement.truth is not Truth.UNKNOWN
    plain = judgement.because.replace("A=1", "A").replace("B=2", "B")
    same = ast.dump(ast.parse(plain)) == ast.dump(ast.parse(text))
    assert same, f"{text} reads {plain}"
    assert plain.count("(") <= text.count("(")


def test_a_fact_is_asked_once_for_the_same_arguments_and_shape() -> None:
    analysis = MadeUpAnalysis(calls={"f": True})
    facts = TargetFacts(target(analysis))
    for text in ("f(1)", "f(1) and f(1)", "f(1.0)", "f(2)"):
        judge(parse(text), facts, {})
    assert [arguments for _, arguments in analysis.asked] == [(1,), (1.0,), (2,)]


def test_a_condition_must_hold_at_every_declared_shape() -> None:
    shapes = ({"K": 128}, {"K": 100})
    judgement = decide("K % 64 == 0", target(MadeUpAnalysis(shapes=shapes)))
    assert judgement.truth is Truth.UNMET
    assert judgement.because == "K=100 % 64 == 0 (at K=100)"


def test_a_condition_met_at_all_shapes_says_so() -> None:
    judgement = decide("K % 64 == 0", target(MadeUpAnalysis(shapes=({"K": 128}, {"K": 64}))))
    assert judgement.truth is Truth.MET
    assert judgement.because == "K=128 % 64 == 0 (at all 2 shapes)"


def test_an_unknown_fact_names_what_would_supply_it() -> None:
    judgement = decide("K % 64 == 0 and written(p)")
    assert judgement.truth is Truth.UNKNOWN
    assert judgement.because.startswith("K=? % 64 == 0 and written(p)=?: nothing gives K")
    assert judgement.supply == "declare K in SHAPES; declare p in SHAPES"


@pytest.mark.parametrize(
    ("text", "truth"),
    [
        ("unknown_fact() and 1 > 2", Truth.UNMET),
        ("unknown_fact() and 2 > 1", Truth.UNKNOWN),
        ("unknown_fact() or 2 > 1", Truth.MET),
        ("unknown_fact() or 1 > 2", Truth.UNKNOWN),
        ("not unknown_fact()", Truth.UNKNOWN),
        ("1 < 2 < missing < 1", Truth.UNKNOWN),
        ("2 < 1 < missing", Truth.UNMET),
        ('language in ("opencl", "cuda")', Truth.MET),
        ('language not in ("opencl", "cuda")', Truth.UNMET),
        ('language == "opencl"', Truth.MET),
        ("2 ** 10 == 1024 and 7 // 2 == 3 and -1 < 0", Truth.MET),
        ("0.5 < 1 <= 1.0", Truth.MET),
    ],
)
def test_logic_is_kleenes(text: str, truth: Truth) -> None:
    assert decide(text).truth is truth


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("8 % ZERO == 0", "modulo"),
        ("WORD + 1 == 2", '"abc" is not a number'),
        ("WORD < 3", '"abc" and 3 have no order'),
        ("WORD == 3", '"abc" and 3 cannot be compared'),
        ("BIG ** 64 > 1", "2**128"),
        ("ZERO", "neither true nor false"),
        ("ZERO and 1 > 0", "neither true nor false"),
        ("1 in ZERO", "no list"),
        ("1e308 * 1e308 > 1", "2**128"),
    ],
)
def test_what_cannot_be_computed_is_unknown_with_a_reason(text: str, reason: str) -> None:
    judgement = decide(text, with_facts(ZERO=0, WORD="abc", BIG=2**62))
    assert judgement.truth is Truth.UNKNOWN
    assert reason in judgement.because


def test_a_capture_is_passed_to_a_fact_function_as_its_range() -> None:
    analysis = MadeUpAnalysis(calls={"trip_count": 64})
    loop = locus("for (…)")
    judgement = decide("trip_count(loop) >= 4", target(analysis), {"loop": (loop,)})
    assert judgement.truth is Truth.MET
    assert judgement.because == "trip_count(loop)=64 >= 4"
    assert analysis.asked == [("trip_count", (loop,))]


def test_a_capture_outside_a_call_is_the_value_of_its_text() -> None:
    on = with_facts(K=96)
    bound = {"bound": (locus("K"),), "step": (locus("32"),), "odd": (locus("K - 1"),)}
    assert decide("bound % step == 0", on, bound).because == "K=96 % 32 == 0"
    assert "no single name" in decide("odd == 1", on, bound).because


def test_a_fact_of_several_captured_ranges_must_agree() -> None:
    class Differing(MadeUpAnalysis):
        def call(self, function, arguments, axes):  # type: ignore[no-untyped-def]
            return Known(arguments[0].start, "")

    captures = {"use": (locus("a", 1), locus("b", 2))}
    judgement = decide("first(use) == 1", target(Differing()), captures)
    assert judgement.truth is Truth.UNKNOWN
    assert "differs between the 2 ranges" in judgement.because


def test_a_missing_argument_makes_the_fact_missing_without_asking_it() -> None:
    analysis = MadeUpAnalysis(calls={"aligned": True})
    assert decide("aligned(x, 16)", target(analysis)).truth is Truth.UNKNOWN
    assert analysis.asked == []


def test_capabilities_come_from_the_platform_alone() -> None:
    hopper = target(on=platform("sm_90a", wgmma=True))
    blackwell = target(on=platform("sm_120", wgmma=False))
    assert decide('capability("wgmma")', hopper).truth is Truth.MET
    assert decide('capability("wgmma")', blackwell).truth is Truth.UNMET
    assert decide('capability("tma")', hopper).truth is Truth.UNKNOWN
    assert "klineage doctor" in decide('capability("wgmma")').supply
    assert decide('platform_is("sm_*")', hopper).truth is Truth.MET
    assert decide('platform_is("sm_*")').truth is Truth.UNKNOWN


def test_features_are_present_absent_or_unknown() -> None:
    loop, elsewhere = locus("for", 40), locus("for", 60)
    features = (
        feature("F02", Presence.PRESENT, loop),
        feature("F05", Presence.ABSENT),
        feature("F03", Presence.UNKNOWN, detail="only PTX shows it"),
    )
    on = target(MadeUpAnalysis(features=features))
    captures = {"here": (loop,), "there": (elsewhere,)}
    assert decide('has("F02") and absent("F05")', on).truth is Truth.MET
    assert decide('has("F02", here) and absent("F02", there)', on, captures).truth is Truth.MET
    assert "only PTX shows it" in decide('has("F03")', on).because
    assert decide('absent("F03")', on).truth is Truth.UNKNOWN
    assert decide('has("F07")', on).truth is Truth.UNKNOWN


def test_a_condition_over_the_platform_alone_is_known_as_such() -> None:
    assert parse('capability("tma") and platform_is("sm_9*")').about_platform_alone
    assert not parse('capability("tma") and K > 1').about_platform_alone
    assert not parse("1 > 0").about_platform_alone


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("__import__('os').system('x')", "__import__('os').system('x')"),
        ("(lambda: 1)()", "lambda"),
        ("f(a=1" + "+1" * 240 + ")", "f(a=1+1"),
        ("[k for k in x]", "for k in x"),
        ("x.y", "x.y"),
        ("x[0]", "x[0]"),
        ("f(a=1)", "f(a=1)"),
        ("f(*a)", "f(*a)"),
        ("x is None", "x is None"),
        ("K / 2 == 1", "K / 2"),
        ("K ** N == 1", "`N`"),
        ("2 ** 65 == 1", "`65`"),
        ("True", "True"),
        ("b'x' == y", "b'x'"),
        ("99999999999999999999 > K", "99999999999999999999"),
        ('has("F99")', "F99"),
        ("has(F02)", "has(F02)"),
        ("capability()", "capability()"),
        ("K ==", "K =="),
        ("", "not an expression"),
        ("a\0b", "not an expression"),
        ("K" + " + 1" * 200, "characters long"),
        ("-" * 100 + "1", "nests deeper"),
        ("(" * 240 + "1" + ")" * 240, "not an expression"),
    ],
)
def test_a_condition_that_is_not_allowed_names_the_offending_text(text: str, named: str) -> None:
    with pytest.raises(ConditionError) as caught:
        parse(text)
    assert named in str(caught.value)


ATOMS = st.sampled_from(
    [
        "K",
        "loop",
        "0",
        "1",
        "7",
        "2.5",
        '"ab"',
        "f(loop)",
        "f(K,1)",
        'has("F02")',
        "missing",
        "()",
        'capability("tma")',
        "(1,2)",
        "language",
    ]
)
OPERATORS = [
    "+",
    "-",
    "*",
    "//",
    "%",
    "==",
    "!=",
    "<",
    "<=",
    ">",
    ">=",
    "and",
    "or",
    "in",
    "not in",
]
EXPRESSIONS = st.recursive(
    ATOMS,
    lambda inner: st.one_of(
        st.tuples(
            inner,
            st.sampled_from(OPERATORS),
            inner,
        ).map(lambda parts: f"({' '.join(parts)})"),
        inner.map(lambda text: f"(not {text})"),
        inner.map(lambda text: f"(-{text})"),
        inner.map(lambda text: f"({text} ** 9)"),
    ),
    max_leaves=12,
)
VALUES = st.one_of(
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(max_size=5),
    st.tuples(st.integers(), st.text(max_size=2)),
)


@given(text=EXPRESSIONS, k=VALUES, f=st.one_of(VALUES, st.just(Missing("no", "do"))))
@settings(max_examples=300, deadline=None)
def test_any_condition_that_parses_is_decided_whatever_the_facts_hold(
    text: str, k: object, f: object
) -> None:
    try:
        condition = parse(text)
    except ConditionError:
        return
    on = target(MadeUpAnalysis(names={"K": k}, calls={"f": f}))  # type: ignore[dict-item]
    judgement = judge(condition, TargetFacts(on), {"loop": (locus(),)})
    assert judgement.truth in set(Truth)
    assert judgement.truth is not Truth.UNKNOWN or judgement.supply


@given(text=st.text(max_size=60))
@settings(max_examples=300, deadline=None)
def test_parsing_any_text_gives_a_condition_or_a_condition_error(text: str) -> None:
    try:
        parse(text)
    except ConditionError:
        return
