"""Constants and launch options of a kernel, and the one place where each is written.

A launch trace answers where the source computes what it passes.
"""

from __future__ import annotations

from dataclasses import dataclass

from gate.values.trace import ArgumentTrace, LaunchTrace
from gate.values.workload import Axes, shape_label
from library.fact import Answer, Known, Missing
from library.facts.triton_host import host_values
from library.facts.triton_model import Model
from library.facts.triton_offsets import argument
from library.languages.python_source import Node, field, line_of, nodes_of, unwrap
from library.languages.triton_kernels import AUTOTUNE, wrapper_call

DEFAULTS = {"num_warps": 4, "num_stages": 3}
"""What Triton's NVIDIA backend takes when a launch says nothing (CUDAOptions)."""


@dataclass(frozen=True, slots=True)
class Definition:
    """The one integer literal that decides a constant, and where it is written."""

    node: Node
    value: int
    place: str
    """`the launch`, `gemm`, `the module`, `the default`, `the Config`."""


def trace_missing(model: Model) -> Missing:
    """What to answer when only a launch could tell."""
    return Missing(
        "no launch has been traced",
        f"gate this kernel once: klineage gate {model.kernel.path}",
    )


def trace_at(model: Model, axes: Axes | None) -> LaunchTrace | None:
    """The trace at a shape; without one asked for, the first."""
    if axes is None:
        return model.traces[0] if model.traces else None
    return next((trace for trace in model.traces if dict(trace.axes) == dict(axes)), None)


def at(model: Model, axes: Axes | None) -> str:
    """Label of the shape a trace was taken at."""
    trace = trace_at(model, axes)
    return shape_label(trace.axes) if trace is not None else "no shape"


def argument_trace(model: Model, name: str, axes: Axes | None) -> ArgumentTrace | None:
    """How a parameter was passed at a shape, if that launch was traced."""
    trace = trace_at(model, axes)
    return trace.arguments.get(name) if trace is not None else None


def definition(model: Model, name: str) -> Definition | Missing:
    """Where a constexpr parameter's value is written as one integer literal."""
    if model.site is not None and name in model.site.arguments:
        return literal(model, model.site.arguments[name], name)
    configs = tuning_configs(model)
    if configs:
        return _from_config(model, configs, name)
    default = next((p.default for p in model.parameters if p.name == name), None)
    if default is not None:
        return literal(model, default, name)
    if model.site is None:
        return Missing(f"no launch of {model.kernel.entry} was found", "add a host wrapper")
    return Missing(
        f"the launch does not say what {name} is",
        f"pass {name} by name at the launch of {model.kernel.entry}",
    )


def option(model: Model, name: str) -> Definition | Missing | int:
    """`num_warps` or `num_stages`: where it is written, or Triton's default when it is not."""
    if name not in DEFAULTS:
        return Missing(f"{name!r} is not a launch option", f"use one of {', '.join(DEFAULTS)}")
    if model.site is None:
        return Missing(f"no launch of {model.kernel.entry} was found", "add a host wrapper")
    if name in model.site.options:
        return literal(model, model.site.options[name], name)
    configs = tuning_configs(model)
    if len(configs) > 1:
        return Missing(f"{len(configs)} autotune configs", f"freeze one config to edit {name}")
    if configs:
        given = _keyword(model, configs[0], name)
        return literal(model, given, name) if given is not None else DEFAULTS[name]
    if model.site.splat:
        return Missing(
            f"the launch of {model.kernel.entry} passes **options", f"pass {name} by name"
        )
    return DEFAULTS[name]


def constant(model: Model, name: str, axes: Axes | None) -> Answer:
    """A constexpr's value: from the source, else from the trace at this shape."""
    found = definition(model, name)
    if isinstance(found, Definition):
        return Known(
            found.value, f"{name}={found.value} at {found.place}, line {line_of(found.node)}"
        )
    traced = argument_trace(model, name, axes)
    if traced is not None and traced.value is not None:
        return Known(traced.value, f"traced at {at(model, axes)}")
    return found


def option_value(model: Model, name: str, axes: Axes | None) -> Answer:
    """`num_warps` or `num_stages` of the launch."""
    found = option(model, name)
    if isinstance(found, int):
        return Known(found, f"Triton's default {name}")
    if isinstance(found, Definition):
        return Known(found.value, f"{name}={found.value}, line {line_of(found.node)}")
    trace = trace_at(model, axes)
    if trace is not None and name in trace.options:
        return Known(trace.options[name], f"traced at {at(model, axes)}")
    return found


def tuning_configs(model: Model) -> tuple[Node, ...]:
    """The `triton.Config(...)` calls of the kernel's autotuner."""
    call = wrapper_call(model.module, model.jit, AUTOTUNE)
    if call is None:
        return ()
    configs = argument(model, call, "configs", 0)
    if configs is not None and configs.type == "identifier":
        configs = model.module.constant(model.text(configs))
    if configs is None:
        return ()
    return tuple(
        node
        for node in nodes_of(configs, "call")
        if model.module.callee(node).split(".")[-1] == "Config"
    )


def literal(model: Model, node: Node, name: str) -> Definition | Missing:
    """The integer literal a value is, followed through a local or a module-level name."""
    place = "the launch"
    for _ in range(4):
        node = unwrap(node)
        if node.type == "integer":
            return Definition(node, int(model.text(node), 0), place)
        if node.type != "identifier":
            break
        written = model.text(node)
        local = host_values(model, written)
        outer = model.module.constant(written)
        if len(local) == 1:
            node, place = local[0], model.site.host.name if model.site else ""
        elif not local and outer is not None:
            node, place = outer, "module level"
        else:
            break
    return Missing(
        f"{name} is computed, `{model.text(node)}` on line {line_of(node)}",
        f"gate this kernel once: klineage gate {model.kernel.path}",
    )


def _from_config(model: Model, configs: tuple[Node, ...], name: str) -> Definition | Missing:
    if len(configs) > 1:
        return Missing(f"{len(configs)} autotune configs choose {name}", "freeze one config")
    values = argument(model, configs[0], "kwargs", 0)
    for pair in nodes_of(values, "pair") if values is not None else ():
        if model.text(field(pair, "key")).strip("\"'") == name:
            return literal(model, field(pair, "value"), name)
    return Missing(f"the Config does not set {name}", f"set {name} in the Config")


def _keyword(model: Model, call: Node, name: str) -> Node | None:
    for given in field(call, "arguments").named_children:
        if given.type == "keyword_argument" and model.text(field(given, "name")) == name:
            return field(given, "value")
    return None
