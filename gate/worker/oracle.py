"""The oracle: makes inputs from secret seeds, knows what is right, and says whether an output is.

It runs the workload file's original bytes and is trusted. Nothing it computes but inputs and the
shapes of outputs ever reaches a kernel's process.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from .arrays import is_float, read_arrays, to_float64, write_arrays
from .comparison import Difference, compare, root_mean_square, scaled, within_budget
from .languages import Tensor
from .problems import WorkloadProblem
from .values import copied, in_form_of, redrawn, to_input, to_output, widened
from .workload_module import WorkloadModule


@dataclass(slots=True)
class Expectation:
    """The case at hand: what is right, and how far the original was from it."""

    inputs: Mapping[str, Any]
    native: Mapping[str, Any]
    """The reference's own outputs, in the dtype it computes in."""
    exact: Mapping[str, np.ndarray]
    """The same in float64; integers as they are."""
    dtypes: Mapping[str, str]
    growth: Mapping[str, float]
    """How much larger an output is than make_inputs' own inputs make it, at least 1. A declared
    absolute tolerance speaks of those."""
    original_error: dict[str, float] = field(default_factory=dict)


class Oracle:
    """One workload file, one case at a time."""

    def __init__(self) -> None:
        self._workload: WorkloadModule | None = None
        self._case: Expectation | None = None
        self._widen: bool | None = None
        """Whether the reference also makes sense in float64; found out on the first case."""
        self._usual: dict[tuple[str, str], float] = {}
        """Root mean square of an output, by shape and name, on inputs as make_inputs drew them."""

    def load(self, params: dict[str, Any]) -> dict[str, object]:
        """Execute the file; gives what it declares."""
        data = Path(params["data"]).read_bytes()
        self._workload = workload = WorkloadModule(Path(params["path"]), data, Path(params["root"]))
        self._widen = None
        self._usual.clear()
        return {
            "shapes": workload.shapes,
            "mutates": list(workload.mutates),
            "reference": "torch" if workload.uses_torch else "numpy",
            "tolerance_declared": workload.tolerance is not None,
        }

    def case(self, params: dict[str, Any]) -> dict[str, object]:
        """Make inputs, write them for the kernels, and work out what is right.

        `available` is false where the distribution has no floating input to act on.
        """
        workload = self._loaded()
        seed, distribution = int(params["seed"]), params["distribution"]
        self._case = None
        made = workload.inputs(params["axes"], seed)
        missing = [name for name in workload.mutates if name not in made]
        if missing:
            raise WorkloadProblem(f"MUTATES: expected names of inputs, got {missing}")
        inputs = redrawn(made, distribution, seed)
        if inputs is None:
            return {"available": False, "inputs": [], "outputs": []}
        crossing = {name: to_input(name, value) for name, value in inputs.items()}
        native = workload.expected([copied(value) for value in inputs.values()])
        tensors = {name: to_output(value) for name, value in native.items()}
        exact = self._exact(workload, list(inputs.values()), tensors)
        self._case = Expectation(
            inputs=inputs,
            native=native,
            exact=exact,
            dtypes={name: tensor.dtype for name, tensor in tensors.items()},
            growth=self._growth(exact, str(params["axes"]), distribution),
        )
        return {
            "available": True,
            "inputs": write_arrays(Path(params["folder"]), crossing),
            "outputs": [
                {"name": name, "dtype": tensor.dtype, "shape": list(tensor.array.shape)}
                for name, tensor in tensors.items()
            ],
        }

    def controls(self, params: dict[str, Any]) -> dict[str, object]:
        """Trivial outputs that the comparison would accept. There must be none."""
        case = self._present()
        fooled = []
        zeros = {
            name: Tensor(dtype, np.zeros(case.exact[name].shape, _storage(case.native[name])))
            for name, dtype in case.dtypes.items()
        }
        if self._accepts(zeros):
            fooled.append("all zeros")
        copies = self._copies_of_inputs()
        if copies is not None and self._accepts(copies):
            fooled.append("a copy of an input")
        return {"fooled_by": fooled}

    def judge(self, params: dict[str, Any]) -> dict[str, object]:
        """Compare outputs. `original`: they are the original's, whose error becomes the budget."""
        case = self._present()
        try:
            outputs = read_arrays(params["outputs"])
        except (OSError, ValueError, TypeError, KeyError) as error:
            return _judgement(False, f"outputs cannot be read: {error}", math.inf, math.inf)
        missing = [name for name in case.exact if not isinstance(outputs.get(name), Tensor)]
        if missing:
            return _judgement(False, f"no output named {', '.join(missing)}", math.inf, math.inf)
        tensors = {name: value for name, value in outputs.items() if isinstance(value, Tensor)}
        differences = self._differences(tensors)
        relative = max(difference.error for difference in differences)
        max_abs = max(difference.max_abs for difference in differences)
        complaint = self._complaint(tensors, differences)
        if params["original"]:
            case.original_error = {each.name: each.error for each in differences}
        elif not complaint:
            complaint = self._over_budget(differences)
        return _judgement(not complaint, complaint, relative, max_abs)

    def _complaint(self, tensors: Mapping[str, Tensor], differences: list[Difference]) -> str:
        workload, case = self._loaded(), self._present()
        if workload.check_outputs is not None:
            misfit = next((d.first for d in differences if " is " in d.first), "")
            if misfit:
                return misfit
            formed = {name: in_form_of(tensors[name], like) for name, like in case.native.items()}
            return workload.agree(formed, case.native)
        return next(
            (
                f"{d.wrong} of {d.elements} elements wrong; {d.first}"
                for d in differences
                if d.wrong
            ),
            "",
        )

    def _over_budget(self, differences: list[Difference]) -> str:
        case = self._present()
        if self._loaded().check_outputs is not None:
            return ""
        for difference in differences:
            before = case.original_error.get(difference.name, 0.0)
            if not within_budget(difference.error, before, case.dtypes[difference.name]):
                return (
                    f"within tolerance, but the relative error grew from {before:.2g} to "
                    f"{difference.error:.2g}; {difference.first}"
                )
        return ""

    def _differences(self, tensors: Mapping[str, Tensor]) -> list[Difference]:
        case, declared = self._present(), self._loaded().tolerance
        return [
            compare(
                name,
                tensors[name],
                exact,
                case.dtypes[name],
                scaled(declared, case.growth[name]),
            )
            for name, exact in case.exact.items()
        ]

    def _growth(
        self, exact: Mapping[str, np.ndarray], shape: str, distribution: str
    ) -> dict[str, float]:
        growth = {}
        for name, values in exact.items():
            rms = root_mean_square(values) if values.dtype.kind == "f" else 0.0
            if distribution == "normal":
                self._usual[shape, name] = rms
            usual = self._usual.get((shape, name), 0.0)
            growth[name] = max(1.0, rms / usual) if usual > 0.0 else 1.0
        return growth

    def _accepts(self, tensors: Mapping[str, Tensor]) -> bool:
        return not self._complaint(tensors, self._differences(tensors))

    def _copies_of_inputs(self) -> dict[str, Tensor] | None:
        case = self._present()
        copies = {}
        for name, dtype in case.dtypes.items():
            shape = case.exact[name].shape
            for value in case.inputs.values():
                tensor = to_input(name, value)
                fits = isinstance(tensor, Tensor) and tensor.dtype == dtype
                if isinstance(tensor, Tensor) and fits and tensor.array.size == math.prod(shape):
                    copies[name] = Tensor(dtype, tensor.array.reshape(shape))
                    break
            else:
                return None
        return copies

    def _exact(
        self, workload: WorkloadModule, values: Sequence[Any], tensors: Mapping[str, Tensor]
    ) -> dict[str, np.ndarray]:
        """The reference in float64 if it agrees there with itself, else its native outputs."""
        native = {name: _float64_or_integer(tensor) for name, tensor in tensors.items()}
        if self._widen is False or not any(is_float(t.dtype) for t in tensors.values()):
            return native
        try:
            wide = workload.expected([widened(value) for value in values])
            exact = {name: _wide_like(wide[name], tensors[name]) for name in tensors}
        except Exception:  # a reference may insist on its dtypes; then its native answer stands
            self._widen = False
            return native
        if self._widen is None:
            self._widen = all(
                not compare(name, tensor, exact[name], tensor.dtype, workload.tolerance).wrong
                for name, tensor in tensors.items()
            )
        return exact if self._widen else native

    def _loaded(self) -> WorkloadModule:
        if self._workload is None:
            raise RuntimeError("load comes first")
        return self._workload

    def _present(self) -> Expectation:
        if self._case is None:
            raise RuntimeError("case comes first")
        return self._case


def handlers() -> dict[str, Callable[[dict[str, Any]], Mapping[str, object]]]:
    """The methods of role `oracle`."""
    oracle = Oracle()
    return {
        "load": oracle.load,
        "case": oracle.case,
        "controls": oracle.controls,
        "judge": oracle.judge,
    }


def _float64_or_integer(tensor: Tensor) -> np.ndarray:
    return to_float64(tensor) if is_float(tensor.dtype) else tensor.array


def _wide_like(value: Any, native: Tensor) -> np.ndarray:
    """An output of the widened reference; integers must have stayed what they were."""
    tensor = to_output(value)
    if is_float(native.dtype):
        return _float64_or_integer(tensor).astype(np.float64)
    if tensor.dtype != native.dtype or not np.array_equal(tensor.array, native.array):
        raise ValueError("an integer output changes with the inputs' precision")
    return native.array


def _storage(value: Any) -> np.dtype[Any]:
    return to_output(value).array.dtype


def _judgement(passed: bool, message: str, error: float, max_abs: float) -> dict[str, object]:
    """Numbers that are not finite go as None, for which JSON has a word."""
    return {
        "passed": passed,
        "message": message[:500],
        "error": error if math.isfinite(error) else None,
        "max_abs": max_abs if math.isfinite(max_abs) else None,
    }
