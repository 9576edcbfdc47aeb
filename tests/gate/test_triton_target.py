"""What a compute capability can do, and how a device is named."""

from __future__ import annotations

import pytest
import torch

from gate.worker.triton_launch import Argument, Launch, trace_fields
from gate.worker.triton_target import Target, report_target, select_target


@pytest.mark.parametrize(
    ("capability", "name", "has"),
    [
        (75, "sm_75", set()),
        (80, "sm_80", {"cp_async"}),
        (89, "sm_89", {"cp_async", "fp8"}),
        (90, "sm_90a", {"cp_async", "fp8", "tma", "clusters", "wgmma"}),
        (100, "sm_100a", {"cp_async", "fp8", "tma", "clusters", "tcgen05"}),
        (120, "sm_120", {"cp_async", "fp8", "tma", "clusters"}),
    ],
)
def test_features_follow_the_compute_capability(capability: int, name: str, has: set[str]) -> None:
    report = report_target(Target(capability, None))
    features = ("cp_async", "fp8", "tma", "clusters", "wgmma", "tcgen05")
    assert {feature for feature in features if report.capabilities[feature]} == has
    assert report.name == name


def test_what_only_a_driver_knows_is_absent_from_a_compile_only_target() -> None:
    report = report_target(Target(90, None))
    assert not report.can_run
    assert report.capabilities["shared_memory_per_block_optin_bytes"] == 232_448
    assert not {"compute_units", "l2_bytes", "registers_per_sm"} & set(report.capabilities)


@pytest.mark.parametrize("written", ["sm_90", "sm_90a"])
def test_a_target_is_named_with_or_without_its_letter(written: str) -> None:
    assert select_target(written) == Target(90, None)


@pytest.mark.parametrize(
    ("device", "complaint"),
    [("gpu", "write cuda"), ("hopper", "sm_90a"), ("cuda:99", "CUDA device 99")],
)
def test_a_device_that_is_not_there_is_refused_by_name(device: str, complaint: str) -> None:
    with pytest.raises(LookupError, match=complaint):
        select_target(device)


def test_without_a_gpu_the_default_is_compiled_for() -> None:
    if torch.cuda.is_available():
        pytest.skip("this machine has a GPU")
    assert select_target("") == Target(90, None)


def test_only_ranges_that_meet_overlap() -> None:
    def pointer(address: int, length: int) -> Argument:
        return Argument("pointer", "float32", None, address, length, (length // 4,), (1,))

    arguments = {
        "a": pointer(4096, 256),
        "b": pointer(4096 + 256, 256),
        "c": pointer(4096 + 128, 64),
        "empty": pointer(4096 + 16, 0),
    }
    trace = trace_fields({}, [Launch(None, "kernel", (1,), arguments, {"num_warps": 4})])
    shown = trace["arguments"]
    assert isinstance(shown, dict)
    assert {name: each["overlaps"] for name, each in shown.items()} == {
        "a": ["c"],
        "b": [],
        "c": ["a"],
        "empty": [],
    }
    assert [each["alignment_bytes"] for each in shown.values()] == [4096, 256, 128, 16]
