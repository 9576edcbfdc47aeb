"""The analysis of one OpenCL kernel: its state, its facts, its anchors. docs/opencl.md lists the facts."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import cached_property

from gate.values.kernel import Kernel
from gate.values.platform import Platform
from gate.values.trace import LaunchTrace
from gate.values.workload import Axes, Workload
from library.fact import Answer, Argument, Known, Missing
from library.facts.opencl_buffers import TRACE, BufferFacts
from library.facts.opencl_control import ControlFacts
from library.facts.opencl_gemm import gemm_loop
from library.facts.opencl_index import Indices, Polynomial
from library.facts.opencl_launch import LaunchFacts
from library.facts.opencl_loop_facts import LoopFacts
from library.facts.opencl_memory import Memory
from library.features.opencl import features
from library.languages.c_tree import matches
from library.languages.opencl_kernel import KernelSource
from library.target import Captures, Feature


class OpenCLAnalysis:
    """`Analysis` of an OpenCL kernel."""

    def __init__(
        self,
        kernel: Kernel,
        workload: Workload | None,
        platform: Platform | None,
        traces: tuple[LaunchTrace, ...] = (),
    ) -> None:
        self.source = KernelSource(kernel, workload)
        self.indices = Indices(self.source)
        self.memory = Memory(self.source, self.indices)
        self.platform = platform
        self._traces = traces
        declared = self.source.workload
        self.shapes: tuple[Axes, ...] = declared.shapes if declared else ()
        self.launch = LaunchFacts(self.source, self.indices, self.number)
        self.buffers = BufferFacts(self.source, self.indices, self.memory, traces)
        self.control = ControlFacts(self.source, self.indices)
        self.loops = LoopFacts(self.source, self.indices, self.memory, self.buffers, self.number)

    @cached_property
    def features(self) -> tuple[Feature, ...]:
        """The rows of the feature table that OpenCL source can show."""
        return features(self)

    def anchors(self, query: str) -> tuple[Captures, ...]:
        """Every match of a tree-sitter query (CUDA grammar) inside the kernel's function.

        Raises CardError if the query does not compile.
        """
        return tuple(
            {
                name: tuple(self.source.locus(node) for node in nodes)
                for name, nodes in captures.items()
            }
            for captures in matches(self.source.function, query)
        )

    def name(self, name: str, axes: Axes | None) -> Answer:
        """An axis at this shape, a scalar parameter of a traced launch, or an integer macro."""
        if axes is not None and name in axes:
            return Known(axes[name], f"SHAPES of {self._workload_path}")
        constant = self.source.constants.get(name)
        if constant is not None:
            return Known(constant.value, constant.because)
        parameter = self.source.parameters.get(name)
        if parameter is not None and not parameter.pointer:
            return self._traced(name, axes)
        if any(name in shape for shape in self.shapes):
            return Missing(f"{name} is an axis, and no shape is chosen", "ask at a shape")
        return Missing(
            f"{name} is no axis of the workload and no integer macro of the kernel",
            f"declare {name} in SHAPES of the workload file",
        )

    def call(self, function: str, arguments: tuple[Argument, ...], axes: Axes | None) -> Answer:
        """A fact by name. A fact that OpenCL does not have, or wrong arguments, give Missing."""
        found = self._functions.get(function)
        if found is None:
            return Missing(f"OpenCL kernels have no fact {function}", "docs/opencl.md lists them")
        named = {"axes": axes} if "axes" in inspect.signature(found).parameters else {}
        try:
            inspect.signature(found).bind(*arguments, **named)
        except TypeError as error:
            return Missing(f"{function}: {error}", "docs/opencl.md gives its arguments")
        return found(*arguments, **named)

    @property
    def facts(self) -> tuple[str, ...]:
        """Names of the facts `call` answers."""
        return tuple(self._functions)

    @cached_property
    def _functions(self) -> dict[str, Callable[..., Answer]]:
        launch, buffers, control, loops = self.launch, self.buffers, self.control, self.loops
        listed: tuple[Callable[..., Answer], ...] = (
            launch.launch_dim,
            launch.global_size,
            launch.global_divides,
            launch.local_size_given,
            launch.bounded,
            buffers.written,
            buffers.never_written,
            buffers.disjoint,
            buffers.restrict,
            buffers.all_restrict,
            buffers.pointers,
            buffers.unit_stride,
            buffers.unit_stride_in_loops,
            buffers.lanes_contiguous,
            buffers.shared_loads,
            buffers.uses_local_memory,
            buffers.element_type,
            control.global_dims,
            control.plain_global_id,
            control.uses_group,
            control.opaque_macros,
            control.required_group_size,
            control.dimensions_written,
            control.early_return,
            control.has_atomics,
            control.uniform_control,
            control.accumulates,
            control.precise_math,
            control.contains_barrier,
            control.contains_call,
            loops.counted,
            loops.loop_step,
            loops.starts_at_zero,
            loops.trip_count,
            loops.constant_trip,
            loops.innermost,
            loops.unrolled,
            loops.vectorized,
            loops.loop_unit_stride,
            loops.lane_independent,
            loops.no_alias,
            loops.sums,
            loops.accumulation_loop,
            self.tolerance_declared,
            self.tolerance,
            self.gemm_loop,
        )
        return {function.__name__: function for function in listed}

    def tolerance_declared(self) -> Answer:
        """Whether the workload file declares how far results may differ."""
        found = self.source.workload
        if found is None:
            return Missing("no workload file was found", "add one that declares TOLERANCE")
        said = f"TOLERANCE of {found.path}" if found.tolerance else f"{found.path} has no TOLERANCE"
        return Known(found.tolerance is not None, said)

    def tolerance(self) -> Answer:
        """The declared relative tolerance."""
        found = self.source.workload
        if found is None or found.tolerance is None:
            return Missing("no tolerance is declared", "declare TOLERANCE in the workload file")
        return Known(found.tolerance.rtol, f"TOLERANCE of {found.path}")

    def gemm_loop(self) -> Answer:
        """Whether the kernel is a plain matrix product, one output a work-item."""
        found = gemm_loop(self.source, self.indices, self.memory)
        if isinstance(found, str):
            return Known(False, found)
        where = f"line {self.source.line(found.loop)}"
        return Known(True, f"{where}: {self.source.text(found.update)}")

    def number(self, value: Polynomial, axes: Axes | None) -> int | Missing:
        """The value of a polynomial at a shape, over axes, macros and traced scalars."""
        total = 0
        for monomial, factor in value.terms.items():
            product = factor
            for symbol in monomial:
                known = self._symbol(symbol, axes)
                if isinstance(known, Missing):
                    return known
                product *= known
            total += product
        return total

    def _symbol(self, symbol: str, axes: Axes | None) -> int | Missing:
        if symbol.isidentifier():
            answer = self.name(symbol, axes)
            if isinstance(answer, Missing):
                return answer
            if isinstance(answer.value, int):
                return answer.value
        return Missing(
            f"{symbol} is not known before the kernel runs", "pass it as a parameter or axis"
        )

    def _traced(self, name: str, axes: Axes | None) -> Answer:
        for trace in self._traces:
            if axes is None or dict(trace.axes) == dict(axes):
                argument = trace.arguments.get(name)
                if argument is not None and argument.value is not None:
                    return Known(argument.value, f"traced launch: {name}={argument.value}")
        return Missing(
            f"{name} is a parameter, and no axis has its name",
            f"name an axis {name} in SHAPES, or {TRACE}",
        )

    @property
    def _workload_path(self) -> str:
        return self.source.workload.path if self.source.workload else "the workload"
