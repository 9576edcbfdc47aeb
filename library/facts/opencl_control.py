"""Facts about a kernel's ids, control flow and calls."""

from __future__ import annotations

import re
from collections.abc import Iterator

from library.fact import Answer, Known, Missing
from library.facts.opencl_index import Indices, global_id
from library.facts.opencl_reduction import reduction
from library.languages.c_tree import field, find, unwrapped
from library.languages.opencl_kernel import KernelSource
from library.target import Locus

BARRIERS = ("barrier", "work_group_barrier", "sub_group_barrier", "mem_fence")
GROUP = re.compile(
    r"get_(?:local_id|group_id|local_size|num_groups|global_size|global_offset|local_linear_id"
    r"|global_linear_id|enqueued_local_size|sub_group_\w+|num_sub_groups|work_dim)"
    r"|(?:work|sub)_group_\w+|async_work_group_\w+"
)
ATOMIC = re.compile(r"(?:atom|atomic)_\w+")
BY_DIMENSION = (
    "get_global_id",
    "get_local_id",
    "get_group_id",
    "get_global_size",
    "get_local_size",
    "get_num_groups",
    "get_global_offset",
    "get_enqueued_local_size",
)
"""Work-item functions that take a dimension (OpenCL C 3.0 §6.15.1)."""
ORDERED = re.compile(
    r"get_\w+_linear_id|(?:get_)?(?:num_|max_|enqueued_num_)?sub_groups?_\w+"
    r"|get_(?:num|enqueued_num)_sub_groups|work_group_(?:broadcast|scan_\w+)"
)
"""Functions whose answer depends on the order work-items are numbered in, dimension 0 fastest."""
PRECISE = ("exp", "exp2", "exp10", "log", "log2", "log10", "sin", "cos", "tan", "sqrt", "rsqrt")
"""Functions with a `native_` form (OpenCL C 3.0 §6.15.2)."""
_JUMPS = (
    "break_statement",
    "continue_statement",
    "goto_statement",
    "switch_statement",
    "while_statement",
    "do_statement",
    "return_statement",
)


class ControlFacts:
    """Facts about the whole kernel's control flow."""

    def __init__(self, source: KernelSource, indices: Indices) -> None:
        self._source = source
        self._indices = indices

    def global_dims(self) -> Answer:
        """Number of dimensions whose global id the kernel asks for."""
        dims = sorted({g.dim for g in self._source.global_ids})
        return Known(len(dims), f"get_global_id of {', '.join(map(str, dims)) or 'nothing'}")

    def plain_global_id(self, dim: int) -> Answer:
        """Whether one variable, never changed, holds a dimension's id as it is, and nothing else
        in the kernel or its helpers asks for it."""
        calls = [g for g in self._source.global_ids if g.dim == dim]
        literal = {g.call for g in self._source.global_ids}
        for name, call in self._source.calls():
            if name == "get_global_id" and call not in literal:
                said = f"line {self._source.line(call)}: {self._source.text(call)}"
                return Known(False, f"{said} names its dimension otherwise than by a digit")
        if len(calls) != 1 or any("get_global_id" in n for n in self._helper_calls()):
            return Known(False, f"get_global_id({dim}) is asked for {len(calls)} times")
        only = calls[0]
        at = f"line {self._source.line(only.call)}"
        value = self._indices.only_value(only.variable) if only.variable else None
        if value is None:
            return Known(False, f"{at}: its result is not kept in a variable that stays")
        while value.type in ("cast_expression", "parenthesized_expression"):
            value = unwrapped(field(value, "value") if value.type == "cast_expression" else value)
        # `(uint)(get_global_id(1))` parses as a call of a type in parentheses.
        cast = value.type == "call_expression" and (
            field(value, "function").type == "parenthesized_expression"
            and self._source.arguments(value) == [only.call]
        )
        plain = value == only.call or cast
        return Known(plain, f"{at}: {self._source.text(only.declaration or only.call)}")

    def uses_group(self) -> Answer:
        """Whether the kernel depends on how work-items are grouped: local ids, sizes, barriers."""
        if self._source.required_group_size is not None:
            return Known(True, f"reqd_work_group_size({self._source.required_group_size})")
        for name, call in self._source.calls():
            if GROUP.fullmatch(name) or name in BARRIERS:
                return Known(True, f"line {self._source.line(call)}: {name}")
        for name in self._helper_calls():
            if GROUP.fullmatch(name) or name in BARRIERS:
                return Known(True, f"a helper calls {name}")
        return Known(False, "no local ids, group sizes or barriers")

    def opaque_macros(self) -> Answer:
        """Whether some macro in the kernel hides variables, memory or control flow."""
        name = self._source.opaque_macro
        return Known(name is not None, f"macro {name}" if name else "macros are plain values")

    def required_group_size(self) -> Answer:
        """Whether `reqd_work_group_size` fixes the work-group."""
        size = self._source.required_group_size
        return Known(
            size is not None, f"reqd_work_group_size({size})" if size else "none is required"
        )

    def dimensions_written(self) -> Answer:
        """Whether every dimension the kernel asks for is a literal in its own function."""
        for name, call in self._source.calls():
            arguments = [self._source.text(a) for a in self._source.arguments(call)]
            if name in BY_DIMENSION and not (len(arguments) == 1 and arguments[0].isdigit()):
                said = f"line {self._source.line(call)}: {self._source.text(call)}"
                return Known(False, said)
            if ORDERED.fullmatch(name):
                return Known(False, f"line {self._source.line(call)}: {name} numbers by dimension")
        found = [n for n in self._helper_calls() if n in BY_DIMENSION or ORDERED.fullmatch(n)]
        return Known(not found, f"a helper calls {found[0]}" if found else "all are literals")

    def early_return(self) -> Answer:
        """Whether the guard is an early return rather than a block around the rest."""
        guard = self._source.guard
        if not guard.statements:
            return Known(False, "the kernel has no guard")
        text = self._source.text(guard.statements[0]).split("\n")[0]
        return Known(guard.block is None, text)

    def has_atomics(self) -> Answer:
        for name, call in self._source.calls():
            if ATOMIC.fullmatch(name):
                return Known(True, f"line {self._source.line(call)}: {name}")
        found = [name for name in self._helper_calls() if ATOMIC.fullmatch(name)]
        return Known(bool(found), f"a helper calls {found[0]}" if found else "no atomics")

    def uniform_control(self, dim: int) -> Answer:
        """Whether every branch and loop past the guard goes the same way for all ids of a dimension."""
        symbol = global_id(dim)
        guards = self._source.guard.statements
        for variable, bound in self._source.guard.bounds.items():
            if self._indices.depends(bound, symbol):
                said = f"line {self._source.line(bound)}: {variable} is kept below {self._source.text(bound)}"
                return Known(False, f"{said}, which depends on get_global_id({dim})")
        inside_guards = {
            n.id for g in guards if g != self._source.guard.block for n in find(g, *_JUMPS)
        }
        for node in find(self._source.body, *_JUMPS, "if_statement", "for_statement"):
            at = f"line {self._source.line(node)}: {self._source.text(node).split(chr(10))[0]}"
            if node.id in inside_guards or node in guards:
                continue
            if node.type in _JUMPS:
                return Known(False, at)
            for part in ("condition", "initializer", "update"):
                found = node.child_by_field_name(part)
                if found is not None and self._indices.depends(found, symbol):
                    return Known(False, f"{at} depends on get_global_id({dim})")
        return Known(True, f"no branch or loop depends on get_global_id({dim})")

    def accumulates(self) -> Answer:
        """Whether some loop adds terms up in a scalar."""
        for loop in find(self._source.body, "for_statement"):
            for statement in find(loop, "expression_statement"):
                found = reduction(self._source, statement)
                if found is not None and found.operator == "+":
                    said = f"line {self._source.line(statement)}: {self._source.text(statement)}"
                    return Known(True, said)
        return Known(False, "no loop adds up a sum")

    def precise_math(self) -> Answer:
        """Number of calls of functions that have a `native_` form."""
        calls = [(name, call) for name, call in self._source.calls() if name in PRECISE]
        if not calls:
            return Known(0, "no exp, log, sin, cos, tan or sqrt")
        lines = ", ".join(f"{name} at line {self._source.line(call)}" for name, call in calls)
        return Known(len(calls), lines)

    def contains_barrier(self, place: Locus) -> Answer:
        """Whether a barrier or fence stands in a range, or in a helper called from it."""
        node = self._source.node_at(place)
        if node is None:
            return Missing(f"nothing stands at line {place.line}", "anchor the condition to a node")
        for name, call in self._source.calls(node):
            if name in BARRIERS:
                return Known(True, f"line {self._source.line(call)}: {name}")
            if name in self._source.helpers and set(self._helper_calls()) & set(BARRIERS):
                return Known(True, f"line {self._source.line(call)}: {name} may wait at a barrier")
        return Known(False, f"no barrier in lines {place.line}–{node.end_point[0] + 1}")

    def contains_call(self, place: Locus) -> Answer:
        """Whether a range calls one of the kernel's own helpers."""
        node = self._source.node_at(place)
        if node is None:
            return Missing(f"nothing stands at line {place.line}", "anchor the condition to a node")
        for name, call in self._source.calls(node):
            if name in self._source.helpers:
                return Known(True, f"line {self._source.line(call)}: {name}")
        return Known(False, f"no helper is called in lines {place.line}–{node.end_point[0] + 1}")

    def _helper_calls(self) -> Iterator[str]:
        for definition in self._source.helpers.values():
            for call in find(definition.node, "call_expression"):
                callee = field(call, "function")
                yield definition.unit.data[callee.start_byte : callee.end_byte].decode()
