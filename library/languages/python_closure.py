"""What decides a Python-hosted kernel's behaviour: everything its names reach in the repository."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from library.languages.python_module import Module, Repository
from library.languages.python_source import Node, Source, field, walk
from library.languages.python_tokens import token_digest


@dataclass(frozen=True, slots=True)
class Closure:
    """The definitions reached, the modules they are in, and what could not be found."""

    pieces: tuple[tuple[str, Source, Node], ...]
    """(`path:name`, source, statement)."""
    modules: tuple[Module, ...]
    """The kernel's own first."""
    outside: tuple[tuple[str, str], ...]
    """(name, dotted name) of what leads out of the repository: ("tl", "triton.language")."""

    @property
    def digest(self) -> str:
        """Digest over normalized tokens; comments, formatting and docstrings leave it alone."""
        return token_digest(self.pieces, (f"{name}={dotted}" for name, dotted in self.outside))


def closure_of(repository: Repository, module: Module, names: Iterable[str]) -> Closure:
    """The closure of some module-level names: definitions they mention, and those these mention."""
    pieces: dict[tuple[str, int], tuple[str, Source, Node]] = {}
    modules = {module.source.path: module}
    outside: set[tuple[str, str]] = set()
    pending = [(module, name) for name in names]
    seen: set[tuple[str, str]] = set()
    while pending:
        owner, name = pending.pop()
        if (owner.source.path, name) in seen:
            continue
        seen.add((owner.source.path, name))
        modules[owner.source.path] = owner
        for node in owner.definitions.get(name, ()):
            key = (owner.source.path, node.start_byte)
            pieces[key] = (f"{owner.source.path}:{name}", owner.source, node)
            pending.extend(_mentions(repository, owner, node, outside))
        if name not in owner.definitions and name in owner.imports:
            item = owner.imports[name]
            found = repository.imported(owner, item)
            if found is not None and found[1]:
                pending.append(found)
            elif found is None:
                outside.add((name, item.dotted))
    return Closure(tuple(pieces.values()), tuple(modules.values()), tuple(sorted(outside)))


def _mentions(
    repository: Repository, owner: Module, node: Node, outside: set[tuple[str, str]]
) -> Iterator[tuple[Module, str]]:
    """Module-level names a statement mentions, those reached through an imported module too."""
    for leaf in walk(node):
        if leaf.type != "identifier":
            continue
        name = owner.source.text(leaf)
        if name in owner.definitions:
            yield owner, name
        elif name in owner.imports:
            found = repository.imported(owner, owner.imports[name])
            if found is None or found[1]:
                yield owner, name
            elif (parent := leaf.parent) is not None and parent.type == "attribute":
                symbol = found[0].source.text(field(parent, "attribute"))
                if symbol in found[0].definitions:
                    yield found[0], symbol
                else:
                    outside.add((f"{name}.{symbol}", f"{owner.imports[name].dotted}.{symbol}"))
