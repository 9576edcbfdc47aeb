"""Which functions of a module are Triton kernels, in every spelling of `jit`."""

from __future__ import annotations

from dataclasses import dataclass

from library.languages.python_module import Function, Module
from library.languages.python_source import Node, field, nodes_of

JIT = frozenset({"triton.jit", "triton.runtime.jit", "triton.runtime.jit.jit"})
AUTOTUNE = frozenset({"triton.autotune", "triton.runtime.autotuner.autotune"})
HEURISTICS = frozenset({"triton.heuristics", "triton.runtime.autotuner.heuristics"})


@dataclass(frozen=True, slots=True)
class JitFunction:
    """A function compiled by Triton."""

    name: str
    """The module-level name that is launched or called."""
    function: Function
    aliases: tuple[str, ...]
    """Other module-level names bound to it: `tuned = triton.autotune(...)(kernel)`."""
    wrappers: tuple[Node, ...]
    """Decorator expressions and wrapping calls, jit itself included."""

    @property
    def names(self) -> tuple[str, ...]:
        return (self.name, *self.aliases)


def jit_functions(module: Module) -> tuple[JitFunction, ...]:
    """Every jit function of a module, decorated or rebound, in source order."""
    found: dict[str, JitFunction] = {}
    for name, function in module.top_level.items():
        if any(is_jit(module, decorator) for decorator in function.decorators):
            found[name] = JitFunction(name, function, (), function.decorators)
    for name, nodes in module.assignments.items():
        for node in nodes:
            right = node.child_by_field_name("right")
            if right is not None:
                _rebind(module, name, right, found)
    return tuple(sorted(found.values(), key=lambda jit: jit.function.node.start_byte))


def is_jit(module: Module, expression: Node) -> bool:
    """Whether a decorator is `triton.jit`, called with options or `partial` or not."""
    if expression.type != "call":
        return module.qualify(expression) in JIT
    if module.callee(expression) == "functools.partial":
        arguments = field(expression, "arguments").named_children
        return bool(arguments) and is_jit(module, arguments[0])
    return module.callee(expression) in JIT


def wrapper_call(module: Module, jit: JitFunction, names: frozenset[str]) -> Node | None:
    """The `triton.autotune(...)` or `triton.heuristics(...)` call around a kernel, or None."""
    for expression in jit.wrappers:
        if expression.type == "call" and module.callee(expression) in names:
            return expression
    return None


def called_helpers(module: Module, function: Function) -> frozenset[str]:
    """Names a function's body calls plainly: `helper(...)`."""
    return frozenset(
        module.source.text(callee)
        for call in nodes_of(function.body, "call")
        if (callee := call.child_by_field_name("function")) is not None
        and callee.type == "identifier"
    )


def _rebind(module: Module, name: str, value: Node, found: dict[str, JitFunction]) -> None:
    """Take `k = triton.jit(f)` and chains of tuners around it into account."""
    wrappers = []
    jitted = False
    while value.type == "call":
        callee = field(value, "function")
        arguments = field(value, "arguments").named_children
        if not arguments or arguments[0].type not in ("identifier", "call"):
            return
        if is_jit(module, callee):
            jitted = True
        elif callee.type != "call" or module.callee(callee) not in AUTOTUNE | HEURISTICS:
            return
        wrappers.append(callee)
        value = arguments[0]
    base = module.source.text(value)
    if not wrappers or value.type != "identifier":
        return
    known = found.get(base)
    if known is not None:
        aliases = known.aliases if name == base else (*known.aliases, name)
        found[base] = JitFunction(known.name, known.function, aliases, (*wrappers, *known.wrappers))
    elif jitted and base in module.top_level:
        found[name] = JitFunction(name, module.top_level[base], (), tuple(wrappers))
