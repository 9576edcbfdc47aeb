"""The commented klineage.toml: every setting with its default and what it means."""

from __future__ import annotations

import ast
import inspect
import itertools
import json
import textwrap
from collections.abc import Iterator
from typing import Any

import msgspec

from daemon.configuration_tables import TABLES, Table

WIDTH = 98

REPOSITORY_HEAD = """\
# Settings of klineage for this repository. Lines such as `#poll = "auto"` show the defaults; take
# the # away to change one. What decides what runs on a machine (interpreters, devices, rewriters,
# budgets, keys) is each user's own, in ~/.config/klineage/klineage.toml; docs/configuration.md
# shows both.
"""

USER_HEAD = """\
# Your own settings of klineage, for all worktrees: ~/.config/klineage/klineage.toml. Lines such as
# `#poll = "auto"` show the defaults; take the # away to change one. A repository's klineage.toml
# may set the same, except for the keys marked "yours alone".
"""


def commented_default(*, user: bool = False) -> str:
    """TOML that sets nothing and shows every default; the repository's file, or the user's.

    Made from the settings types: their fields, defaults and the sentences below the fields.
    """
    parts = [USER_HEAD if user else REPOSITORY_HEAD]
    for name, table in TABLES.items():
        if user or not table.all_user_only:
            parts.extend(_table(name, table, table.kind, user))
    return "\n".join(parts)


def _table(name: str, table: Table, kind: Any, user: bool) -> Iterator[str]:
    if not (isinstance(kind, type) and issubclass(kind, msgspec.Struct)):
        yield f'[{name}]\n# One line for each action of the window: accept = "A".\n'
        return
    lines = [f"[{name}]", *_comment(inspect.cleandoc(kind.__doc__ or ""))]
    nested: list[tuple[str, type[msgspec.Struct]]] = []
    sentences = _sentences(kind)
    for field in msgspec.structs.fields(kind):
        if table.forbids_repository(field.name) and not user:
            continue
        default = field.default_factory() if field.default is msgspec.NODEFAULT else field.default
        if isinstance(default, msgspec.Struct):
            nested.append((f"{name}.{field.name}", type(default)))
            continue
        mark = "Yours alone. " if field.name in table.user_only else ""
        lines += ["", *_comment(mark + sentences[field.name])]
        lines.append(f"#{field.name} = {_toml(default)}")
    yield "\n".join(lines) + "\n"
    for inner, inner_kind in nested:
        yield from _table(inner, Table(inner_kind), inner_kind, user)


def _sentences(kind: type[msgspec.Struct]) -> dict[str, str]:
    """Field → the string literal below it in the class's source."""
    (definition,) = ast.parse(textwrap.dedent(inspect.getsource(kind))).body
    statements = definition.body if isinstance(definition, ast.ClassDef) else []
    found = {}
    for field, text in itertools.pairwise(statements):
        match field, text:
            case (
                ast.AnnAssign(target=ast.Name(id=name)),
                ast.Expr(value=ast.Constant(value=str(sentence))),
            ):
                found[name] = " ".join(sentence.split())
    return found


def _comment(text: str) -> list[str]:
    return textwrap.wrap(
        text,
        WIDTH,
        initial_indent="# ",
        subsequent_indent="# ",
        break_long_words=False,
        break_on_hyphens=False,
    )


def _toml(value: object) -> str:
    match value:
        case dict():
            return "{" + ", ".join(f"{json.dumps(k)} = {_toml(v)}" for k, v in value.items()) + "}"
        case tuple() | list():
            return "[" + ", ".join(_toml(item) for item in value) + "]"
        case _:
            # A TOML string, boolean or number is written as JSON writes it.
            return json.dumps(value)
