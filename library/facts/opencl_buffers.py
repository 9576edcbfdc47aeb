"""Facts about a kernel's pointers: what is written, what may overlap, how far apart accesses are."""

from __future__ import annotations

from gate.values.trace import LaunchTrace
from library.fact import Answer, Known, Missing
from library.facts.opencl_index import Indices, global_id
from library.facts.opencl_memory import Access, Memory
from library.languages.c_tree import find
from library.languages.opencl_kernel import KernelSource

TRACE = "gate this kernel once (klineage gate), which traces a launch"


class BufferFacts:
    """Facts about memory, over the whole kernel."""

    def __init__(
        self,
        source: KernelSource,
        indices: Indices,
        memory: Memory,
        traces: tuple[LaunchTrace, ...],
    ) -> None:
        self._source = source
        self._indices = indices
        self._memory = memory
        self._traces = traces

    # ---- who writes what --------------------------------------------------------------------

    def written(self, parameter: str) -> Answer:
        """Whether the kernel (or a helper that gets the pointer) writes a parameter's buffer."""
        found = self._source.parameters.get(parameter)
        if found is None or not found.pointer:
            return Missing(f"{parameter} is no pointer parameter", "name one of the kernel's")
        if found.const or found.space == "constant":
            return Known(False, f"{parameter} points to const")
        writes = [a for a in self._memory.accesses if a.base == parameter and a.writes]
        if writes:
            return Known(True, self._at(writes[0]))
        lost = self._memory.untracked(self._source.body, own_arrays=True)
        if lost is not None:
            line, text = self._source.line(lost), self._source.text(lost)
            return Missing(f"line {line}: {text} is not followed", "index the parameter directly")
        if self._source.opaque_macro is not None:
            said = f"macro {self._source.opaque_macro} may store"
            return Missing(said, "write out what it hides")
        return Known(False, f"no statement stores to {parameter}")

    def never_written(self, parameter: str) -> Answer:
        answer = self.written(parameter)
        return answer if isinstance(answer, Missing) else Known(not answer.value, answer.because)

    def disjoint(self) -> Answer:
        """Whether no written buffer overlaps another argument, at every traced launch."""
        buffers = [
            p.name for p in self._source.parameters.values() if p.pointer and p.space == "global"
        ]
        if not self._traces:
            return Missing("no launch has been traced, so overlap is unknown", TRACE)
        for trace in self._traces:
            for name in buffers:
                argument = trace.arguments.get(name)
                if argument is None:
                    return Missing(f"the traced launch has no argument {name}", TRACE)
                if argument.overlaps:
                    return Known(False, f"traced: {name} overlaps {', '.join(argument.overlaps)}")
        names = ", ".join(buffers)
        return Known(True, f"traced at {len(self._traces)} shapes: {names} do not overlap")

    def restrict(self, parameter: str) -> Answer:
        """Whether a pointer parameter is declared `restrict`."""
        found = self._source.parameters.get(parameter)
        if found is None or not found.pointer:
            return Missing(f"{parameter} is no pointer parameter", "name one of the kernel's")
        return Known(found.restrict, f"line {self._source.line(found.node)}")

    def all_restrict(self) -> Known:
        """Whether every global pointer is `restrict` already."""
        plain = [
            p.name
            for p in self._source.parameters.values()
            if p.pointer and p.space == "global" and not p.restrict
        ]
        if plain:
            return Known(False, f"{', '.join(plain)} without restrict")
        return Known(True, "every global pointer is restrict")

    def pointers(self) -> Answer:
        """Number of global pointer parameters."""
        names = [
            p.name for p in self._source.parameters.values() if p.pointer and p.space == "global"
        ]
        return Known(len(names), ", ".join(names) or "no global pointers")

    # ---- strides along a dimension ----------------------------------------------------------

    def unit_stride(self, dim: int) -> Answer:
        """Whether some access to global memory moves on by what it covers when the id grows by one:
        one element, or N for vloadN and vstoreN."""
        for access in self._global():
            stride = self._indices.stride(access.index, global_id(dim))
            if stride is not None and stride.constant == access.width:
                return Known(True, f"{self._at(access)} has stride 1 along dimension {dim}")
        return Known(False, f"no access has stride 1 along dimension {dim}")

    def unit_stride_in_loops(self, dim: int) -> Answer:
        """As `unit_stride`, for loads inside loops only."""
        for access in self._looped_loads():
            stride = self._indices.stride(access.index, global_id(dim))
            if stride is not None and stride.constant == 1:
                return Known(True, f"{self._at(access)} has stride 1 along dimension {dim}")
        return Known(False, f"no load in a loop has stride 1 along dimension {dim}")

    def lanes_contiguous(self, dim: int) -> Answer:
        """Whether every access to global memory moves 0 or 1 elements when the id grows by one."""
        for access in self._global():
            stride = self._indices.stride(access.index, global_id(dim))
            if stride is None:
                said = f"{self._at(access)} has no fixed stride along dimension {dim}"
                return Known(False, said)
            if stride.constant not in (0, 1):
                return Known(False, f"{self._at(access)} has stride {stride} along dimension {dim}")
        return Known(True, f"every access has stride 0 or 1 along dimension {dim}")

    def shared_loads(self, dim: int) -> Answer:
        """Loads inside loops whose address is the same for every id of the dimension.

        Neighbouring work-items along the dimension each repeat such a load; one that computes
        several of their results can load once.
        """
        shared = [a for a in self._looped_loads() if not self._moves(a, dim)]
        varying = [a for a in self._looped_loads() if self._moves(a, dim)]
        if not varying or not shared:
            said = f"no loop mixes loads that move along dimension {dim} with loads that do not"
            return Known(0, said)
        return Known(len(shared), f"{self._at(shared[0])} is the same along dimension {dim}")

    def _moves(self, access: Access, dim: int) -> bool:
        return self._indices.depends(access.node, global_id(dim))

    def _looped_loads(self) -> list[Access]:
        spans = [(n.start_byte, n.end_byte) for n in find(self._source.body, "for_statement")]
        return [
            a
            for a in self._global()
            if a.reads
            and not a.writes
            and any(start <= a.node.start_byte < end for start, end in spans)
        ]

    # ---- local memory -----------------------------------------------------------------------

    def uses_local_memory(self) -> Answer:
        """Whether the kernel has `__local` arrays or parameters."""
        for parameter in self._source.parameters.values():
            if parameter.space == "local":
                return Known(True, f"parameter {parameter.name} is __local")
        for name, declared in self._source.declared.items():
            for entry in declared:
                if self._source.space_of(entry.declaration) == "local":
                    return Known(
                        True, f"line {self._source.line(entry.declaration)}: __local {name}"
                    )
        return Known(False, "no __local array or parameter")

    def element_type(self) -> Answer:
        """The element type of all global buffers, or "mixed"."""
        found = self._source.parameters.values()
        types = sorted({p.type for p in found if p.pointer and p.space == "global"})
        only = types[0] if len(types) == 1 else "mixed"
        return Known(only, ", ".join(types) or "no global buffers")

    # ---- shared -----------------------------------------------------------------------------

    def _global(self) -> list[Access]:
        return [a for a in self._memory.accesses if a.base in self._source.parameters]

    def _at(self, access: Access) -> str:
        return f"line {self._source.line(access.node)}: {self._source.text(access.node)}"
