"""Kernels, wrappers and closures as `Triton.find` reads them from source alone."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from triton_builders import find, subject

from library.languages.triton import Triton

HEAD = "import torch\nimport triton\nimport triton.language as tl\n\n"
BODY = "    pid = tl.program_id(0)\n    tl.store(y + pid, tl.load(x + pid))\n"
WRAPPER = (
    "\n\ndef run(x):\n    y = torch.empty_like(x)\n    copy[(x.numel(),)](x, y)\n    return y\n"
)
PLAIN = f"{HEAD}@triton.jit\ndef copy(x, y):\n{BODY}{WRAPPER}"


def entries(source: str, **others: str) -> list[str]:
    return [kernel.entry for kernel in find(source, others=others)[0]]


@pytest.mark.parametrize(
    "source",
    [
        PLAIN,
        PLAIN.replace("@triton.jit", "@triton.jit()"),
        PLAIN.replace("@triton.jit", '@triton.jit(do_not_specialize=["n"])'),
        PLAIN.replace("import triton\n", "from triton import jit\n").replace("@triton.jit", "@jit"),
        PLAIN.replace("import triton\n", "import triton as t\n").replace("@triton.jit", "@t.jit"),
        PLAIN.replace("import triton.language as tl", "from triton import language as tl"),
        PLAIN.replace("@triton.jit", "jit = triton.jit\n\n\n@jit"),
        PLAIN.replace("@triton.jit", "import functools\n\n\n@functools.partial(triton.jit, debug=True)"),
        PLAIN.replace(
            "@triton.jit",
            '@triton.autotune(configs=[triton.Config({}, num_warps=4)], key=["n"])\n'
            '@triton.heuristics({"EVEN": lambda args: True})\n@triton.jit',
        ),
        PLAIN.replace("@triton.jit\n", "").replace("def copy", "def body").replace(
            "\n\ndef run", "\n\ncopy = triton.jit(body)\n\n\ndef run"
        ),
        PLAIN.replace("@triton.jit\n", "").replace(
            "\n\ndef run", '\n\ncopy = triton.jit(copy)\ncopy = triton.heuristics({"E": None})(copy)\n\n\ndef run'
        ),
    ],
)  # fmt: skip
def test_every_spelling_of_jit_is_found(source: str) -> None:
    kernels, problems = find(source)
    assert [kernel.entry for kernel in kernels] == ["copy"]
    assert problems == []
    assert kernels[0].launch is not None
    assert kernels[0].launch.symbol == "run"


def test_a_tuned_alias_is_the_same_kernel() -> None:
    source = PLAIN.replace(
        "\n\ndef run", '\n\ntuned = triton.autotune(configs=[], key=["n"])(copy)\n\n\ndef run'
    ).replace("copy[", "tuned[")
    kernels, _ = find(source)
    assert [(k.entry, k.launch.symbol if k.launch else None) for k in kernels] == [("copy", "run")]


def test_helpers_are_not_kernels_but_belong_to_the_closure() -> None:
    helper = "@triton.jit\ndef double(v):\n    return v + v\n\n\n"
    source = PLAIN.replace("@triton.jit", f"{helper}@triton.jit").replace(
        "tl.load(x + pid)", "double(tl.load(x + pid))"
    )
    kernels, _ = find(source)
    edited, _ = find(source.replace("v + v", "2 * v"))
    assert [k.entry for k in kernels] == ["copy"]
    assert kernels[0].closure != edited[0].closure


def test_several_kernels_of_a_file_each_have_their_wrapper() -> None:
    second = PLAIN.removeprefix(HEAD).replace("copy", "move").replace("def run", "def run_move")
    kernels, _ = find(f"{PLAIN}\n\n{second}")
    assert [(k.entry, k.launch.symbol if k.launch else "") for k in kernels] == [
        ("copy", "run"),
        ("move", "run_move"),
    ]


def test_the_operator_names_the_wrapper_when_several_launch() -> None:
    source = PLAIN + "\n\ndef public(x):\n    return run(x)\n"
    assert find(source)[0][0].launch.symbol == "run"  # type: ignore[union-attr]
    assert find(source, operator="public")[0][0].launch.symbol == "public"  # type: ignore[union-attr]


def test_a_nested_launch_is_a_problem_that_says_what_to_do() -> None:
    nested = "\n\nclass F:\n    @staticmethod\n    def forward(x, y):\n        copy[(1,)](x, y)\n"
    source = PLAIN.replace(WRAPPER, nested)
    kernels, problems = find(source)
    assert kernels[0].launch is None
    assert "nested" in problems[0]
    assert "OPERATOR" in problems[0]


def test_an_autograd_function_is_gated_through_the_operator() -> None:
    source = PLAIN.replace(
        WRAPPER,
        "\n\nclass F(torch.autograd.Function):\n    @staticmethod\n    def forward(ctx, x):\n"
        "        y = torch.empty_like(x)\n        copy[(1,)](x, y)\n        return y\n\n\n"
        "def run(x):\n    return F.apply(x)\n",
    )
    kernels, problems = find(source, operator="run")
    assert problems == []
    assert kernels[0].launch is not None
    assert kernels[0].launch.symbol == "run"
    after, _ = find(source.replace("empty_like", "zeros_like"), operator="run")
    assert after[0].closure != kernels[0].closure


def test_a_kernel_nobody_launches_is_shown_with_a_problem() -> None:
    kernels, problems = find(PLAIN.removesuffix(WRAPPER))
    assert kernels[0].launch is None
    assert problems == [
        "line 6: copy cannot be gated: no host function of this file launches it; add one, "
        "`def run(inputs): ...; kernel[grid](...)`, or name it in OPERATOR of the workload"
    ]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("    pid =", "    # which element\n    pid ="),
        ("def copy(x, y):\n", 'def copy(x, y):\n    """Copy."""\n'),
        ("def copy(x, y):", "def copy(\n    x,\n    y,\n):"),
        ("copy[(x.numel(),)](x, y)", "copy[(x.numel(),)](\n        x,\n        y,\n    )"),
        ("import torch\n", "import os\nimport torch\n\nUNUSED = os.sep\n"),
    ],
)
def test_what_changes_nothing_leaves_the_closure_alone(before: str, after: str) -> None:
    assert before in PLAIN
    changed = PLAIN.replace(before, after)
    assert find(changed)[0][0].closure == find(PLAIN)[0][0].closure


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("tl.load(x + pid)", "tl.load(x + pid) + 1"),
        ("empty_like", "zeros_like"),
        ("(x.numel(),)", "(x.numel() // 2,)"),
        ("@triton.jit", '@triton.jit(do_not_specialize=["x"])'),
        ("import triton.language as tl", "import other.language as tl"),
        ("    copy[(x", "    if x.numel():\n        copy[(x"),
    ],
)
def test_what_may_change_the_result_changes_the_closure(before: str, after: str) -> None:
    assert before in PLAIN
    changed = PLAIN.replace(before, after)
    assert find(changed)[0][0].closure != find(PLAIN)[0][0].closure


def test_a_module_constant_belongs_to_the_closure() -> None:
    source = subject("linear_relu").source
    changed = source.replace("BM, BN, BK = 64", "BM, BN, BK = 128")
    assert find(changed)[0][0].closure != find(source)[0][0].closure


PACKAGE = PLAIN.replace("tl.load(x + pid)", "scale(tl.load(x + pid))")
HELPER = (
    f"{HEAD}from .constants import FACTOR\n\n\n@triton.jit\ndef scale(v):\n    return v * FACTOR\n"
)


@pytest.mark.parametrize("line", ["from .helpers import scale", "from pkg.helpers import scale"])
def test_helpers_of_other_modules_are_followed(line: str) -> None:
    source = PACKAGE.replace("import torch\n", f"import torch\n{line}\n")
    files = {"pkg/helpers.py": HELPER, "pkg/constants.py": "FACTOR = 2\n", "pkg/__init__.py": ""}
    kernels, problems = find(source, "pkg/kernel.py", files)
    assert problems == []
    assert {file.path for file in kernels[0].files} == {
        "pkg/kernel.py",
        "pkg/helpers.py",
        "pkg/constants.py",
    }
    changed, _ = find(source, "pkg/kernel.py", {**files, "pkg/constants.py": "FACTOR = 3\n"})
    assert changed[0].closure != kernels[0].closure


def test_a_helper_that_cannot_be_found_is_a_problem_and_its_features_unknown() -> None:
    source = PACKAGE.replace("import torch\n", "import torch\nfrom elsewhere import scale\n")
    kernels, problems = find(source)
    assert problems == [
        "line 2: scale of elsewhere is not in this worktree; what it does is unknown"
    ]
    features = Triton().analyse(kernels[0], None, None).features
    dot = next(feature for feature in features if feature.id == "F06")
    assert dot.presence == "unknown"
    assert "scale" in dot.detail


def test_a_syntax_error_gives_its_line_and_the_kernels_that_parse() -> None:
    broken = PLAIN + "\n\n@triton.jit\ndef other(x, y):\n    pid = = 3\n\n\nAFTER = 1\n"
    kernels, problems = find(broken)
    assert [kernel.entry for kernel in kernels] == ["copy"]
    assert any(problem.startswith("line 19: syntax error") for problem in problems), problems


def test_a_file_without_triton_holds_nothing() -> None:
    assert find("import torch\n") == ((), [])


@settings(max_examples=60, deadline=None)
@given(st.binary(max_size=200), st.integers(0, len(PLAIN)))
def test_garbage_never_raises(noise: bytes, at: int) -> None:
    data = PLAIN.encode()
    data = data[:at] + noise + data[at:]
    found = Triton().find("kernel.py", data, None, lambda _: None)
    for kernel in found.kernels:
        Triton().analyse(kernel, None, None)
