"""A workload file, executed: its inputs, its reference, and what it declares.

The official KLineage problem form (`make_inputs`, `torch_ref`, `check_outputs`) with our optional
names (`numpy_ref`, `SHAPES`, `TOLERANCE`, `MUTATES`); docs/workloads.md has them all. Every
complaint names the file, the symbol, what was expected and what came.
"""

from __future__ import annotations

import inspect
import sys
import types
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from .problems import WorkloadProblem

NOT_AXES = frozenset({"seed", "device", "dtype"})
"""Parameters of make_inputs that are not axes of a shape."""

Axes = Mapping[str, int]


def execute(path: Path, data: bytes, root: Path) -> types.ModuleType:
    """The module that `data` defines, as if it were the file at `path`. Raises what it raises."""
    for folder in (str(path.parent), str(root)):
        if folder not in sys.path:
            sys.path.append(folder)
    module = types.ModuleType(f"_klineage_file_{path.stem}")
    module.__file__ = str(path)
    sys.modules[module.__name__] = module
    exec(compile(data, str(path), "exec", dont_inherit=True), module.__dict__)  # noqa: S102
    return module


class WorkloadModule:
    """One loaded workload file."""

    def __init__(self, path: Path, data: bytes, root: Path) -> None:
        self._path = path
        try:
            self._module = execute(path, data, root)
        except BaseException as error:  # also sys.exit: the file's own words are what helps
            where = _own_line(error, str(path))
            raise WorkloadProblem(f"{path.name}{where}: {type(error).__name__}: {error}") from error
        self.make_inputs = self._function("make_inputs")
        if self.make_inputs is None:
            raise self._problem("make_inputs", "a function returning name → array", "nothing")
        torch_ref, numpy_ref = self._function("torch_ref"), self._function("numpy_ref")
        reference = torch_ref or numpy_ref
        if reference is None:
            raise self._problem("torch_ref or numpy_ref", "a function of the inputs", "neither")
        self.reference = reference
        self.check_outputs = self._function("check_outputs")
        self.uses_torch = torch_ref is not None
        self.shapes = self._shapes()
        self.tolerance = self._tolerance()
        self.mutates = self._mutates()

    def device(self) -> str:
        """Where inputs are made and the reference runs."""
        if not self.uses_torch:
            return "cpu"
        import torch

        return "cuda" if torch.cuda.is_available() else "cpu"

    def inputs(self, axes: Axes, seed: int) -> dict[str, Any]:
        """What make_inputs gives for a shape: arrays, tensors and numbers by name, in order."""
        assert self.make_inputs is not None
        available = {**axes, "seed": seed, "device": self.device()}
        parameters = inspect.signature(self.make_inputs).parameters
        keywords = {name: value for name, value in available.items() if name in parameters}
        unknown = sorted(set(axes) - set(keywords))
        if unknown and not any(p.kind is p.VAR_KEYWORD for p in parameters.values()):
            raise self._problem("SHAPES", f"axes among {sorted(parameters)}", ", ".join(unknown))
        if unknown:
            keywords.update({name: axes[name] for name in unknown})
        made = self._call(self.make_inputs, keywords=keywords)
        if not isinstance(made, Mapping) or not made:
            raise self._problem("make_inputs", "a non-empty mapping name → array", _describe(made))
        return dict(made)

    def expected(self, values: Sequence[Any]) -> dict[str, Any]:
        """The reference's outputs by name: dict keys, namedtuple fields, `output`, `output_0`…"""
        answer = self._call(self.reference, values)
        if isinstance(answer, Mapping):
            named = dict(answer)
        elif hasattr(answer, "_fields"):
            named = dict(zip(answer._fields, answer, strict=True))
        elif isinstance(answer, (tuple, list)):
            named = {f"output_{i}": value for i, value in enumerate(answer)}
        else:
            named = {"output": answer}
        for name, value in named.items():
            if not hasattr(value, "dtype") or not hasattr(value, "shape"):
                raise self._problem(
                    self.reference.__name__, f"an array for {name}", _describe(value)
                )
        if not named:
            raise self._problem(self.reference.__name__, "at least one output", "none")
        return named

    def _call(
        self,
        function: Callable[..., Any],
        values: Sequence[Any] = (),
        keywords: Mapping[str, Any] | None = None,
    ) -> Any:
        try:
            return function(*values, **(keywords or {}))
        except BaseException as error:  # also sys.exit, see __init__
            where = _own_line(error, str(self._path))
            raise WorkloadProblem(
                f"{self._path.name}{where}: {function.__name__}: {type(error).__name__}: {error}"
            ) from error

    def agree(self, actual: Mapping[str, Any], expected: Mapping[str, Any]) -> str:
        """What `check_outputs` says: empty for agreement, else its complaint."""
        assert self.check_outputs is not None
        forms = [self._as_returned(values) for values in (actual, expected)]
        try:
            answer = self.check_outputs(*forms)
        except Exception as error:  # raising is how check_outputs says no
            return f"check_outputs: {type(error).__name__}: {error}"
        return "check_outputs returned False" if answer is False else ""

    def _as_returned(self, named: Mapping[str, Any]) -> Any:
        if list(named) == ["output"]:
            return named["output"]
        if all(name.startswith("output_") for name in named):
            return tuple(named.values())
        return dict(named)

    def _function(self, name: str) -> Any:
        value = getattr(self._module, name, None)
        if value is not None and not callable(value):
            raise self._problem(name, "a function", _describe(value))
        return value

    def _shapes(self) -> list[dict[str, int]]:
        assert self.make_inputs is not None
        defaults = {
            name: parameter.default
            for name, parameter in inspect.signature(self.make_inputs).parameters.items()
            if name not in NOT_AXES and type(parameter.default) is int
        }
        declared = getattr(self._module, "SHAPES", None)
        if declared is None:
            return [defaults]
        shapes = []
        for shape in declared if isinstance(declared, (list, tuple)) else [declared]:
            if not isinstance(shape, Mapping) or not all(type(n) is int for n in shape.values()):
                raise self._problem("SHAPES", "a list of {axis: int}", _describe(shape))
            shapes.append({**defaults, **shape})
        if not shapes:
            raise self._problem("SHAPES", "at least one shape", "an empty list")
        return shapes

    def _tolerance(self) -> dict[str, float] | None:
        declared = getattr(self._module, "TOLERANCE", None)
        if declared is None:
            return None
        if isinstance(declared, (int, float)):
            declared = {"atol": declared, "rtol": declared}
        if not isinstance(declared, Mapping) or not set(declared) <= {"atol", "rtol"}:
            raise self._problem("TOLERANCE", '{"atol": …, "rtol": …} or a number', str(declared))
        return {key: float(declared.get(key, 0.0)) for key in ("atol", "rtol")}

    def _mutates(self) -> tuple[str, ...]:
        declared = getattr(self._module, "MUTATES", ())
        names = (declared,) if isinstance(declared, str) else tuple(declared)
        if not all(isinstance(name, str) for name in names):
            raise self._problem("MUTATES", "names of inputs", _describe(declared))
        return names

    def _problem(self, symbol: str, expected: str, got: str) -> WorkloadProblem:
        return WorkloadProblem(f"{self._path.name}: {symbol}: expected {expected}, got {got}")


def _describe(value: Any) -> str:
    text = repr(value)
    return f"{type(value).__name__} {text if len(text) <= 60 else text[:57] + '…'}"


def _own_line(error: BaseException, path: str) -> str:
    """` line N` of the innermost frame in the file, or of its syntax error."""
    if isinstance(error, SyntaxError) and error.filename == path:
        return f" line {error.lineno}"
    trace, line = error.__traceback__, None
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == path:
            line = trace.tb_lineno
        trace = trace.tb_next
    return f" line {line}" if line else ""
