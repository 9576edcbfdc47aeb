"""Analysis of one Triton kernel: anchors, names and fact functions over its model."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

import tree_sitter

from gate.values.kernel import Kernel
from gate.values.platform import Platform
from gate.values.trace import LaunchTrace
from gate.values.workload import Axes, Workload
from library.fact import Answer, Argument, Known, Missing
from library.facts.triton_constants import constant
from library.facts.triton_gemm_facts import GEMM_FACTS
from library.facts.triton_launch_facts import LAUNCH_FACTS, Function
from library.facts.triton_model import Model
from library.facts.triton_operand_facts import OPERAND_FACTS
from library.facts.triton_row_facts import ROW_FACTS
from library.facts.triton_tensors import scalar
from library.features.triton import features_of
from library.languages.python_source import GRAMMAR, inside
from library.target import Captures, Feature

FUNCTIONS: Mapping[str, Function] = {**LAUNCH_FACTS, **GEMM_FACTS, **OPERAND_FACTS, **ROW_FACTS}
"""Fact functions a card's checks may call on a Triton kernel; docs/triton.md describes them."""


class TritonAnalysis:
    """One Triton kernel, parsed once. See library.target.Analysis."""

    def __init__(self, model: Model) -> None:
        self.model = model
        self.features: tuple[Feature, ...] = features_of(model)
        self.shapes: tuple[Axes, ...] = model.shapes

    @classmethod
    def of(
        cls,
        kernel: Kernel,
        workload: Workload | None,
        platform: Platform | None,
        traces: tuple[LaunchTrace, ...],
    ) -> TritonAnalysis:
        """The analysis of a kernel that `Triton.find` gave."""
        return cls(Model.of(kernel, workload, platform, traces))

    def anchors(self, query: str) -> tuple[Captures, ...]:
        """Matches inside the kernel's function, or inside its launch call."""
        model = self.model
        scopes = [model.function.whole, *([model.site.call] if model.site is not None else [])]
        found = []
        for _, captured in tree_sitter.QueryCursor(_query(query)).matches(model.source.root):
            nodes = [node for group in captured.values() for node in group]
            if nodes and any(all(inside(node, scope) for node in nodes) for scope in scopes):
                found.append(
                    {
                        name: tuple(model.source.locus(node) for node in group)
                        for name, group in captured.items()
                    }
                )
        return tuple(found)

    def name(self, name: str, axes: Axes | None) -> Answer:
        """An axis at this shape, a constexpr of the kernel, or a scalar it is passed."""
        if axes is not None and name in axes:
            where = self.model.workload.path if self.model.workload is not None else "the workload"
            return Known(axes[name], f"{name}={axes[name]} of {where}")
        if name in self.model.constexprs:
            return constant(self.model, name, axes)
        if any(parameter.name == name for parameter in self.model.parameters):
            return scalar(self.model, name, axes)
        return Missing(
            f"{self.model.kernel.entry} has no axis, constant or parameter {name}",
            f"declare {name} in SHAPES of the workload",
        )

    def call(self, function: str, arguments: tuple[Argument, ...], axes: Axes | None) -> Answer:
        """A fact function of `FUNCTIONS`."""
        known = FUNCTIONS.get(function)
        if known is None:
            return Missing(
                f"{function} is not a fact of Triton kernels",
                "use a function that docs/triton.md lists",
            )
        return known(self.model, arguments, axes)


@lru_cache(maxsize=256)
def _query(text: str) -> tree_sitter.Query:
    return tree_sitter.Query(GRAMMAR, text)
