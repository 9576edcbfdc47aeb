"""A loop over a row, several elements an iteration: vector loads, lanes folded at the end."""

from __future__ import annotations

from library.edits import ByteEdit
from library.facts.opencl import OpenCLAnalysis
from library.facts.opencl_loops import Loop, counted, unroll_hint
from library.facts.opencl_reduction import Reduction, loop_body
from library.languages.c_tree import ancestors, declared_name, field
from library.target import Captures, Target
from library.transforms import Parameters
from library.transforms.opencl.lanes import ELEMENTS, Lanes
from library.transforms.opencl.rewrite import (
    StuckError,
    analysis_of,
    edit,
    lines,
    refusing,
    rewritten,
)


@refusing
def vector_row(target: Target, captures: Captures, parameters: Parameters) -> tuple[ByteEdit, ...]:
    """Run the captured `loop` in steps of `width` with vectors, and what is left one by one.

    Reductions get a vector accumulator that is folded into the scalar between the two loops.
    """
    analysis = analysis_of(target)
    node = analysis.source.node_at(captures["loop"][0], "for_statement")
    loop = counted(analysis.source, node) if node is not None else None
    if node is None or loop is None:
        raise StuckError("the anchor captured no loop that counts by a fixed step")
    return (_RowLoop(analysis, loop, int(parameters["width"])).edit(),)


class _RowLoop:
    def __init__(self, analysis: OpenCLAnalysis, loop: Loop, width: int) -> None:
        self._analysis = analysis
        self._source = analysis.source
        self._loop = loop
        self._width = width
        self._body = loop_body(self._source, loop.body)
        self._line = f"line {self._source.line(loop.node)}"
        parent = loop.node.parent
        if parent is None or parent.type != "compound_statement":
            raise StuckError(f"{self._line} is the whole body of another statement")
        if unroll_hint(self._source, loop.node) is not None:
            raise StuckError(f"{self._line} has an unroll hint")
        if loop.start is None or not loop.declares or loop.inclusive or loop.step != 1:
            raise StuckError(f"{self._line} is not written as `for (int j = 0; j < n; ++j)`")

    def edit(self) -> ByteEdit:
        source, loop, width = self._source, self._loop, self._width
        element = self._element()
        wide = {r.variable: self._fresh(f"{r.variable}{width}") for r in self._body.reductions}
        varying = analysis_varying(self._analysis, loop)
        addresses = self._addresses(varying, element)
        lanes = Lanes(
            self._analysis, loop.variable, loop.variable, varying, addresses, element, width, wide
        )
        indent = source.indent(loop.node)
        end, declared = self._vector_end()
        written = [*declared]
        written += [self._accumulator(lanes, r, wide[r.variable]) for r in self._body.reductions]
        written.append(self._main(lanes, end))
        for reduced in self._body.reductions:
            written += self._fold(lanes, reduced, wide[reduced.variable])
        written.append(self._tail(end))
        return edit(source, loop.node, lines(indent, *written))

    def _element(self) -> str:
        """The type of the elements the loop loads and stores."""
        found = {
            self._source.parameters[a.base].type
            for a in self._analysis.memory.within(self._loop.body)
            if a.base in self._source.parameters
        }
        if len(found) != 1 or not found <= set(ELEMENTS):
            raise StuckError(f"{self._line} moves {', '.join(sorted(found)) or 'nothing'}")
        return found.pop()

    def _addresses(self, varying: frozenset[str], element: str) -> frozenset[str]:
        """Loop-local variables of another type than the elements: indices."""
        found = set()
        for node in self._body.temporaries:
            kind = self._source.text(field(node, "type"))
            for declarator in node.children_by_field_name("declarator"):
                name = declared_name(declarator)
                if name is not None and kind != element:
                    found.add(self._source.text(name))
        return frozenset(found) & varying

    def _fresh(self, name: str) -> str:
        return self._source.fresh(name, f"{name}_lanes")

    def _vector_end(self) -> tuple[str, list[str]]:
        """Name of the last multiple of the width, and its declaration unless it is there already."""
        source, loop, width = self._source, self._loop, self._width
        bound = source.text(loop.bound)
        if not bound.isidentifier():
            raise StuckError(f"{self._line} ends at {bound}; give the extent a name")
        if bound in source.assigned:
            raise StuckError(f"{self._line} ends at {bound}, which changes elsewhere")
        name, value = f"{bound}{width}", f"{bound} - {bound} % {width}"
        for entry in source.declared.get(name, ()):
            same = entry.value is not None and source.text(entry.value) == value
            before = entry.declaration.end_byte <= loop.node.start_byte
            visible = entry.declaration.parent in [*ancestors(loop.node, source.body), source.body]
            if same and before and visible:
                return name, []
        name = source.fresh(name, f"{bound}_by{width}")
        kind = self._integer_type(bound)
        return name, [f"const {kind} {name} = {value};"]

    def _integer_type(self, name: str) -> str:
        if name in self._source.parameters:
            return self._source.parameters[name].type
        declared = self._source.declared.get(name)
        return self._source.text(field(declared[0].declaration, "type")) if declared else "int"

    def _accumulator(self, lanes: Lanes, reduced: Reduction, name: str) -> str:
        declared = self._source.declared[reduced.variable][0].declaration
        kind = self._source.text(field(declared, "type"))
        if kind != lanes.type.removesuffix(str(self._width)):
            raise StuckError(f"{self._line} reduces {lanes.type} into a {kind}")
        zero = "0.0f" if kind == "float" else "0"
        one = "1.0f" if kind == "float" else "1"
        start = {"+": zero, "*": one}.get(reduced.operator, reduced.variable)
        return f"{lanes.type} {name} = {start};"

    def _main(self, lanes: Lanes, end: str) -> str:
        source, loop = self._source, self._loop
        edits = [edit(source, loop.bound, end)]
        update = field(loop.node, "update")
        edits.append(edit(source, update, f"{loop.variable} += {self._width}"))
        for statement in self._body.statements:
            reduced = next((r for r in self._body.reductions if r.statement == statement), None)
            if statement in self._body.temporaries:
                edits += lanes.declaration(statement)
            elif reduced is not None:
                edits.append(edit(source, statement, self._step(lanes, reduced)))
            else:
                edits.append(lanes.assignment(statement))
        return rewritten(source, loop.node, edits)

    def _step(self, lanes: Lanes, reduced: Reduction) -> str:
        operator = reduced.operator
        name = lanes.renamed(reduced.variable)
        if reduced.fused:
            left, right, _ = self._source.arguments(reduced.term)
            return f"{name} = {reduced.fused}({lanes.value(left)}, {lanes.value(right)}, {name});"
        if operator in "+*":
            return f"{name} {operator}= {lanes.expression(reduced.term)};"
        return f"{name} = {operator}({name}, {lanes.value(reduced.term)});"

    def _fold(self, lanes: Lanes, reduced: Reduction, name: str) -> list[str]:
        """Halves the lanes until two are left, then adds those to the scalar."""
        kind = lanes.type.removesuffix(str(self._width))
        written = []
        count = self._width
        while count > 2:
            half = self._fresh(f"{reduced.variable}{count // 2}")
            halves = _joined(reduced.operator, f"{name}.lo", f"{name}.hi")
            written.append(f"const {kind}{count // 2} {half} = {halves};")
            name, count = half, count // 2
        last = _joined(reduced.operator, f"{name}.lo", f"{name}.hi")
        if reduced.operator in "+*":
            return [*written, f"{reduced.variable} {reduced.operator}= {last};"]
        return [*written, f"{reduced.variable} = {reduced.operator}({reduced.variable}, {last});"]

    def _tail(self, end: str) -> str:
        source, loop = self._source, self._loop
        if loop.start is None:
            raise StuckError(f"{self._line} has no start")
        return rewritten(source, loop.node, [edit(source, loop.start, end)])


def analysis_varying(analysis: OpenCLAnalysis, loop: Loop) -> frozenset[str]:
    """Variables that differ from iteration to iteration of the loop."""
    return analysis.indices.varying_in(loop.body, loop.variable)


def _joined(operator: str, left: str, right: str) -> str:
    return f"{left} {operator} {right}" if operator in "+*" else f"{operator}({left}, {right})"
