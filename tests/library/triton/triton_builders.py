"""Builders for Triton targets: kernels from text or from kernels/, workloads, a Hopper platform."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from gate.values.kernel import Kernel
from gate.values.platform import Capability, Platform
from gate.values.workload import Workload
from library.card import TransformCarrier
from library.conditions import TargetFacts
from library.edits import Refusal, splice
from library.languages.triton import Triton
from library.retrieval.consider import consider
from library.retrieval.offer import Answer, Offer
from library.store import Place, Store
from library.target import Target
from library.transforms.triton import TRANSFORMS
from library.workload_source import read_workload

ROOT = Path(__file__).parents[3]
KERNELS = Path(__file__).parent / "kernels"
SHIPPED = Store([Place("shipped", ROOT / "library" / "skills")]).load()

HOPPER: Mapping[str, Capability] = {
    "device_type": "gpu",
    "compute_units": 132,
    "shared_memory_per_block_optin_bytes": 232448,
    "l2_bytes": 52428800,
    "tma": True,
    "wgmma": True,
    "cp_async": True,
}


@dataclass(frozen=True)
class Subject:
    """A kernel file with a workload that fits it."""

    name: str
    path: str
    source: str
    workload: str

    @property
    def target(self) -> Target:
        return target(self.source, self.workload, path=self.path)


def hopper(**changed: Capability | None) -> Platform:
    """An sm_90a platform; `name=None` drops a capability."""
    capabilities = {**HOPPER, **changed}
    return Platform("sm_90a", "a Hopper", {k: v for k, v in capabilities.items() if v is not None})


def workload(
    inputs: str = "a: (M, K), b: (K, N)",
    shapes: str = "M=4096 N=4096 K=4096",
    dtype: str = "torch.bfloat16",
    operator: str = "",
) -> str:
    """A workload file whose inputs are torch.randn of the given shapes; shapes split by commas."""
    axes = [dict(pair.split("=") for pair in shape.split()) for shape in shapes.split(",")]
    written = ", ".join(
        "{" + ", ".join(f'"{axis}": {extent}' for axis, extent in each.items()) + "}"
        for each in axes
    )
    parts = [part.strip(" )").split(": (") for part in inputs.split("),")]
    returned = ", ".join(
        f'"{name}": torch.randn(({extents},), dtype={dtype})' for name, extents in parts
    )
    defaults = ", ".join(f"{axis}={extent}" for axis, extent in axes[0].items())
    return (
        "import torch\n\n"
        + (f'OPERATOR = "{operator}"\n' if operator else "")
        + f"SHAPES = [{written}]\n\n\n"
        + f"def make_inputs({defaults}, seed=0):\n    return {{{returned}}}\n\n\n"
        + "def torch_ref(*inputs):\n    return inputs[0]\n"
    )


def find(
    source: str,
    path: str = "kernel.py",
    others: Mapping[str, str] | None = None,
    operator: str = "",
) -> tuple[tuple[Kernel, ...], list[str]]:
    """Kernels of a file in a worktree of texts, and the problems as lines."""
    files = {path: source, **(others or {})}
    declared = Workload("workload.py", workload(operator=operator).encode()) if operator else None
    found = Triton().find(
        path,
        source.encode(),
        declared,
        lambda name: files[name].encode() if name in files else None,
    )
    return found.kernels, [f"line {p.line}: {p.message}" for p in found.problems]


def target(
    source: str,
    workload_text: str | None = None,
    path: str = "kernel.py",
    platform: Platform | None = None,
    entry: str = "",
) -> Target:
    """The first kernel (or `entry`) of a text, on Hopper unless told otherwise."""
    declared = Workload("workload.py", workload_text.encode()) if workload_text else None
    found = Triton().find(path, source.encode(), declared, lambda _: None)
    kernel = next(k for k in found.kernels if entry in ("", k.entry))
    analysis = Triton().analyse(kernel, declared, platform or hopper())
    case = read_workload(declared).operator if declared else ""
    return Target(kernel, analysis, declared, platform or hopper(), case)


def offer(skill: str, on: Target) -> Offer:
    """What retrieval answers of a shipped skill on a target."""
    entry = SHIPPED.find(skill)
    return consider(entry, on, TargetFacts(on))[0]


def applies(skill: str, on: Target) -> bool:
    """Whether every condition of a shipped skill holds."""
    return offer(skill, on).answer is Answer.APPLIES


def unmet(skill: str, on: Target) -> set[str]:
    """Ids of the reasons of a shipped skill that do not hold."""
    return {reason.about for reason in offer(skill, on).reasons if reason.truth != "met"}


def edited(skill: str, on: Target) -> str:
    """The kernel file's text after a shipped skill's transform. Fails on a Refusal."""
    chosen = offer(skill, on)
    carrier = chosen.entry.card.carrier
    assert isinstance(carrier, TransformCarrier)
    edits = TRANSFORMS[carrier.name](on, chosen.match, carrier.parameters)
    assert not isinstance(edits, Refusal), edits.reason
    data = on.kernel.file(on.kernel.path).data
    return splice(data, [edit for edit in edits if edit.path == on.kernel.path]).decode()


def subject(name: str) -> Subject:
    """A kernel of kernels/ or of the samples, by file stem, with its workload."""
    if name in ("gemm_naive", "gemm_expert", "softmax_naive", "softmax_expert"):
        folder = f"sample_kernels/{'gemm' if 'gemm' in name else 'row_softmax'}/triton"
        path = f"{folder}/{name}.py"
        return Subject(
            name, path, (ROOT / path).read_text(), (ROOT / folder / "workload.py").read_text()
        )
    path = KERNELS / f"{name}.py"
    return Subject(name, f"kernels/{name}.py", path.read_text(), WORKLOADS[name])


WORKLOADS = {
    "linear_relu": workload("x: (M, K), w: (K, N), bias: (N)"),
    "scores": workload("q: (M, D), k: (D, N)", "M=8192 N=8192 D=512"),
    "rms_norm": workload("x: (rows, cols), w: (cols)", "rows=8192 cols=4096,rows=4096 cols=8192"),
    "log_softmax": workload("x: (rows, cols)", "rows=8192 cols=4096"),
    "softmax_temperature": workload("x: (rows, cols)", "rows=8192 cols=4096"),
}
