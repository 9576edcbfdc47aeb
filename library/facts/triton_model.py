"""One Triton kernel as its source shows it: names, calls, loops, helpers. Facts are read off it."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass
from functools import cached_property, wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

from gate.values.kernel import Kernel
from gate.values.platform import Platform
from gate.values.trace import LaunchTrace
from gate.values.workload import Axes, Workload
from library.languages.python_module import Module, Parameter, Repository, parameters
from library.languages.python_source import Node, ancestors, field, inside, nodes_of, unwrap
from library.languages.triton_kernels import JitFunction, called_helpers, jit_functions
from library.languages.triton_launch import LaunchSite, choose_wrapper, kernels_of
from library.workload_source import WorkloadSource, read_workload

LANGUAGE_PACKAGE = "triton.language."

Asked = ParamSpec("Asked")
Found = TypeVar("Found")


@dataclass(frozen=True, slots=True)
class Loop:
    """A `for` over a range, inside the kernel."""

    node: Node
    variable: str
    kind: str
    """`range`, `tl.range` or `tl.static_range`."""
    start: Node | None
    stop: Node
    step: Node | None
    bound: str = ""
    """Extent walked over, as written: `K`; empty when the form is not recognised."""
    block: str = ""
    """Elements of it an iteration covers, as written: `BLOCK_K`."""
    counts_tiles: bool = False
    """Whether the variable counts blocks (0, 1, 2…) or elements (0, B, 2B…)."""


def once(
    find: Callable[Concatenate[Model, Asked], Found],
) -> Callable[Concatenate[Model, Asked], Found]:
    """`find`, which a model remembers: transforms and conditions ask it for the same nodes again."""

    @wraps(find)
    def remembering(model: Model, /, *args: Asked.args, **kwargs: Asked.kwargs) -> Found:
        key = (find, args, tuple(kwargs.items()))
        if key not in model.remembered:
            model.remembered[key] = find(model, *args, **kwargs)
        found: Found = model.remembered[key]
        return found

    return remembering


class Model:
    """A kernel with its launch, workload, platform and traces. Built by `Model.of`."""

    def __init__(
        self,
        kernel: Kernel,
        repository: Repository,
        module: Module,
        jit: JitFunction,
        site: LaunchSite | None,
        workload: WorkloadSource | None,
        platform: Platform | None,
        traces: tuple[LaunchTrace, ...],
    ) -> None:
        self.kernel = kernel
        self.repository = repository
        self.module = module
        self.source = module.source
        self.jit = jit
        self.function = jit.function
        self.site = site
        self.workload = workload
        self.platform = platform
        self.traces = traces
        self.remembered: dict[Hashable, Any] = {}
        """What `once` found, by function and arguments."""

    @classmethod
    def of(
        cls,
        kernel: Kernel,
        workload: Workload | None,
        platform: Platform | None,
        traces: tuple[LaunchTrace, ...],
    ) -> Model:
        """The model of a kernel that `Triton.find` gave. Raises LookupError for any other."""
        data = {file.path: file.data for file in kernel.files}
        repository = Repository(data.get)
        module = repository.add(kernel.path, data[kernel.path])
        source = read_workload(workload) if workload is not None else None
        for jit, sites in kernels_of(module):
            if jit.name == kernel.entry:
                chosen = choose_wrapper(module, sites, source.operator if source else "")
                site = None if isinstance(chosen, str) else chosen[1]
                return cls(kernel, repository, module, jit, site, source, platform, traces)
        raise LookupError(f"{kernel.path} defines no Triton kernel {kernel.entry}")

    # ---- text and names -----------------------------------------------------------------------

    def text(self, node: Node) -> str:
        """The source text of a node of the kernel's module."""
        return self.source.text(node)

    def canonical(self, node: Node) -> str:
        """An expression without white space, comments and outer parentheses, to compare by."""
        node = unwrap(node)
        if node.type == "comment":
            return ""
        if not node.children or node.type == "string":
            return self.text(node)
        parts = [
            f"({self.canonical(child)})"
            if child.type == "parenthesized_expression"
            else self.canonical(child)
            for child in node.children
        ]
        return "".join(
            f" {part} " if part in ("and", "or", "not", "if", "else", "in", "is") else part
            for part in parts
        )

    def language_name(self, call: Node) -> str:
        """`load` for `tl.load(...)` however `triton.language` is spelled; else the dotted name."""
        name = self.module.callee(call)
        return name.removeprefix(LANGUAGE_PACKAGE)

    def is_language(self, node: Node, name: str) -> bool:
        """Whether a node calls `triton.language.<name>`."""
        return node.type == "call" and self.module.callee(node) == LANGUAGE_PACKAGE + name

    def calls(self, name: str, within: Node | None = None) -> tuple[Node, ...]:
        """Calls of `triton.language.<name>` in the kernel (or one of its statements), in order."""
        return tuple(
            call
            for call in nodes_of(within or self.function.body, "call")
            if self.is_language(call, name)
        )

    @cached_property
    def parameters(self) -> tuple[Parameter, ...]:
        """The kernel's parameters, in order."""
        return parameters(self.source, self.function)

    @cached_property
    def constexprs(self) -> tuple[str, ...]:
        """Parameters annotated `tl.constexpr`."""
        return tuple(
            p.name
            for p in self.parameters
            if p.annotation is not None and self.text(p.annotation).split(".")[-1] == "constexpr"
        )

    @cached_property
    def assignments(self) -> dict[str, tuple[Node, ...]]:
        """Every statement of the kernel that binds or changes a name, by name."""
        found: dict[str, list[Node]] = {}
        for node in nodes_of(
            self.function.body, "assignment", "augmented_assignment", "for_statement"
        ):
            left = field(node, "left")
            names = [left] if left.type == "identifier" else nodes_of(left, "identifier")
            for name in names:
                found.setdefault(self.text(name), []).append(node)
        return {name: tuple(nodes) for name, nodes in found.items()}

    def resolve(self, node: Node) -> Node:
        """What a name stands for where it is used, if one assignment alone reaches it; anything
        else, and a name that several may reach, is itself."""
        node = unwrap(node)
        for _ in range(16):  # chains of names are short; a cycle ends here
            value = self._reaching(node) if node.type == "identifier" else None
            if value is None:
                break
            node = unwrap(value)
        return node

    def _reaching(self, use: Node) -> Node | None:
        """The value of the only assignment that can reach a use of a name, or None."""
        bindings = self.assignments.get(self.text(use), ())
        if any(parameter.name == self.text(use) for parameter in self.parameters):
            return None
        before = [node for node in bindings if node.end_byte <= use.start_byte]
        if not before or before[-1].type != "assignment":
            return None
        chosen = before[-1]
        block = self.statement_of(chosen).parent
        left, right = field(chosen, "left"), chosen.child_by_field_name("right")
        if block is None or not inside(use, block) or left.type != "identifier":
            return None
        for outer in ancestors(use):  # a loop may carry a later binding back to the use
            carried = outer.type in ("for_statement", "while_statement") and any(
                inside(other, outer) for other in bindings if other != chosen
            )
            if carried and not inside(chosen, outer):
                return None
        return right

    # ---- structure ----------------------------------------------------------------------------

    @cached_property
    def loops(self) -> tuple[Loop, ...]:
        """`for` loops over a range, in source order."""
        found = (self._loop(node) for node in nodes_of(self.function.body, "for_statement"))
        return tuple(loop for loop in found if loop is not None)

    def loop_at(self, node: Node) -> Loop | None:
        """The innermost loop around a node, itself included."""
        around = [loop for loop in self.loops if inside(node, loop.node)]
        return around[-1] if around else None

    def statement_of(self, node: Node) -> Node:
        """The statement a node belongs to: a direct child of a block."""
        for outer in (node, *ancestors(node)):
            if outer.parent is not None and outer.parent.type == "block":
                return outer
        raise LookupError(f"no statement around {self.text(node)}")

    def accesses(self) -> Iterator[tuple[str, Node]]:
        """(`load` | `store`, call) for every pointer access, in source order."""
        for call in nodes_of(self.function.body, "call"):
            for kind in ("load", "store"):
                if self.is_language(call, kind):
                    yield kind, call

    @cached_property
    def helpers(self) -> tuple[tuple[Module, JitFunction], ...]:
        """Jit functions the kernel reaches by calls, in this module or an imported one."""
        found: dict[tuple[str, str], tuple[Module, JitFunction]] = {}
        pending = [(self.module, self.jit)]
        while pending:
            module, jit = pending.pop()
            for name in sorted(called_helpers(module, jit.function)):
                owner, symbol = module, name
                if name in module.imports and name not in module.definitions:
                    imported = self.repository.imported(module, module.imports[name])
                    if imported is None:
                        continue
                    owner, symbol = imported
                helper = next((j for j in jit_functions(owner) if symbol in j.names), None)
                key = (owner.source.path, symbol)
                if helper is not None and key not in found:
                    found[key] = (owner, helper)
                    pending.append((owner, helper))
        return tuple(found.values())

    @property
    def shapes(self) -> tuple[Axes, ...]:
        """Shapes the workload declares."""
        return self.workload.shapes if self.workload is not None else ()

    def _loop(self, node: Node) -> Loop | None:
        call, left = unwrap(field(node, "right")), field(node, "left")
        if call.type != "call" or left.type != "identifier":
            return None
        kind = self.language_name(call)
        if kind not in ("range", "static_range"):
            return None
        spelled = self.module.callee(call)
        given = [
            a
            for a in field(call, "arguments").named_children
            if a.type not in ("keyword_argument", "comment")
        ]
        if not 1 <= len(given) <= 3:
            return None
        start = given[0] if len(given) > 1 else None
        stop = given[1] if len(given) > 1 else given[0]
        step = given[2] if len(given) > 2 else None
        name = kind if spelled == kind else f"tl.{kind}"
        loop = Loop(node, self.text(left), name, start, stop, step)
        return self._blocked(loop)

    def _blocked(self, loop: Loop) -> Loop:
        """The loop with `bound` and `block` where it walks an extent block by block from 0."""
        parts = (loop.node, loop.variable, loop.kind, loop.start, loop.stop, loop.step)
        if loop.start is not None and self.canonical(loop.start) != "0":
            return loop
        if loop.step is not None:
            return Loop(*parts, self.canonical(loop.stop), self.canonical(loop.step), False)
        ceiling = self.ceiling(loop.stop)
        return Loop(*parts, *ceiling, True) if ceiling else loop

    def ceiling(self, node: Node) -> tuple[str, str] | None:
        """(extent, block) of `tl.cdiv(K, B)` or `(K + B - 1) // B`, resolved through one name."""
        node = self.resolve(node)
        if node.type == "call" and self.module.callee(node).split(".")[-1] == "cdiv":
            arguments = field(node, "arguments").named_children
            if len(arguments) == 2:
                return self.canonical(arguments[0]), self.canonical(arguments[1])
        if node.type == "binary_operator" and self.text(field(node, "operator")) == "//":
            block = self.canonical(field(node, "right"))
            top = self.canonical(field(node, "left"))
            if top.endswith(f"+{block}-1"):
                return top.removesuffix(f"+{block}-1"), block
        return None
