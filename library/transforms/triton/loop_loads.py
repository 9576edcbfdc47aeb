"""The statements of a loop that load a product's operands, to be wrapped as one group."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from library.edits import Refusal
from library.facts.triton_gemm import Gemm
from library.facts.triton_model import Model
from library.languages.python_source import Node, field, inside, nodes_of


@dataclass(frozen=True, slots=True)
class LoadGroup:
    """Adjacent statements that load both operands, with the masks only they use."""

    statements: tuple[Node, ...]


def load_group(model: Model, gemm: Gemm, kept: Sequence[str]) -> LoadGroup | Refusal:
    """The loads of A and B in the loop; a Refusal if other statements stand between them.

    `kept` is what will stand beside the group: a name it mentions is not made part of the group.
    """
    names = {word for text in kept for word in re.findall(r"\w+", text)}
    body = [n for n in field(gemm.loop.node, "body").named_children if n.type != "comment"]
    loads = [
        index
        for index, statement in enumerate(body)
        if any(inside(load, statement) for op in (gemm.a, gemm.b) for load in op.loads)
    ]
    if not loads:
        return Refusal("the operands are not loaded by statements of the loop itself")
    first, last = loads[0], loads[-1]
    while first > 0 and _only_feeds(model, body[first - 1], body[first : last + 1], gemm, names):
        first -= 1
    for index in range(first, last + 1):
        if index not in loads and not _only_feeds(
            model, body[index], body[first : last + 1], gemm, names
        ):
            return Refusal(f"`{model.text(body[index])}` stands between the loads of A and B")
    return LoadGroup(tuple(body[first : last + 1]))


def _only_feeds(
    model: Model, statement: Node, group: list[Node], gemm: Gemm, kept: set[str]
) -> bool:
    """Whether a statement assigns a name that nothing outside the group reads."""
    node = statement.named_children[0] if statement.named_children else statement
    if node.type != "assignment" or field(node, "left").type != "identifier":
        return False
    name = model.text(field(node, "left"))
    if name in (gemm.a.name, gemm.b.name, gemm.accumulator) or name in kept:
        return False
    return all(
        inside(use, statement) or any(inside(use, member) for member in group)
        for use in nodes_of(model.function.body, "identifier")
        if model.text(use) == name
    )
