"""Facts about loops: how often they run, what they carry from one iteration to the next."""

from __future__ import annotations

import re
from collections.abc import Callable

from tree_sitter import Node

from gate.values.workload import Axes
from library.fact import Answer, Known, Missing
from library.facts.opencl_buffers import TRACE, BufferFacts
from library.facts.opencl_index import Indices, Polynomial
from library.facts.opencl_loops import Loop, counted, innermost, unroll_hint
from library.facts.opencl_memory import Access, Memory
from library.facts.opencl_reduction import changes_inside, loop_body
from library.languages.c_tree import find
from library.languages.opencl_kernel import KernelSource
from library.target import Locus

VECTOR_TYPE = re.compile(r"(?:float|double|half|u?int|u?long|u?short|u?char)(?:2|3|4|8|16)")
VECTOR_MOVE = re.compile(r"v(?:load|store)(?:_half)?(?:2|3|4|8|16)")
Numbers = Callable[[Polynomial, Axes | None], int | Missing]


class LoopFacts:
    """Facts about one loop of the kernel, given by its range."""

    def __init__(
        self,
        source: KernelSource,
        indices: Indices,
        memory: Memory,
        buffers: BufferFacts,
        numbers: Numbers,
    ) -> None:
        self._source = source
        self._indices = indices
        self._memory = memory
        self._buffers = buffers
        self._numbers = numbers

    def counted(self, place: Locus) -> Answer:
        """Whether the loop counts upwards by a fixed step to a fixed bound."""
        node = self._loop_node(place)
        if node is None:
            return self._no_loop(place)
        header = self._header(node)
        return Known(counted(self._source, node) is not None, header)

    def loop_step(self, place: Locus) -> Answer:
        """The step of a counted loop."""
        loop = self._loop(place)
        return loop if isinstance(loop, Missing) else Known(loop.step, self._header(loop.node))

    def starts_at_zero(self, place: Locus) -> Answer:
        """Whether a counted loop's header sets the variable to 0."""
        loop = self._loop(place)
        if isinstance(loop, Missing):
            return loop
        first = self._indices.polynomial(loop.start) if loop.start else None
        return Known(first is not None and first.constant == 0, self._header(loop.node))

    def trip_count(self, place: Locus, axes: Axes | None) -> Answer:
        """How often a counted loop runs at a shape."""
        loop = self._loop(place)
        if isinstance(loop, Missing):
            return loop
        if loop.start is None:
            return Missing(f"{self._header(loop.node)} starts where the variable stands", "none")
        ends = []
        for node in (loop.start, loop.bound):
            answer = self._numbers(self._indices.polynomial(node), axes)
            if isinstance(answer, Missing):
                return answer
            ends.append(answer)
        span = ends[1] - ends[0] + (1 if loop.inclusive else 0)
        trips = max(0, -(-span // loop.step))
        return Known(trips, self._header(loop.node))

    def constant_trip(self, place: Locus) -> Answer:
        """Whether the trip count is written in the source rather than passed to the kernel."""
        answer = self.trip_count(place, None)
        return Known(isinstance(answer, Known), place.text.split("\n")[0])

    def innermost(self, place: Locus) -> Answer:
        """Whether the loop holds no other loop."""
        node = self._loop_node(place)
        if node is None:
            return self._no_loop(place)
        return Known(innermost(self._source, node), self._header(node))

    def unrolled(self, place: Locus) -> Answer:
        """Whether an unroll hint stands before the loop."""
        node = self._loop_node(place)
        if node is None:
            return self._no_loop(place)
        hint = unroll_hint(self._source, node)
        return Known(hint is not None, hint or f"no unroll hint before line {place.line}")

    def vectorized(self, place: Locus) -> Answer:
        """Whether vector types or vector loads and stores are used in a range."""
        node = self._source.node_at(place)
        return self.vectors_in(node) if node is not None else self._no_loop(place)

    def vectors_in(self, node: Node) -> Answer:
        """As `vectorized`, for a node."""
        for found in find(node, "type_identifier", "identifier"):
            text = self._source.text(found)
            if VECTOR_TYPE.fullmatch(text) or VECTOR_MOVE.fullmatch(text):
                return Known(True, f"line {self._source.line(found)}: {text}")
        return Known(False, "no vector types, vload or vstore")

    def loop_unit_stride(self, place: Locus) -> Answer:
        """Whether every access in the loop moves 0 or 1 elements an iteration, and one moves 1."""
        loop = self._loop(place)
        if isinstance(loop, Missing):
            return loop
        moving = ""
        for access in self._accesses(loop):
            stride = self._indices.stride(access.index, loop.variable)
            at = f"line {self._source.line(access.node)}: {self._source.text(access.node)}"
            if stride is None or stride.constant not in (0, 1):
                said = "no fixed stride" if stride is None else f"stride {stride}"
                return Known(False, f"{at} has {said} along {loop.variable}")
            if stride.constant == 1:
                moving = f"{at} has stride 1 along {loop.variable}"
        return Known(bool(moving), moving or f"no access moves with {loop.variable}")

    def lane_independent(self, place: Locus) -> Answer:
        """Whether iterations of the loop could run in any order, reductions apart.

        True where the body only reduces into scalars, names values and stores elements, and no
        element one iteration stores is read by another through the same pointer. Whether two
        pointers may overlap is another fact: `no_alias`.
        """
        loop = self._loop(place)
        if isinstance(loop, Missing):
            return loop
        body = loop_body(self._source, loop.body)
        if body.other is not None:
            text = self._source.text(body.other).split("\n")[0]
            return Known(False, f"line {self._source.line(body.other)}: {text}")
        for statement in body.statements:
            changed = changes_inside(statement)
            if changed is not None:
                said = f"line {self._source.line(changed)}: {self._source.text(changed)}"
                return Known(False, f"{said} changes something inside an expression")
        for reduced in body.reductions:
            for statement in body.statements:
                used = {self._source.text(n) for n in find(statement, "identifier")}
                if statement != reduced.statement and reduced.variable in used:
                    said = f"line {self._source.line(statement)} uses {reduced.variable} while it is reduced"
                    return Known(False, said)
        return self._carried(loop)

    def _carried(self, loop: Loop) -> Answer:
        accesses = self._accesses(loop)
        lost = self._memory.untracked(loop.body)
        if lost is not None:
            said = f"line {self._source.line(lost)}: {self._source.text(lost)} is not followed"
            return Known(False, said)
        for write in (a for a in accesses if a.writes):
            stride = self._indices.stride(write.index, loop.variable)
            at = f"line {self._source.line(write.node)}: {self._source.text(write.node)}"
            if stride is None or stride.constant != 1:
                return Known(False, f"{at} is not one element an iteration")
            for other in accesses:
                if other.base == write.base and other.index.terms != write.index.terms:
                    text = self._source.text(other.node)
                    return Known(False, f"{at} and {text} may be the same element")
        return Known(
            True, f"line {self._source.line(loop.node)}: no value passes between iterations"
        )

    def no_alias(self, place: Locus) -> Answer:
        """Whether what the loop stores cannot be what it loads through another pointer."""
        loop = self._loop(place)
        if isinstance(loop, Missing):
            return loop
        accesses = self._accesses(loop)
        written = {a.base for a in accesses if a.writes}
        read = {a.base for a in accesses if a.reads} - written
        if not written:
            return Known(True, f"line {self._source.line(loop.node)}: the loop stores nothing")
        if not read and len(written) == 1:
            return Known(True, f"the loop touches {', '.join(written)} only")
        parameters = self._source.parameters
        if all(name in parameters and parameters[name].restrict for name in written):
            return Known(True, f"{', '.join(sorted(written))} restrict")
        answer = self._buffers.disjoint()
        if isinstance(answer, Missing):
            return Missing(
                f"{', '.join(sorted(written))} may overlap {', '.join(sorted(read))}", TRACE
            )
        return answer

    def sums(self, place: Locus) -> Answer:
        """Whether the loop adds or multiplies terms up, so that their order shows in the result."""
        loop = self._loop(place)
        if isinstance(loop, Missing):
            return loop
        for reduced in loop_body(self._source, loop.body).reductions:
            if reduced.reorders:
                line = self._source.line(reduced.statement)
                return Known(True, f"line {line}: {self._source.text(reduced.statement)}")
        return Known(False, f"line {self._source.line(loop.node)}: no sum or product")

    def accumulation_loop(self, place: Locus) -> Answer:
        """Whether the loop does nothing but reduce into scalars."""
        loop = self._loop(place)
        if isinstance(loop, Missing):
            return loop
        body = loop_body(self._source, loop.body)
        pure = bool(body.reductions) and not body.stores and body.other is None
        return Known(pure, self._header(loop.node))

    # ---- shared -----------------------------------------------------------------------------

    def _accesses(self, loop: Loop) -> tuple[Access, ...]:
        return self._memory.within(loop.body)

    def _loop_node(self, place: Locus) -> Node | None:
        return self._source.node_at(place, "for_statement", "while_statement", "do_statement")

    def _loop(self, place: Locus) -> Loop | Missing:
        node = self._loop_node(place)
        loop = counted(self._source, node) if node is not None else None
        return loop or Missing(
            f"line {place.line} is no loop that counts upwards by a fixed step",
            "write it as `for (int k = 0; k < K; ++k)`",
        )

    def _header(self, node: Node) -> str:
        return f"line {self._source.line(node)}: {self._source.text(node).split(chr(10))[0]}"

    def _no_loop(self, place: Locus) -> Missing:
        return Missing(f"no loop at line {place.line}", "anchor the condition to a loop")
