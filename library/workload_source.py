"""What a workload file says of itself, read from its syntax tree; nothing in it is run.

docs/workloads.md describes the form. A name that is computed rather than written (SHAPES built by a
function, a dtype chosen at run time) is left out, never guessed.
"""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import PurePosixPath

from gate.values.workload import Axes, Workload
from library.languages import Problem, ReadFile
from library.target import Locus
from library.workload_inputs import InputSource, Scope, assigned_once, read_inputs

MAX_BYTES = 4 * 1024 * 1024
NOT_AXES = frozenset({"seed", "device", "dtype"})
"""Parameters of make_inputs that the gate fills in itself."""


@dataclass(frozen=True, slots=True)
class Tolerance:
    """The error a workload allows."""

    atol: float
    rtol: float


@dataclass(frozen=True, slots=True)
class LaunchValue:
    """One value of the dict a launch function returns."""

    locus: Locus
    """The whole expression."""
    elements: tuple[Locus, ...]
    """Each element where the value is written as a tuple or list; else empty."""


@dataclass(frozen=True, slots=True)
class LaunchSource:
    """A `launch` or `launch_<entry>` function as it is written."""

    symbol: str
    locus: Locus
    """From `def` (or its first decorator) to the end of the body."""
    parameter: str
    """Name of the parameter that receives the axes; empty if it takes none."""
    values: Mapping[str, LaunchValue]
    """By key: `global`, `local`, `options`, `arguments`. Empty unless the function has exactly one
    return and it is a dict display, since an edit must hold on every path."""
    normalized: str
    """The syntax tree as text, without positions, comments and docstring: for closure digests."""


@dataclass(frozen=True, slots=True)
class WorkloadSource:
    """Everything a workload file declares in so many words."""

    path: str
    shapes: tuple[Axes, ...] = ()
    """Full axes of each declared shape; the defaults of make_inputs as one shape if none are."""
    defaults: Axes = field(default_factory=dict)
    """Integer parameters of make_inputs, with their defaults."""
    operator: str = ""
    tolerance: Tolerance | None = None
    mutates: tuple[str, ...] = ()
    inputs: tuple[InputSource, ...] = ()
    """In the order make_inputs returns them; empty if it returns no dict display."""
    reference: str = ""
    """`torch_ref` or `numpy_ref`, whichever is defined."""
    outputs: tuple[str, ...] = ()
    """Names, where the reference returns a dict display."""
    launches: Mapping[str, LaunchSource] = field(default_factory=dict)
    """By function name."""
    problems: tuple[Problem, ...] = ()

    def launch_for(self, entry: str) -> LaunchSource | None:
        """The launch of a kernel: `launch_<entry>` if there is one, else `launch`."""
        return self.launches.get(f"launch_{entry}") or self.launches.get("launch")


def find_workload(path: str, read: ReadFile, configured: Mapping[str, str]) -> Workload | None:
    """The workload of a kernel file, or None.

    `configured` (kernel file → workload file) wins; then `<stem>_workload.py` beside the file, then
    `workload.py` in its folder, then in the parent folder.
    """
    here = PurePosixPath(path)
    choices = [
        configured.get(path),
        str(here.with_name(f"{here.stem}_workload.py")),
        str(here.with_name("workload.py")),
        str(here.parent.parent / "workload.py") if len(here.parts) > 1 else None,
    ]
    for choice in choices:
        if choice and choice != path and (data := read(choice)) is not None:
            return Workload(choice, data)
    return None


def read_workload(workload: Workload) -> WorkloadSource:
    """What the file declares. A file that does not parse gives a problem and nothing else."""
    try:
        text = _text(workload.data)
        return _Reader(workload.path, text, _parse(text)).read()
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        line = getattr(error, "lineno", None) or 1
        message = getattr(error, "msg", None) or str(error) or "nested too deeply to parse"
        return WorkloadSource(workload.path, problems=(Problem(workload.path, line, message),))


def _text(data: bytes) -> str:
    if len(data) > MAX_BYTES:
        raise ValueError(f"larger than {MAX_BYTES // 2**20} MiB")
    if b"\0" in data:
        raise ValueError("not a text file: it holds NUL bytes")
    return data.decode("utf-8")


def _parse(text: str) -> ast.Module:
    with warnings.catch_warnings():
        # The user's own invalid escapes are theirs to hear of from Python, not from our log.
        warnings.simplefilter("ignore")
        return ast.parse(text.removeprefix("\ufeff"))


class _Reader:
    """Reads one parsed file; holds its line offsets and the problems met on the way."""

    def __init__(self, path: str, text: str, tree: ast.Module) -> None:
        self._path = path
        self._data = text.encode()
        self._bom = 3 if text.startswith("\ufeff") else 0
        ends = [match.end() for match in re.finditer(rb"\r\n|\r|\n", self._data)]
        self._line_starts = [self._bom, *ends]
        self._functions = {
            node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)
        }
        self._scope = Scope.of_module(tree)
        self._problems: list[Problem] = []

    def read(self) -> WorkloadSource:
        make_inputs = self._functions.get("make_inputs")
        if make_inputs is None:
            self._problem(None, "defines no make_inputs function")
        defaults = self._defaults(make_inputs)
        reference = next((n for n in ("torch_ref", "numpy_ref") if n in self._functions), "")
        return WorkloadSource(
            self._path,
            shapes=self._shapes(defaults),
            defaults=defaults,
            operator=self._string("OPERATOR"),
            tolerance=self._tolerance(),
            mutates=self._mutates(),
            inputs=read_inputs(make_inputs, self._scope) if make_inputs else (),
            reference=reference,
            outputs=tuple(self._returned(self._functions[reference])) if reference else (),
            launches={
                name: self._launch(node)
                for name, node in self._functions.items()
                if name == "launch" or name.startswith("launch_")
            },
            problems=tuple(self._problems),
        )

    def _problem(self, node: ast.expr | None, message: str) -> None:
        self._problems.append(Problem(self._path, node.lineno if node else 1, message))

    def _locus(self, node: ast.expr | ast.FunctionDef, first: ast.expr | None = None) -> Locus:
        begin = first or node
        start = self._offset(begin.lineno, begin.col_offset)
        if first is not None:  # a decorator's expression starts after its @
            start = self._data.rindex(b"@", 0, start)
        end = self._offset(node.end_lineno or node.lineno, node.end_col_offset or 0)
        text = self._data[start:end].decode()
        return Locus(self._path, start, end, begin.lineno, text)

    def _offset(self, line: int, column: int) -> int:
        return self._line_starts[line - 1] + column

    def _defaults(self, make_inputs: ast.FunctionDef | None) -> dict[str, int]:
        if make_inputs is None:
            return {}
        given = self._scope.parameters(make_inputs)
        found = {name: self._scope.integer(node) for name, node in given.items()}
        return {n: v for n, v in found.items() if v is not None and n not in NOT_AXES}

    def _shapes(self, defaults: Axes) -> tuple[Axes, ...]:
        node = self._scope.names.get("SHAPES")
        if node is None:
            return (defaults,) if defaults else ()
        entries = node.elts if isinstance(node, ast.List | ast.Tuple) else None
        shapes = [self._axes(entry) for entry in entries or ()]
        written = [shape for shape in shapes if shape is not None]
        if entries is None or len(written) < len(shapes) or not written:
            self._problem(
                node,
                "SHAPES is not written out as a list of {axis: integer}; its shapes are unknown",
            )
            return ()
        return tuple({**defaults, **shape} for shape in written)

    def _axes(self, node: ast.expr) -> dict[str, int] | None:
        pairs = dict(self._scope.items(node))
        found = {name: self._scope.integer(value) for name, value in pairs.items()}
        known = {name: value for name, value in found.items() if value is not None}
        return known if known and len(known) == len(found) else None

    def _string(self, name: str) -> str:
        node = self._scope.names.get(name)
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            return node.value
        return ""

    def _tolerance(self) -> Tolerance | None:
        node = self._scope.names.get("TOLERANCE")
        if node is None:
            return None
        value = self._scope.number(node)
        if value is not None:
            return Tolerance(value, value)
        parts = {name: self._scope.number(item) for name, item in self._scope.items(node)}
        atol, rtol = parts.get("atol", 0.0), parts.get("rtol", 0.0)
        if not parts or atol is None or rtol is None or set(parts) - {"atol", "rtol"}:
            self._problem(
                node, 'TOLERANCE is neither a number nor {"atol": number, "rtol": number}'
            )
            return None
        return Tolerance(atol, rtol)

    def _mutates(self) -> tuple[str, ...]:
        node = self._scope.names.get("MUTATES")
        if node is None:
            return ()
        elements = node.elts if isinstance(node, ast.List | ast.Tuple | ast.Set) else [node]
        names = [
            e.value for e in elements if isinstance(e, ast.Constant) and isinstance(e.value, str)
        ]
        if len(names) < len(elements):
            self._problem(node, "MUTATES is not written out as a list of input names")
        return tuple(names)

    def _returned(self, function: ast.FunctionDef) -> dict[str, ast.expr]:
        """Items of the dict display that is the function's only return; else empty."""
        returns = own_returns(function)
        if len(returns) != 1 or returns[0].value is None:
            return {}
        return dict(Scope({}).items(returns[0].value))

    def _launch(self, function: ast.FunctionDef) -> LaunchSource:
        values = {}
        # Tuples only: a named list or dict may be changed between its assignment and the return.
        local = {n: v for n, v in assigned_once(function.body).items() if isinstance(v, ast.Tuple)}
        for key, written in self._returned(function).items():
            node = Scope(local).resolve(written)
            elements = node.elts if isinstance(node, ast.Tuple | ast.List) else []
            values[key] = LaunchValue(self._locus(node), tuple(map(self._locus, elements)))
        arguments = function.args.posonlyargs + function.args.args
        body = function.body[1:] if ast.get_docstring(function) else function.body
        return LaunchSource(
            function.name,
            self._locus(function, function.decorator_list[0] if function.decorator_list else None),
            arguments[0].arg if arguments else "",
            values,
            "\n".join(ast.dump(part) for part in (function.args, *body)),
        )


def own_returns(function: ast.FunctionDef) -> list[ast.Return]:
    """The return statements of a function, without those of functions nested in it."""
    found: list[ast.Return] = []
    pending: list[ast.AST] = list(function.body)
    while pending:
        node = pending.pop(0)
        if isinstance(node, ast.Return):
            found.append(node)
        elif not isinstance(
            node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda
        ):
            pending.extend(ast.iter_child_nodes(node))
    return found
