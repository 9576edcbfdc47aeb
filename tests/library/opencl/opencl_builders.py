"""OpenCL kernels outside the samples, their analyses, and a real device to run them on."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import library
from gate.values.candidate import Candidate
from gate.values.kernel import Kernel
from gate.values.platform import Platform
from gate.values.trace import ArgumentTrace, LaunchTrace
from library.card import Card
from library.detect import detect, target_for
from library.edits import Refusal
from library.materialize import materialize
from library.retrieval.offer import Answer, Offer
from library.retrieval.retrieve import retrieve
from library.store import Place, Store
from library.target import Target
from library.workload_source import find_workload

SHIPPED = Path(library.__file__).parent / "skills"
POCL = Platform(
    "pocl-cpu",
    "a CPU",
    {
        "device_type": "cpu",
        "compute_units": 2,
        "preferred_vector_float": 16,
        "max_work_group_size": 4096,
        "local_memory_bytes": 1 << 20,
    },
)


@dataclass(frozen=True)
class Case:
    """A kernel file with its workload; the kernel as it stands is the reference."""

    source: str
    workload: str
    entry: str = "f"

    def files(self) -> dict[str, bytes]:
        return {"k.cl": self.source.encode(), "workload.py": self.workload.encode()}


def workload(
    inputs: str,
    shapes: str,
    launch: str,
    *,
    outputs: str = "",
    tolerance: str = "TOLERANCE = {'atol': 1e-4, 'rtol': 1e-4}",
) -> str:
    """A workload file; `inputs` and `outputs` are dict bodies over the axes and `rng`."""
    axes = sorted({name for shape in eval(shapes) for name in shape})
    declared = ", ".join(f"{axis}=8" for axis in axes)
    return f"""
import numpy as np

SHAPES = {shapes}
{tolerance}


def make_inputs({declared}, seed=0):
    rng = np.random.default_rng(seed)
    return {{{inputs}}}


def outputs({declared}):
    return {{{outputs}}}


def launch(axes):
    return {launch}
"""


def kernel_of(files: Mapping[str, bytes], entry: str = "f", path: str = "k.cl") -> Kernel:
    found = detect(path, files[path], files.get, {})
    assert not found.problems, found.problems
    return next(kernel for kernel in found.kernels if kernel.entry == entry)


def target_of(
    files: Mapping[str, bytes],
    entry: str = "f",
    *,
    path: str = "k.cl",
    traced: bool = True,
    overlaps: tuple[str, ...] = (),
) -> Target:
    kernel = kernel_of(files, entry, path)
    traces = (trace_of(kernel, overlaps),) if traced else ()
    return target_for(kernel, find_workload(path, files.get, {}), POCL, traces)


def trace_of(kernel: Kernel, overlaps: tuple[str, ...] = ()) -> LaunchTrace:
    """A launch whose buffers overlap those named, or nothing."""
    source = target_for(kernel, None, None).analysis.source  # type: ignore[attr-defined]
    arguments = {
        name: ArgumentTrace("pointer", "float32", overlaps=overlaps)
        for name, parameter in source.parameters.items()
        if parameter.pointer
    }
    return LaunchTrace({}, kernel.entry, (1,), (), {}, arguments)


def card(name: str) -> Card:
    """A shipped card by its id without the language."""
    store = Store([Place("shipped", SHIPPED)]).load()
    return next(e.card for e in store.entries if e.card.skill_id == f"opencl.{name}")


def offers(name: str, target: Target) -> list[Offer]:
    """What retrieval says of one shipped card on a target."""
    store = Store([Place("shipped", SHIPPED)]).load()
    return [o for o in retrieve(target, store).offers if o.entry.card.skill_id == f"opencl.{name}"]


def applying(name: str, target: Target) -> list[Offer]:
    return [offer for offer in offers(name, target) if offer.answer is Answer.APPLIES]


def applied(name: str, target: Target, which: int = 0) -> dict[str, bytes]:
    """The kernel's files after a card that applies has been materialized."""
    found = applying(name, target)
    assert found, [reason for offer in offers(name, target) for reason in offer.against]
    offer = found[which]
    candidate = materialize(offer.entry.card, offer.match, target)
    assert isinstance(candidate, Candidate), candidate
    return {file.path: file.data for file in candidate.files_over(target.kernel)}


def refusal(name: str, target: Target) -> str:
    """Why a card does not act on a target: conditions that are not met, or the transform's own."""
    found = applying(name, target)
    if not found:
        return "; ".join(reason.about for offer in offers(name, target) for reason in offer.against)
    results = [materialize(o.entry.card, o.match, target) for o in found]
    refusals = [result.reason for result in results if isinstance(result, Refusal)]
    assert len(refusals) == len(results), "the card made a candidate"
    return refusals[0]


class Device:
    """The PoCL CPU device, for running a kernel as the launch function of its workload says."""

    def __init__(self) -> None:
        import pyopencl as cl

        from gate.worker.pocl_cpu import name_host_cpu

        self._cl = cl
        device = cl.get_platforms()[0].get_devices()[0]
        name_host_cpu(device)
        self._context = cl.Context([device])
        self._queue = cl.CommandQueue(self._context)

    def run(
        self, files: Mapping[str, bytes], axes: Mapping[str, int], entry: str = "f"
    ) -> dict[str, np.ndarray]:
        """Every buffer after one launch, outputs poisoned before; guard zones are checked."""
        cl, names = self._cl, {}
        exec(files["workload.py"], names)
        launch = (names.get(f"launch_{entry}") or names["launch"])(axes)
        options = "-cl-kernel-arg-info " + launch.get("options", "")
        with warnings.catch_warnings():
            # A compiler says so where it could not unroll as asked; that is no failure.
            warnings.simplefilter("ignore", cl.CompilerWarning)
            program = cl.Program(self._context, files["k.cl"].decode()).build(
                options, cache_dir=False
            )
        kernel = cl.Kernel(program, entry)
        values = names["make_inputs"](**axes)
        if "outputs" in names:
            values |= names["outputs"](**axes)
        else:
            values |= {k: np.full_like(v, np.nan) for k, v in names["numpy_ref"](**values).items()}
        arguments, buffers = [], {}
        for i in range(kernel.num_args):
            name = kernel.get_arg_info(i, cl.kernel_arg_info.NAME)
            value: Any = values.get(name, axes.get(name))
            if isinstance(value, np.ndarray):
                zone = np.full(64, 77, value.dtype)
                padded = np.concatenate([value.ravel(), zone])
                flags = cl.mem_flags.READ_WRITE | cl.mem_flags.COPY_HOST_PTR
                buffers[name] = (value, cl.Buffer(self._context, flags, hostbuf=padded))
                arguments.append(buffers[name][1])
            else:
                arguments.append(np.int32(value) if isinstance(value, int) else np.float32(value))
        # One work-item a group where the driver may choose: PoCL compiles again for each size.
        local = launch.get("local") or (1,) * len(launch["global"])
        kernel(self._queue, launch["global"], local, *arguments)
        return {name: self._read(name, *held) for name, held in buffers.items()}

    def _read(self, name: str, like: np.ndarray, buffer: object) -> np.ndarray:
        out = np.empty(like.size + 64, like.dtype)
        self._cl.enqueue_copy(self._queue, out, buffer)
        self._queue.finish()
        assert (out[like.size :] == 77).all(), f"{name} was written past its end"
        return out[: like.size].reshape(like.shape)


def shapes_of(files: Mapping[str, bytes]) -> list[dict[str, int]]:
    names: dict[str, Any] = {}
    exec(files["workload.py"], names)
    return names["SHAPES"]
