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

from .arrays import carrier, is_float, read_arrays, write_arrays
from .comparison import Difference, compare, root_mean_square, scaled, within_budget
from .languages import Tensor, TensorSpec
from .namespace import float64, give_back_device_memory
from .problems import WorkloadProblem
from .values import copied, exact, in_form_of, redrawn, spec_of, to_input, to_output, widened
from .workload_module import WorkloadModule


@dataclass(slots=True)
class Expectation:
    """A case: what is right, and how far the original was from it."""

    inputs: Mapping[str, Any]
    native: Mapping[str, Any]
    """The reference's own outputs, where `check_outputs` will want to see them."""
    exact: Mapping[str, Any]
    """The same in float64; integers as they are."""
    specs: Mapping[str, TensorSpec]
    rms: Mapping[str, float]
    """Root mean square of the floating outputs."""
    growth: Mapping[str, float]
    """How much larger an output is than make_inputs' own inputs make it, at least 1. A declared
    absolute tolerance speaks of those."""
    original_error: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Drawn:
    """What make_inputs gave for a shape and a seed."""

    axes: Mapping[str, int]
    seed: int
    inputs: Mapping[str, Any]


class Oracle:
    """One workload file, and the cases of it that may still be judged."""

    def __init__(self) -> None:
        self._workload: WorkloadModule | None = None
        self._cases: dict[int, Expectation] = {}
        """By slot."""
        self._drawn: Drawn | None = None
        self._widen: bool | None = None
        """Whether the reference also makes sense in float64; found out on the first case."""
        self._usual: dict[tuple[str, str], float] = {}
        """Root mean square of an output, by shape and name, on inputs as make_inputs drew them."""

    def load(self, params: dict[str, Any]) -> dict[str, object]:
        """Execute the file; gives what it declares."""
        data = Path(params["data"]).read_bytes()
        self._workload = workload = WorkloadModule(Path(params["path"]), data, Path(params["root"]))
        return {
            "shapes": workload.shapes,
            "mutates": list(workload.mutates),
            "reference": "torch" if workload.uses_torch else "numpy",
            "tolerance_declared": workload.tolerance is not None,
        }

    def case(self, params: dict[str, Any]) -> dict[str, object]:
        """Make inputs, write them for the kernels, and work out what is right.

        Of the cases before, those in the slots `keep` stay. `available` is false where the
        distribution has no floating input to act on.
        """
        workload = self._loaded()
        seed, distribution = int(params["seed"]), params["distribution"]
        self._cases = {slot: self._cases[slot] for slot in params["keep"] if slot in self._cases}
        made = self._draw(params["axes"], seed)
        missing = [name for name in workload.mutates if name not in made]
        if missing:
            raise WorkloadProblem(f"MUTATES: expected names of inputs, got {missing}")
        inputs = redrawn(made, distribution, seed)
        if inputs is None:
            return {"available": False, "inputs": [], "outputs": []}
        crossing = {name: to_input(name, value) for name, value in inputs.items()}
        native = workload.expected([copied(value) for value in inputs.values()])
        specs = {name: spec_of(value) for name, value in native.items()}
        right = self._exact(workload, list(inputs.values()), native, specs)
        rms = {
            name: root_mean_square(values) if is_float(specs[name].dtype) else 0.0
            for name, values in right.items()
        }
        give_back_device_memory()
        self._cases[params["slot"]] = Expectation(
            inputs=inputs,
            native=native if workload.check_outputs is not None else {},
            exact=right,
            specs=specs,
            rms=rms,
            growth=self._growth(rms, str(params["axes"]), distribution),
        )
        return {
            "available": True,
            "inputs": write_arrays(Path(params["folder"]), crossing),
            "outputs": [
                {
                    "name": name,
                    "dtype": spec.dtype,
                    "shape": list(spec.shape),
                    "bytes": math.prod(spec.shape) * carrier(spec.dtype).itemsize,
                }
                for name, spec in specs.items()
            ],
        }

    def _draw(self, axes: Mapping[str, int], seed: int) -> Mapping[str, Any]:
        """make_inputs, called once for all distributions of a shape and a seed."""
        drawn = self._drawn
        if drawn is None or drawn.axes != axes or drawn.seed != seed:
            self._drawn = None  # before the next is made: two would be in memory
            drawn = self._drawn = Drawn(axes, seed, self._loaded().inputs(axes, seed))
        return drawn.inputs

    def controls(self, params: dict[str, Any]) -> dict[str, object]:
        """Trivial outputs that the comparison would accept. There must be none."""
        case = self._case(params["slot"])
        fooled = []
        zeros = {
            name: Tensor(spec.dtype, np.zeros(spec.shape, carrier(spec.dtype)))
            for name, spec in case.specs.items()
        }
        if self._accepts(case, zeros):
            fooled.append("all zeros")
        copies = _copies_of_inputs(case)
        if copies is not None and self._accepts(case, copies):
            fooled.append("a copy of an input")
        return {"fooled_by": fooled}

    def judge(self, params: dict[str, Any]) -> dict[str, object]:
        """Compare outputs. `original`: they are the original's, whose error becomes the budget."""
        case = self._case(params["slot"])
        try:
            outputs = read_arrays(params["outputs"])
        except (OSError, ValueError, TypeError, KeyError) as error:
            return _judgement(False, f"outputs cannot be read: {error}", math.inf, math.inf)
        missing = [name for name in case.exact if not isinstance(outputs.get(name), Tensor)]
        if missing:
            return _judgement(False, f"no output named {', '.join(missing)}", math.inf, math.inf)
        tensors = {name: value for name, value in outputs.items() if isinstance(value, Tensor)}
        differences = self._differences(case, tensors)
        relative = max(difference.error for difference in differences)
        max_abs = max(difference.max_abs for difference in differences)
        complaint = self._complaint(case, tensors, differences)
        if params["original"]:
            case.original_error = {each.name: each.error for each in differences}
        elif not complaint:
            complaint = self._over_budget(case, differences)
        return _judgement(not complaint, complaint, relative, max_abs)

    def _complaint(
        self, case: Expectation, tensors: Mapping[str, Tensor], differences: list[Difference]
    ) -> str:
        workload = self._loaded()
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

    def _over_budget(self, case: Expectation, differences: list[Difference]) -> str:
        if self._loaded().check_outputs is not None:
            return ""
        for difference in differences:
            before = case.original_error.get(difference.name, 0.0)
            if not within_budget(difference.error, before, case.specs[difference.name].dtype):
                return (
                    f"within tolerance, but the relative error grew from {before:.2g} to "
                    f"{difference.error:.2g}; {difference.first}"
                )
        return ""

    def _differences(self, case: Expectation, tensors: Mapping[str, Tensor]) -> list[Difference]:
        declared = self._loaded().tolerance
        return [
            compare(
                name,
                tensors[name],
                exact,
                case.specs[name].dtype,
                scaled(declared, case.growth[name]),
                case.rms[name],
            )
            for name, exact in case.exact.items()
        ]

    def _growth(self, rms: Mapping[str, float], shape: str, distribution: str) -> dict[str, float]:
        growth = {}
        for name, value in rms.items():
            if distribution == "normal":
                self._usual[shape, name] = value
            usual = self._usual.get((shape, name), 0.0)
            growth[name] = max(1.0, value / usual) if usual > 0.0 else 1.0
        return growth

    def _accepts(self, case: Expectation, tensors: Mapping[str, Tensor]) -> bool:
        return not self._complaint(case, tensors, self._differences(case, tensors))

    def _exact(
        self,
        workload: WorkloadModule,
        values: Sequence[Any],
        native: Mapping[str, Any],
        specs: Mapping[str, TensorSpec],
    ) -> dict[str, Any]:
        """The reference in float64 if it agrees there with itself, else its native outputs."""
        if self._widen is False or not any(is_float(spec.dtype) for spec in specs.values()):
            return {name: exact(value) for name, value in native.items()}
        try:
            wide = workload.expected([widened(value) for value in values])
            widest = {name: _wide_like(wide[name], native[name]) for name in native}
        except Exception:  # a reference may insist on its dtypes; then its native answer stands
            self._widen = False
            return {name: exact(value) for name, value in native.items()}
        if self._widen is None:
            self._widen = all(
                not compare(
                    name, to_output(value), widest[name], specs[name].dtype, workload.tolerance
                ).wrong
                for name, value in native.items()
            )
        return widest if self._widen else {name: exact(value) for name, value in native.items()}

    def _loaded(self) -> WorkloadModule:
        if self._workload is None:
            raise RuntimeError("load comes first")
        return self._workload

    def _case(self, slot: int) -> Expectation:
        if slot not in self._cases:
            raise RuntimeError(f"no case in slot {slot}")
        return self._cases[slot]


def handlers() -> dict[str, Callable[[dict[str, Any]], Mapping[str, object]]]:
    """The methods of role `oracle`."""
    oracle = Oracle()
    return {
        "load": oracle.load,
        "case": oracle.case,
        "controls": oracle.controls,
        "judge": oracle.judge,
    }


def _wide_like(value: Any, native: Any) -> Any:
    """An output of the widened reference; integers must have stayed what they were."""
    before = spec_of(native)
    if is_float(before.dtype):
        return float64(exact(value))
    wide = to_output(value)
    if wide.dtype != before.dtype or not np.array_equal(wide.array, exact(native)):
        raise ValueError("an integer output changes with the inputs' precision")
    return wide.array


def _copies_of_inputs(case: Expectation) -> dict[str, Tensor] | None:
    """For each output an input of its dtype and size; None if one has no such input."""
    copies = {}
    for name, spec in case.specs.items():
        for value in case.inputs.values():
            tensor = to_input(name, value)
            fits = isinstance(tensor, Tensor) and tensor.dtype == spec.dtype
            if isinstance(tensor, Tensor) and fits and tensor.array.size == math.prod(spec.shape):
                copies[name] = Tensor(spec.dtype, tensor.array.reshape(spec.shape))
                break
        else:
            return None
    return copies


def _judgement(passed: bool, message: str, error: float, max_abs: float) -> dict[str, object]:
    """Numbers that are not finite go as None, for which JSON has a word."""
    return {
        "passed": passed,
        "message": message[:500],
        "error": error if math.isfinite(error) else None,
        "max_abs": max_abs if math.isfinite(max_abs) else None,
    }
