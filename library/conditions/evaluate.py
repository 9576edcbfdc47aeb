"""Deciding a condition in Kleene's three-valued logic, and saying which facts decided it."""

from __future__ import annotations

import ast
from collections.abc import Mapping
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
SIGNS: Mapping[type[ast.AST], tuple[str, int]] = {
    ast.Or: ("or", 0),
    ast.And: ("and", 1),
    ast.Not: ("not", 2),
    ast.Eq: ("==", 3),
    ast.NotEq: ("!=", 3),
    ast.Lt: ("<", 3),
    ast.LtE: ("<=", 3),
    ast.Gt: (">", 3),
    ast.GtE: (">=", 3),
    ast.In: ("in", 3),
    ast.NotIn: ("not in", 3),
    ast.Add: ("+", 4),
    ast.Sub: ("-", 4),
    ast.Mult: ("*", 5),
    ast.FloorDiv: ("//", 5),
    ast.Mod: ("%", 5),
    ast.USub: ("-", 6),
    ast.Pow: ("**", 7),
}
"""Operator → how it is written and how tightly it binds. ast.unparse adds needless parentheses."""
ATOM = 8


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
    text: str
    level: int = ATOM
    """How tightly its outermost operator binds, as in SIGNS; names and calls bind tightest."""

    def within(self, level: int) -> str:
        """The text as an operand of an operator of that level, in parentheses if it needs them."""
        return self.text if self.level > level else f"({self.text})"


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
        used = tuple(FactUsed(text, fact) for text, fact in self.used.items())
        if isinstance(answer, Missing):
            return Judgement(Truth.UNKNOWN, f"{part.text}: {answer.reason}", answer.supply, used)
        return Judgement(Truth.MET if answer.value else Truth.UNMET, part.text, "", used)

    def _part(self, node: ast.expr) -> _Part:
        match node:
            case ast.Constant(value=value):
                return _Part(Known(_value(value), "written in the condition"), show(value))
            case ast.Name(id=name):
                return self._named(name)
            case ast.Call():
                return self._call(node)
            case ast.BinOp():
                return self._operation(node)
            case ast.UnaryOp(op=op, operand=operand):
                return self._unary(op, operand)
            case ast.BoolOp():
                return self._connective(node)
            case ast.Compare():
                return self._comparison(node)
            case ast.Tuple(elts=elements):
                parts = [self._part(element) for element in elements]
                listed = ", ".join(part.text for part in parts) + "," * (len(parts) == 1)
                return _Part(tuple_of([part.answer for part in parts]), f"({listed})")
        raise AssertionError(f"{ast.dump(node)} passed the parser")  # a bug of expression.py

    def _operation(self, node: ast.BinOp) -> _Part:
        left, right = self._part(node.left), self._part(node.right)
        sign, level = SIGNS[type(node.op)]
        # All but ** group to the left, so an equal on the right keeps its parentheses.
        power = isinstance(node.op, ast.Pow)
        text = f"{left.within(level - (not power))} {sign} {right.within(level)}"
        return _Part(arithmetic(node.op, left.answer, right.answer), text, level)

    def _unary(self, op: ast.unaryop, operand: ast.expr) -> _Part:
        part = self._part(operand)
        sign, level = SIGNS[type(op)]
        if isinstance(op, ast.Not):
            asked = boolean(part.answer, part.text)
            return _Part(negation(asked), f"{sign} {part.within(level - 1)}", level)
        negative = arithmetic(ast.Sub(), ZERO, part.answer)
        return _Part(negative, f"{sign}{part.within(level - 1)}", level)

    def _connective(self, node: ast.BoolOp) -> _Part:
        parts = [self._part(value) for value in node.values]
        answers = [boolean(part.answer, part.text) for part in parts]
        sign, level = SIGNS[type(node.op)]
        decided = conjunction(answers) if isinstance(node.op, ast.And) else disjunction(answers)
        return _Part(decided, f" {sign} ".join(part.within(level) for part in parts), level)

    def _named(self, name: str) -> _Part:
        """A bare name: a fact, or the value of what an anchor captured under that name."""
        asked = name
        if name in self.captures:
            texts = {locus.text for locus in self.captures[name]}
            asked = texts.pop() if len(texts) == 1 else ""
            if asked.isascii() and asked.isdigit() and len(asked) <= 18:
                return _Part(Known(int(asked), f"captured by @{name}"), asked)
        if asked.isidentifier():
            answer = self._note(asked, self.facts.name(asked, self.axes))
        else:
            reason = f"@{name} captured `{short(asked)}`, which is no single name or integer"
            answer = self._note(name, Missing(reason, FIX_CARD))
            asked = name
        return _Part(answer, f"{asked}={show_answer(answer)}")

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
        return _Part(self._note(text, answer), f"{text}={show_answer(answer)}")

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
        level = SIGNS[ast.Eq][1]
        text = parts[0].within(level)
        for op, part in zip(node.ops, parts[1:], strict=True):
            text += f" {SIGNS[type(op)][0]} {part.within(level)}"
        return _Part(conjunction(answers), text, level)

    def _note(self, text: str, answer: Answer) -> Answer:
        self.used[text] = answer
        return answer


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
