"""What a detector saw: present at a place, absent, or unknown."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from library.facts.triton_model import LANGUAGE_PACKAGE, Model
from library.languages.python_module import Module
from library.languages.python_source import Node, Source, nodes_of
from library.target import Presence


@dataclass(frozen=True, slots=True)
class Seen:
    """A detector's answer."""

    presence: Presence
    detail: str
    node: Node | None = None
    source: Source | None = None
    of_launch: bool = False
    """True if helpers could not change the answer."""


def present(model: Model, node: Node | None, detail: str, source: Source | None = None) -> Seen:
    """The feature is there, at `node` of the kernel's module (or of `source`)."""
    return Seen(Presence.PRESENT, detail, node, source or model.source)


def absent(model: Model, node: Node | None, detail: str, of_launch: bool = False) -> Seen:
    """The source shows that the feature is not there."""
    return Seen(Presence.ABSENT, detail, node, model.source, of_launch)


def unknown(detail: str) -> Seen:
    """The source cannot tell."""
    return Seen(Presence.UNKNOWN, detail)


def bodies(model: Model) -> Iterator[tuple[Module, Node]]:
    """The kernel's body and those of the helpers it reaches, each with its module."""
    yield model.module, model.function.body
    for module, helper in model.helpers:
        yield module, helper.function.body


def language_calls(model: Model, *names: str) -> Iterator[tuple[Source, Node]]:
    """Calls of `triton.language` functions, in helpers too."""
    wanted = {LANGUAGE_PACKAGE + name for name in names}
    for module, body in bodies(model):
        for call in nodes_of(body, "call"):
            if module.callee(call) in wanted:
                yield module.source, call


def call_of(model: Model, *names: str) -> Seen:
    """Present if any of some `triton.language` functions is called."""
    for source, call in language_calls(model, *names):
        return present(model, call, source.text(call).split("(")[0], source)
    return absent(model, None, f"no tl.{' or tl.'.join(names)}")
