"""Hold a row in one block: passes over it become straight-line code, its rereads disappear."""

from __future__ import annotations

import re

from library.edits import ByteEdit, Refusal, splice
from library.facts.triton_host import tensor
from library.facts.triton_model import Model
from library.facts.triton_rows import RowPasses, row_passes_of
from library.languages.python_source import Node, field, inside, nodes_of
from library.target import Captures, Target
from library.transforms import Parameters
from library.transforms.triton.source_edits import (
    edit_arguments,
    joined,
    model_of,
    rename,
    replace_range,
    triton_alias,
)

ZERO: tuple[str, ...] = ("0", "0.0")
EVICTION = re.compile(r',\s*eviction_policy="\w+"')
"""A row that is read once has no pass to keep it in L2 for."""
LOWEST: tuple[str, ...] = ('-float("inf")', 'float("-inf")', "-float('inf')", "float('-inf')")


def whole_row(
    target: Target, captures: Captures, parameters: Parameters
) -> tuple[ByteEdit, ...] | Refusal:
    """Run each pass once over a block of next_power_of_2(row) lanes, and load the row once.

    Masks stay as they are, so rows of any width are right as long as one block can hold them.
    """
    model = model_of(target)
    if isinstance(model, Refusal):
        return model
    rows, triton = row_passes_of(model), triton_alias(model)
    if rows is None or triton is None or model.site is None:
        return Refusal("the kernel's loops are not several passes over the same row")
    block, extent = model.site.arguments.get(rows.block), model.site.arguments.get(rows.bound)
    if block is None or extent is None:
        return Refusal(f"the launch does not pass {rows.block} and {rows.bound}")
    first, last = rows.loops[0].node, rows.loops[-1].node
    lines = _straightened(model, rows, _statements_between(first, last))
    if isinstance(lines, Refusal):
        return lines
    indent = model.source.indent(first)
    start, dropped = _folded_initials(model, rows, lines)
    edits = [
        replace_range(model, first, last, joined(lines, indent)),
    ]
    width = f"{triton}.next_power_of_2({model.text(extent)})"
    edits += edit_arguments(model, model.site.call, {block.start_byte: width}, [])
    edits += [_without_line(model, node) for node in dropped if node.end_byte <= start]
    return tuple(edits)


def _statements_between(first: Node, last: Node) -> list[Node]:
    """Sibling statements from the first loop to the last, comments included."""
    found = [first]
    while found[-1] != last:
        following = found[-1].next_named_sibling
        if following is None:
            break
        found.append(following)
    return found


def _straightened(model: Model, rows: RowPasses, statements: list[Node]) -> list[str] | Refusal:
    """The statements with every loop replaced by one run of its body, repeated loads left out."""
    loops = {loop.node.start_byte: loop for loop in rows.loops}
    lines: list[str] = []
    known: dict[str, str] = {}
    for statement in statements:
        loop = loops.get(statement.start_byte)
        if loop is None:
            if lines and statement.start_point[0] > _previous_line(statement) + 1:
                lines.append("")
            lines += _relative(model, statement)
            _forget(model, known, statement)
            continue
        if lines and lines[-1] and statement.start_point[0] > _previous_line(statement) + 1:
            lines.append("")
        aliases: dict[str, str] = {}
        for inner in field(loop.node, "body").named_children:
            written = "\n".join(_relative(model, inner))
            if inner.type == "comment" and inner.start_point[0] == _previous_line(inner):
                lines[-1] += f"  {written}"
                continue
            zeroed = _at_zero(model, inner, loop.variable)
            if zeroed is None:
                return Refusal(f"`{written}` needs {loop.variable} itself")
            text = EVICTION.sub("", zeroed)
            for old, new in aliases.items():
                text = rename(text, old, new)
            alias = re.fullmatch(r"(\w+) = (\w+)", text)
            if alias is not None and text != written and _stays_inside(model, rows, alias[1]):
                aliases[alias[1]] = alias[2]
            elif text not in known:
                lines += text.splitlines()
                _forget(model, known, inner)
                if _repeatable(text):
                    known[text] = text.split(" = ")[0]
    return lines


def _folded_initials(model: Model, rows: RowPasses, lines: list[str]) -> tuple[int, list[Node]]:
    """Fold `m = -inf` … `m = tl.maximum(m, E)` to `m = E` and `s = 0.0` … `s += E` to `s = E`.

    Changes `lines` in place; gives the offset of the first loop and the initial statements before
    it that are no longer needed.
    """
    start = rows.loops[0].node.start_byte
    dropped: list[Node] = []
    for index, line in enumerate(lines):
        maximum = re.fullmatch(r"(\w+) = \w+\.maximum\((\w+), (.*)\)", line)
        total = re.fullmatch(r"(\w+) \+= (.*)", line)
        if maximum is not None and maximum[1] == maximum[2] and _balanced(maximum[3]):
            name, value, initial = maximum[1], maximum[3], LOWEST
        elif total is not None:
            name, value, initial = total[1], total[2], ZERO
        else:
            continue
        bindings = model.assignments.get(name, ())
        plain = [n for n in bindings if _initial_value(model, n) in initial]
        if len(plain) != 1 or len(bindings) != 2:
            continue
        if plain[0].start_byte < start:
            dropped.append(model.statement_of(plain[0]))
        elif model.text(plain[0]) in lines[:index]:
            lines[lines.index(model.text(plain[0]))] = _DROPPED
        else:
            continue
        lines[index] = f"{name} = {value}"
    lines[:] = _tidy(lines)
    return start, dropped


def _initial_value(model: Model, binding: Node) -> str:
    right = binding.child_by_field_name("right") if binding.type == "assignment" else None
    return model.text(right) if right is not None else ""


_DROPPED = "\0"


def _tidy(lines: list[str]) -> list[str]:
    """Without dropped lines, and without blank lines at the start or in a row."""
    kept = [line for line in lines if line != _DROPPED]
    return [
        line for i, line in enumerate(kept) if line or (i > 0 and kept[i - 1] and i + 1 < len(kept))
    ]


def _at_zero(model: Model, statement: Node, variable: str) -> str | None:
    """A statement's lines with the loop's variable at 0: `start + cols` becomes `cols`.

    None if the variable is used in any other way, such as `2 * start`.
    """
    base, edits = statement.start_byte, []
    for name in nodes_of(statement, "identifier"):
        if model.text(name) != variable:
            continue
        addition = name.parent
        if addition is None or addition.type != "binary_operator":
            return None
        left, right = field(addition, "left"), field(addition, "right")
        if model.text(field(addition, "operator")) != "+" or name not in (left, right):
            return None
        other = model.text(right if name == left else left).encode()
        start, end = addition.start_byte - base, addition.end_byte - base
        edits.append(ByteEdit(model.source.path, start, end, other))
    text = splice(model.text(statement).encode(), edits).decode()
    indent = model.source.indent(statement)
    return "\n".join(line.removeprefix(indent) for line in text.splitlines())


def _balanced(text: str) -> bool:
    depth = 0
    for character in text:
        depth += (character in "([{") - (character in ")]}")
        if depth < 0:
            return False
    return depth == 0


def _stays_inside(model: Model, rows: RowPasses, name: str) -> bool:
    """Whether a name is used in the loops alone."""
    return all(
        any(inside(node, loop.node) for loop in rows.loops)
        for node in nodes_of(model.function.body, "identifier")
        if model.text(node) == name
    )


def _repeatable(text: str) -> bool:
    """Whether a statement only computes a value from others, so that a second run is idle."""
    match = re.match(r"(\w+) = ", text)
    if match is None or "atomic_" in text or "inline_asm" in text:
        return False
    return match[1] not in re.findall(r"\w+", text[match.end() :])


def _forget(model: Model, known: dict[str, str], statement: Node) -> None:
    """A value is no longer known once something it mentions, or its target, is assigned."""
    assigned = {
        model.text(name)
        for node in nodes_of(statement, "assignment", "augmented_assignment")
        for name in nodes_of(field(node, "left"), "identifier")
    }
    stored = {
        tensor_name
        for call in model.calls("store", statement)
        for node in nodes_of(field(call, "arguments"), "identifier")
        if (tensor_name := tensor(model, model.text(node))) is not None
    }
    for text in list(known):
        names = set(re.findall(r"\w+", text))
        reads = {tensor(model, name) for name in names} - {None}
        if names & assigned or reads & stored:
            del known[text]


def _relative(model: Model, node: Node) -> list[str]:
    base = model.source.indent(node)
    return [line.removeprefix(base) for line in model.text(node).splitlines()]


def _previous_line(node: Node) -> int:
    previous = node.prev_named_sibling
    return previous.end_point[0] if previous is not None else node.start_point[0]


def _without_line(model: Model, statement: Node) -> ByteEdit:
    """Delete a statement with its whole line."""
    data = model.source.data
    start = data.rfind(b"\n", 0, statement.start_byte) + 1
    end = data.find(b"\n", statement.end_byte) + 1
    return ByteEdit(model.source.path, start, end, b"")
