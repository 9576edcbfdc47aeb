"""Edits of Triton source that look hand-written: parameters, arguments, statements, names."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from library.edits import ByteEdit, Refusal, splice
from library.facts.triton import TritonAnalysis
from library.facts.triton_model import Model
from library.languages.python_source import Node, field, nodes_of
from library.target import Target

LINE_LENGTH = 100


def model_of(target: Target) -> Model | Refusal:
    """The model behind a target's analysis; a Refusal if it is no Triton kernel."""
    if not isinstance(target.analysis, TritonAnalysis):
        return Refusal(f"{target.kernel.entry} is {target.kernel.language.value}, not triton")
    return target.analysis.model


def replace(model: Model, node: Node, text: str) -> ByteEdit:
    """Put `text` where a node is."""
    return ByteEdit(model.source.path, node.start_byte, node.end_byte, text.encode())


def replace_range(model: Model, first: Node, last: Node, text: str) -> ByteEdit:
    """Put `text` where adjacent statements are, from the first's start to the last's end."""
    return ByteEdit(model.source.path, first.start_byte, last.end_byte, text.encode())


def insert_before(model: Model, statement: Node, lines: list[str]) -> ByteEdit:
    """Put lines before a statement, at its indentation."""
    indent = model.source.indent(statement)
    text = f"{joined(lines, indent)}\n{indent}"
    return ByteEdit(model.source.path, statement.start_byte, statement.start_byte, text.encode())


def joined(lines: list[str], indent: str) -> str:
    """Lines of one block; the first stands where the replaced statement began."""
    return "\n".join([lines[0], *(f"{indent}{line}" if line else "" for line in lines[1:])])


def indented(model: Model, node: Node, by: str = "    ") -> list[str]:
    """The lines of a statement, relative to its own indentation, moved right by `by`."""
    base = model.source.indent(node)
    return [
        f"{by}{line.removeprefix(base)}" if line.strip() else ""
        for line in model.text(node).splitlines()
    ]


def otherwise(model: Model, statements: Sequence[Node]) -> list[str]:
    """The statements as the `else` of an `if`, or as its `elif` where they are one `if`."""
    if len(statements) == 1 and statements[0].type == "if_statement":
        first, *rest = indented(model, statements[0], by="")
        return [f"el{first}", *rest]
    return ["else:", *(line for node in statements for line in indented(model, node))]


def decorate(model: Model, above: Node, expression: str, argument: str) -> ByteEdit:
    """Put a decorator on the line above another, its argument on a line of its own if too long."""
    line = f"@{expression}({argument})\n"
    if len(line) > LINE_LENGTH:
        line = f"@{expression}(\n    {argument}\n)\n"
    return ByteEdit(model.source.path, above.start_byte, above.start_byte, line.encode())


def loaded_as(model: Model, load: Node, replacement: str) -> str:
    """What a statement assigns, with its load replaced: `tl.load(…).to(tl.float16)` keeps the cast."""
    right = field(model.statement_of(load).named_children[0], "right")
    before = model.source.data[right.start_byte : load.start_byte].decode()
    after = model.source.data[load.end_byte : right.end_byte].decode()
    return f"{before}{replacement}{after}"


def add_parameters(model: Model, *declarations: str) -> ByteEdit:
    """Declare parameters after the kernel's last, laid out as the others are."""
    group = field(model.function.node, "parameters")
    return _grown(model, group, [_append(model, group, declarations)], declarations)[0]


def edit_arguments(
    model: Model, call: Node, replaced: Mapping[int, str], added: Sequence[str]
) -> tuple[ByteEdit, ...]:
    """Replace arguments' values (by the offset they start at) and pass keyword arguments more."""
    group = field(call, "arguments")
    edits = [replace(model, node, replaced[node.start_byte]) for node in _values(group, replaced)]
    if added:
        edits.append(_append(model, group, tuple(added)))
    return _grown(model, group, edits, added)


def _grown(
    model: Model, group: Node, edits: list[ByteEdit], added: Sequence[str]
) -> tuple[ByteEdit, ...]:
    """The edits of a list in parentheses, as one that writes an item a line if it grows too long."""
    growth = sum(len(edit.replacement) - (edit.end - edit.start) for edit in edits)
    start = model.source.data.rfind(b"\n", 0, group.start_byte) + 1
    end = model.source.data.find(b"\n", group.end_byte)
    length = (end if end >= 0 else len(model.source.data)) - start
    if group.start_point[0] != group.end_point[0] or not length <= LINE_LENGTH < length + growth:
        return tuple(edits)
    indent = model.source.indent(group)
    texts = [*(_edited(model, child, edits) for child in group.named_children), *added]
    lines = "".join(f"\n{indent}    {text}," for text in texts)
    return (replace(model, group, f"({lines}\n{indent})"),)


def _edited(model: Model, node: Node, edits: Sequence[ByteEdit]) -> str:
    """The text of a node with the edits that replace parts of it."""
    start = node.start_byte
    mine = [
        ByteEdit(edit.path, edit.start - start, edit.end - start, edit.replacement)
        for edit in edits
        if start <= edit.start < edit.end <= node.end_byte
    ]
    return splice(model.source.data[start : node.end_byte], mine).decode()


def _values(group: Node, replaced: Mapping[int, str]) -> list[Node]:
    """The argument values to replace."""
    values = [
        field(child, "value") if child.type == "keyword_argument" else child
        for child in group.named_children
    ]
    return [node for node in values if node.start_byte in replaced]


def fresh(model: Model, name: str) -> str:
    """`name`, or `name` with a number that no identifier of the kernel's module has."""
    taken = {model.text(node) for node in nodes_of(model.source.root, "identifier")}
    if name not in taken:
        return name
    return next(f"{name}_{n}" for n in range(2, 1000) if f"{name}_{n}" not in taken)


def rename(text: str, old: str, new: str) -> str:
    """`text` with one identifier replaced; attributes of that name are left alone."""
    return re.sub(rf"(?<![\w.]){re.escape(old)}\b", new, text)


def language_alias(model: Model) -> str | None:
    """How the module spells `triton.language`: `tl`."""
    return _alias(model, "triton.language")


def triton_alias(model: Model) -> str | None:
    """How the module spells `triton`."""
    return _alias(model, "triton")


def _alias(model: Model, dotted: str) -> str | None:
    for name, item in model.module.imports.items():
        if item.dotted == dotted:
            return name
    return None


def _append(model: Model, group: Node, items: tuple[str, ...]) -> ByteEdit:
    """Add items before the closing parenthesis of a parameter or argument list."""
    path = model.source.path
    members = [child for child in group.named_children if child.type != "comment"]
    if not members:
        at = group.end_byte - 1
        return ByteEdit(path, at, at, ", ".join(items).encode())
    last = members[-1]
    comma = last.next_sibling is not None and last.next_sibling.type == ","
    own_lines = comma and group.end_point[0] > last.end_point[0]
    at = last.next_sibling.end_byte if comma and last.next_sibling is not None else last.end_byte
    if not own_lines:
        text = "".join(f", {item}" for item in items)
        return ByteEdit(path, last.end_byte, last.end_byte, text.encode())
    spread = len({child.start_point[0] for child in members}) == len(members)
    indent = model.source.indent(last)
    if spread:
        text = "".join(f"\n{indent}{item}," for item in items)
    else:
        text = f"\n{indent}{', '.join(items)},"
    return ByteEdit(path, at, at, text.encode())
