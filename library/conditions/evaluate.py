"""Deciding a condition in Kleene's three-valued logic, and saying which facts decided it."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from enum import StrEnum

from gate.values.workload import Axes, shape_label
from library.conditions.expression import Condition
from library.conditions.facts import Facts
from library.conditions.logic import (
    FIX_CARD,
    arithmetic,
    boolean,
    compare,
    conjunction,
    disjunction,
    merge,
    negation,
    short,
    show,
    show_answer,
    tuple_of,
)
from library.fact import Answer, Argument, Known, Missing, Value
from library.target import Captures

MAX_CHOICES = 64
"""Combinations of captured ranges one fact is asked of."""
ZERO = Known(0, "")


class Truth(StrEnum):
    """Kleene's three values. Unknown never counts as met."""

    MET = "met"
    UNMET = "unmet"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class FactUsed:
    """A fact a condition asked for."""

    text: str
    """As the condition writes it: `K`, `trip_count(loop)`."""
    answer: Answer


@dataclass(frozen=True, slots=True)
class Judgement:
    """Whether a condition holds, and the facts that decided it."""

    truth: Truth
    because: str
    """One line with values: `K=4096 % BLOCK_K=64 == 0`; for unknown also what is missing."""
    supply: str = ""
    """For unknown: what would supply the missing facts."""
    facts: tuple[FactUsed, ...] = ()


def judge(condition: Condition, facts: Facts, captures: Captures) -> Judgement:
    """The condition on a target, for one match of the card's anchor.

    Judged at every declared shape: met only if met at all of them, unmet if unmet at any.
    Names that are captures of the match stand for the captured range where a fact function takes
    them, and for the value of the captured text elsewhere. Never raises for what facts may hold:
    a division by zero or a wrong type is unknown, with that as its reason.
    """
    shapes: tuple[Axes | None, ...] = facts.shapes or (None,)
    at_shapes = [_Evaluation(condition, facts, captures, axes).judgement() for axes in shapes]
    for truth in (Truth.UNMET, Truth.UNKNOWN):
        for axes, judgement in zip(shapes, at_shapes, strict=True):
            if judgement.truth is truth:
                return _placed(judgement, axes, at_shapes)
    return _placed(at_shapes[0], shapes[0], at_shapes)


def _placed(judgement: Judgement, axes: Axes | None, every: list[Judgement]) -> Judgement:
    """Names the shape that decided, where the shapes differ."""
    if axes is None or len({each.because for each in every}) == 1:
        return judgement
    if judgement.truth is Truth.MET:
        where = f" (at all {len(every)} shapes)"
    else:
        where = f" (at {shape_label(axes)})"
    return Judgement(judgement.truth, judgement.because + where, judgement.supply, judgement.facts)


@dataclass(frozen=True, slots=True)
class _Part:
    """What a part of a condition comes to, and how it reads with the values in it."""

    answer: Answer
    reading: ast.expr


@dataclass(slots=True)
class _Evaluation:
    """One evaluation at one shape; collects the facts it asks for."""

    condition: Condition
    facts: Facts
    captures: Captures
    axes: Axes | None
    used: dict[str, Answer] = field(default_factory=dict)

    def judgement(self) -> Judgement:
        part = self._part(self.condition.tree)
        answer = boolean(part.answer, self.condition.text)
        reading = ast.unparse(part.reading)
        used = tuple(FactUsed(text, fact) for text, fact in self.used.items())
        if isinstance(answer, Missing):
            return Judgement(Truth.UNKNOWN, f"{reading}: {answer.reason}", answer.supply, used)
        return Judgement(Truth.MET if answer.value else Truth.UNMET, reading, "", used)

    def _part(self, node: ast.expr) -> _Part:
        match node:
            case ast.Constant(value=value):
                return _Part(Known(_value(value), "written in the condition"), _text(show(value)))
            case ast.Name(id=name):
                return self._named(name)
            case ast.Call():
                return self._call(node)
            case ast.BinOp(left=left, op=op, right=right):
                a, b = self._part(left), self._part(right)
                return _Part(
                    arithmetic(op, a.answer, b.answer), ast.BinOp(a.reading, op, b.reading)
                )
            case ast.UnaryOp(op=ast.Not() as op, operand=operand):
                a = self._part(operand)
                return _Part(
                    negation(boolean(a.answer, ast.unparse(operand))), ast.UnaryOp(op, a.reading)
                )
            case ast.UnaryOp(op=op, operand=operand):
                a = self._part(operand)
                return _Part(arithmetic(ast.Sub(), ZERO, a.answer), ast.UnaryOp(op, a.reading))
            case ast.BoolOp(op=op, values=values):
                parts = [self._part(value) for value in values]
                answers = [
                    boolean(part.answer, ast.unparse(value))
                    for part, value in zip(parts, values, strict=True)
                ]
                decided = conjunction(answers) if isinstance(op, ast.And) else disjunction(answers)
                return _Part(decided, ast.BoolOp(op, [part.reading for part in parts]))
            case ast.Compare():
                return self._comparison(node)
            case ast.Tuple(elts=elements):
                parts = [self._part(element) for element in elements]
                reading = ast.Tuple([part.reading for part in parts])
                return _Part(tuple_of([part.answer for part in parts]), reading)
        raise AssertionError(f"{ast.dump(node)} passed the parser")  # a bug of expression.py

    def _named(self, name: str) -> _Part:
        """A bare name: a fact, or the value of what an anchor captured under that name."""
        asked = name
        if name in self.captures:
            texts = {locus.text for locus in self.captures[name]}
            asked = texts.pop() if len(texts) == 1 else ""
            if asked.isascii() and asked.isdigit() and len(asked) <= 18:
                return _Part(Known(int(asked), f"captured by @{name}"), _text(asked))
        if asked.isidentifier():
            answer = self._note(asked, self.facts.name(asked, self.axes))
        else:
            reason = f"@{name} captured `{short(asked)}`, which is no single name or integer"
            answer = self._note(name, Missing(reason, FIX_CARD))
            asked = name
        return _Part(answer, _text(f"{asked}={show_answer(answer)}"))

    def _call(self, node: ast.Call) -> _Part:
        text = _call_text(node)
        function = node.func.id if isinstance(node.func, ast.Name) else ""
        choices: list[tuple[Argument, ...]] = [()]
        missing: list[Missing] = []
        for argument in node.args:
            given = self._argument(argument)
            if isinstance(given, Missing):
                missing.append(given)
            else:
                choices = [(*before, each) for before in choices for each in given]
        if missing:
            answer: Answer = merge(missing)
        elif len(choices) > MAX_CHOICES:
            answer = Missing(f"{text} would be asked of {len(choices)} ranges", FIX_CARD)
        else:
            answer = _agreed(text, [self.facts.call(function, c, self.axes) for c in choices])
        return _Part(self._note(text, answer), _text(f"{text}={show_answer(answer)}"))

    def _argument(self, node: ast.expr) -> tuple[Argument, ...] | Missing:
        """Values to pass: one, or one a range when an anchor captured several under a name."""
        if isinstance(node, ast.Name) and node.id in self.captures:
            return self.captures[node.id] or Missing(f"@{node.id} captured nothing", FIX_CARD)
        answer = self._part(node).answer
        return answer if isinstance(answer, Missing) else (answer.value,)

    def _comparison(self, node: ast.Compare) -> _Part:
        parts = [self._part(each) for each in (node.left, *node.comparators)]
        pairs = zip(node.ops, parts, parts[1:], strict=False)
        answers = [compare(op, a.answer, b.answer) for op, a, b in pairs]
        first, *rest = (part.reading for part in parts)
        return _Part(conjunction(answers), ast.Compare(first, node.ops, rest))

    def _note(self, text: str, answer: Answer) -> Answer:
        self.used[text] = answer
        return answer


def _text(text: str) -> ast.expr:
    # ast.unparse writes a name as it is, so a leaf with its value can stand for a name.
    return ast.Name(text, ast.Load())


def _call_text(node: ast.Call) -> str:
    written = [
        show(each.value) if isinstance(each, ast.Constant) else ast.unparse(each)
        for each in node.args
    ]
    return f"{ast.unparse(node.func)}({', '.join(written)})"


def _value(value: object) -> Value:
    if isinstance(value, bool | int | float | str):
        return value
    raise AssertionError(f"literal {value!r} passed the parser")  # a bug of expression.py


def _agreed(text: str, answers: list[Answer]) -> Answer:
    """One answer for a fact asked of several captured ranges: only if they all agree."""
    missing = [answer for answer in answers if isinstance(answer, Missing)]
    if missing:
        return merge(missing)
    if len({(type(a.value), a.value) for a in answers if isinstance(a, Known)}) > 1:
        return Missing(f"{text} differs between the {len(answers)} ranges captured", FIX_CARD)
    return answers[0]
