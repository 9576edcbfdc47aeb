"""Launch forms: options, work-group sizes, local memory, renamed arguments, includes, in-place."""

from __future__ import annotations

import threading
from collections.abc import Callable

from gate_builders import SCALE_CL, SCALE_WORKLOAD, Worktree

from gate.evaluate import Gate
from gate.values.platform import Platform
from gate.values.verdict import Status, Verdict

Trees = Callable[..., Worktree]
Evaluate = Callable[..., Verdict]

REVERSE_CL = """\
__kernel void scale(__global const float *x, __global float *y, __local float *tile, float factor)
{
    int l = get_local_id(0), size = get_local_size(0);
    int first = get_group_id(0) * size;
    tile[l] = x[first + l];
    barrier(CLK_LOCAL_MEM_FENCE);
    y[first + l] = FACTOR * tile[l];
}
"""


def launching(body: str) -> str:
    return SCALE_WORKLOAD.replace('return {"global": (axes["n"],)}', f"return {body}")


def test_options_local_size_and_local_memory_are_passed(
    worktree: Trees, evaluate: Evaluate
) -> None:
    body = (
        '{"global": (axes["n"],), "local": (8,), "options": "-DFACTOR=2.5f", '
        '"local_memory": {"tile": 32}}'
    )

    verdict = evaluate(worktree(kernel=REVERSE_CL, workload=launching(body)))

    assert verdict.status is Status.TIE, verdict.message


def test_a_local_pointer_without_a_size_says_how_to_give_one(
    worktree: Trees, evaluate: Evaluate
) -> None:
    body = '{"global": (axes["n"],), "options": "-DFACTOR=2.5f"}'

    verdict = evaluate(worktree(kernel=REVERSE_CL, workload=launching(body)))

    assert verdict.status is Status.CRASHED
    assert '"local_memory": {"tile"' in verdict.message


def test_arguments_may_have_other_names(worktree: Trees, evaluate: Evaluate) -> None:
    renamed = (
        SCALE_CL.replace("*x", "*source").replace("x[i]", "source[i]").replace("int n", "int count")
    ).replace("i < n", "i < count")
    body = '{"global": (axes["n"],), "arguments": ("x", "y", "factor", "n")}'

    assert evaluate(worktree(kernel=renamed, workload=launching(body))).status is Status.TIE


def test_an_edited_include_is_what_is_built(worktree: Trees, evaluate: Evaluate) -> None:
    headers = {
        "kernels/outer.h": '#include "../shared/inner.h"\n',
        "shared/inner.h": "#define VALUE(x) (factor * (x))\n",
    }
    including = '#include "outer.h"\n' + SCALE_CL.replace("factor * x[i]", "VALUE(x[i])")
    tree = worktree(kernel=including, extra=headers)
    edit = {"shared/inner.h": "#define VALUE(x) (factor + (x))\n"}

    assert evaluate(tree).status is Status.TIE
    assert evaluate(tree, tree.candidate(**edit)).status is Status.WRONG


def test_an_include_folder_of_the_options_is_the_worktrees(
    worktree: Trees, evaluate: Evaluate
) -> None:
    headers = {"include/value.h": "#define VALUE(x) (factor * (x))\n"}
    including = "#include <value.h>\n" + SCALE_CL.replace("factor * x[i]", "VALUE(x[i])")
    body = '{"global": (axes["n"],), "options": "-I include -DUNUSED"}'
    tree = worktree(kernel=including, workload=launching(body), extra=headers)

    assert evaluate(tree).status is Status.TIE


def test_a_kernel_may_work_in_place_where_that_is_declared(
    worktree: Trees, evaluate: Evaluate
) -> None:
    kernel = """\
__kernel void scale(__global float *x, float factor)
{
    x[get_global_id(0)] *= factor;
}
"""
    workload = SCALE_WORKLOAD.replace('{"y":', '{"x":') + '\nMUTATES = ("x",)\n'

    verdict = evaluate(worktree(kernel=kernel, workload=workload))

    assert verdict.status is Status.TIE, verdict.message


def test_a_trace_tells_what_was_passed(gate: Gate, platform: Platform, worktree: Trees) -> None:
    tree = worktree()

    first, second = gate.trace(tree.kernel, tree.workload, threading.Event())

    assert dict(first.axes) == {"n": 4096}
    assert first.grid == (4096,)
    assert second.grid == (1000,)
    assert list(first.arguments) == ["x", "y", "factor", "n"]
    assert first.arguments["x"].shape == (4096,)
    assert first.arguments["x"].strides == (1,)
    assert first.arguments["x"].alignment_bytes == 128
    assert first.arguments["n"].value == 4096
    assert first.arguments["factor"].dtype == "float32"


def test_the_platform_is_queried(platform: Platform) -> None:
    assert platform.name == "pocl-cpu"
    assert platform.capabilities["device_type"] == "cpu"
    assert platform.capabilities["compute_units"] >= 1
    assert "registers_per_sm" not in platform.capabilities
