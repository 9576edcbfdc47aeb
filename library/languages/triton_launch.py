"""Where the host launches a Triton kernel: `kernel[grid](arguments, options)`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from library.languages.python_module import Function, Module, Parameter, parameters
from library.languages.python_source import Node, field, inside, nodes_of
from library.languages.triton_kernels import JitFunction, called_helpers, jit_functions

OPTIONS = frozenset(
    {"num_warps", "num_stages", "num_ctas", "maxnreg", "enable_fp_fusion", "launch_pdl"}
)


@dataclass(frozen=True, slots=True)
class LaunchSite:
    """One launch, in the host function that writes it."""

    host: Function
    call: Node
    grid: Node
    """The expression between the brackets."""
    arguments: Mapping[str, Node]
    """Value expression by kernel parameter."""
    options: Mapping[str, Node]
    """`num_warps`, `num_stages`, …, as written at the call."""
    splat: bool
    """`*args` or `**config` hides some of them."""


def kernels_of(module: Module) -> tuple[tuple[JitFunction, tuple[LaunchSite, ...]], ...]:
    """The module's kernels with their launches. A jit function that others call, or that returns
    a value, and that nothing here launches, is a helper."""
    jits = jit_functions(module)
    called = {name for jit in jits for name in called_helpers(module, jit.function)}
    found = []
    for jit in jits:
        sites = launch_sites(module, jit)
        helper = not called.isdisjoint(jit.names) or any(
            node.named_children for node in nodes_of(jit.function.body, "return_statement")
        )
        if sites or not helper:
            found.append((jit, sites))
    return tuple(found)


def launch_sites(module: Module, jit: JitFunction) -> tuple[LaunchSite, ...]:
    """Every launch of a kernel inside a host function of its module, in source order."""
    kernel_parameters = parameters(module.source, jit.function)
    found = []
    for call in nodes_of(module.source.root, "call"):
        target = call.child_by_field_name("function")
        if target is None or target.type != "subscript":
            continue
        name = field(target, "value")
        if name.type != "identifier" or module.source.text(name) not in jit.names:
            continue
        host = _enclosing(module, call)
        if host is not None:
            found.append(_site(module, host, call, target, kernel_parameters))
    return tuple(found)


def choose_wrapper(
    module: Module, sites: tuple[LaunchSite, ...], operator: str
) -> tuple[str, LaunchSite] | str:
    """The host function to call and the launch it reaches, or why there is none.

    The function named `operator` wins if it launches the kernel, itself or through one function of
    the module that it calls; else the first launching function that is not nested; else, when all
    are nested (an autograd Function's `forward`), `operator` on its word.
    """
    if operator in module.top_level:
        named = module.top_level[operator]
        for site in sites:
            if site.host.name == operator and not site.host.nested:
                return operator, site
        called = {module.callee(call) for call in nodes_of(named.body, "call")}
        for site in sites:
            if not site.host.nested and site.host.name in called:
                return operator, site
    for site in sites:
        if not site.host.nested:
            return site.host.name, site
    if sites and operator in module.top_level:
        return operator, sites[0]
    if sites:
        return (
            f"it is launched only inside {sites[0].host.name}, which is nested; add a module-level "
            "function that takes the workload's inputs and calls it, and name it in OPERATOR"
        )
    return (
        "no host function of this file launches it; add one, "
        "`def run(inputs): ...; kernel[grid](...)`, or name it in OPERATOR of the workload"
    )


def _site(
    module: Module, host: Function, call: Node, target: Node, kernel: tuple[Parameter, ...]
) -> LaunchSite:
    arguments: dict[str, Node] = {}
    options: dict[str, Node] = {}
    splat = False
    names = [parameter.name for parameter in kernel]
    position = 0
    for argument in field(call, "arguments").named_children:
        if argument.type in ("list_splat", "dictionary_splat"):
            splat = True
        elif argument.type == "keyword_argument":
            name = module.source.text(field(argument, "name"))
            known = arguments if name in names else options
            known[name] = field(argument, "value")
        elif argument.type != "comment":
            if position < len(names):
                arguments[names[position]] = argument
            position += 1
    return LaunchSite(host, call, field(target, "subscript"), arguments, options, splat)


def _enclosing(module: Module, node: Node) -> Function | None:
    """The innermost function around a node."""
    around = [function for function in module.functions if inside(node, function.body)]
    return around[-1] if around else None
