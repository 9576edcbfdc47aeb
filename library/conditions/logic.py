"""Kleene's connectives, arithmetic and comparison over answers. What cannot be computed is missing."""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable, Iterable, Mapping

from library.fact import Answer, Known, Missing, Value

MAX_MAGNITUDE = 2**128
FIX_CARD = "correct the condition in the card"

ARITHMETIC: Mapping[type[ast.operator], Callable[[float, float], float]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
}
ORDER: Mapping[type[ast.cmpop], Callable[[float, float], bool]] = {
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}


def show(value: object) -> str:
    """A value as a condition would write it, strings cut to 40 characters."""
    match value:
        case bool():
            return "true" if value else "false"
        case float():
            return f"{value:g}"
        case str():
            return f'"{short(value)}"'
        case tuple():
            return "(" + ", ".join(map(show, value)) + ")"
    return str(value)


def show_answer(answer: Answer) -> str:
    """The value of a fact, or `?` for one nobody has established."""
    return "?" if isinstance(answer, Missing) else show(answer.value)


def short(text: str) -> str:
    """Text on one line of at most 40 characters."""
    line = " ".join(text.split())
    return line if len(line) <= 40 else line[:37] + "..."


def merge(missing: Iterable[Missing]) -> Missing:
    """All reasons and all instructions, each once."""
    several = list(missing)
    reasons = dict.fromkeys(each.reason for each in several)
    supplies = dict.fromkeys(each.supply for each in several)
    return Missing("; ".join(reasons), "; ".join(supplies))


def boolean(answer: Answer, text: str) -> Answer:
    """The answer, missing unless it is true or false; `text` is what was asked."""
    if isinstance(answer, Known) and not isinstance(answer.value, bool):
        return Missing(f"`{text}` is {show(answer.value)}, neither true nor false", FIX_CARD)
    return answer


def negation(answer: Answer) -> Answer:
    """Kleene's not."""
    return answer if isinstance(answer, Missing) else Known(not answer.value, answer.because)


def conjunction(answers: Iterable[Answer]) -> Answer:
    """Kleene's and: false if any is false, else missing if any is missing."""
    several = list(answers)
    missing = [answer for answer in several if isinstance(answer, Missing)]
    if any(isinstance(answer, Known) and not answer.value for answer in several):
        return Known(False, "")
    return merge(missing) if missing else Known(True, "")


def disjunction(answers: Iterable[Answer]) -> Answer:
    """Kleene's or: true if any is true, else missing if any is missing."""
    return negation(conjunction([negation(answer) for answer in answers]))


def tuple_of(answers: list[Answer]) -> Answer:
    """All values as one, missing if any is."""
    missing = [answer for answer in answers if isinstance(answer, Missing)]
    if missing:
        return merge(missing)
    return Known(tuple(answer.value for answer in answers if isinstance(answer, Known)), "")


def _is_number(value: Value) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def arithmetic(op: ast.operator, left: Answer, right: Answer) -> Answer:
    """A finite number of magnitude at most 2**128; missing for anything else."""
    if isinstance(left, Missing) or isinstance(right, Missing):
        return merge(answer for answer in (left, right) if isinstance(answer, Missing))
    a, b = left.value, right.value
    if not (_is_number(a) and _is_number(b)):
        wrong = b if _is_number(a) else a
        return Missing(f"{show(wrong)} is not a number", FIX_CARD)
    try:
        result = ARITHMETIC[type(op)](a, b)  # type: ignore[arg-type]
    except (ZeroDivisionError, OverflowError) as error:
        return Missing(str(error), FIX_CARD)
    if isinstance(result, complex) or abs(result) > MAX_MAGNITUDE or not math.isfinite(result):
        return Missing("the result is no finite number below 2**128", FIX_CARD)
    return Known(result, "")


def compare(op: ast.cmpop, left: Answer, right: Answer) -> Answer:
    """True or false; missing where the two have no such comparison, as a string and a number."""
    if isinstance(left, Missing) or isinstance(right, Missing):
        return merge(answer for answer in (left, right) if isinstance(answer, Missing))
    a, b = left.value, right.value
    match op:
        case ast.In() | ast.NotIn():
            if not isinstance(b, tuple):
                return Missing(f"{show(b)} is no list to look in", FIX_CARD)
            found = any(_same_kind(a, each) and a == each for each in b)
            return Known(found is isinstance(op, ast.In), "")
        case ast.Eq() | ast.NotEq():
            if not _same_kind(a, b):
                return Missing(f"{show(a)} and {show(b)} cannot be compared", FIX_CARD)
            return Known((a == b) is isinstance(op, ast.Eq), "")
    if not (_is_number(a) and _is_number(b)):
        return Missing(f"{show(a)} and {show(b)} have no order", FIX_CARD)
    return Known(ORDER[type(op)](a, b), "")  # type: ignore[arg-type]


def _same_kind(a: Value, b: Value) -> bool:
    return type(a) is type(b) or (_is_number(a) and _is_number(b))
