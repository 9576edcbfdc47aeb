"""What a `.cl` file is found to hold: kernels, closures, launches, problems."""

from __future__ import annotations

import opencl_cases as cases
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from opencl_builders import kernel_of, offers, target_of

from gate.values.kernel import LaunchKind
from gate.values.workload import Workload
from library.edits import Refusal
from library.languages import Found
from library.languages.opencl import MAX_BYTES, OpenCL
from library.transforms.opencl import TRANSFORMS

HELPED = {
    "src/k.cl": b"""
#include "inc/scale.h"
#define UNUSED 4
#define TWICE(v) (FACTOR * (v))

typedef struct { float low, high; } Range;
__constant float table[2] = { 1.0f, 2.0f };

float clip(float v) { return fmin(v, table[1]); }
float unrelated(float v) { return v; }

__kernel void first(__global float *y) { y[get_global_id(0)] = clip(TWICE(scale(1.0f))); }

/* the second */
__attribute__((reqd_work_group_size(16, 1, 1)))
kernel void second(global float *restrict y, local float *t, const int n, read_only image2d_t im) {
    local float tile[16];
    y[0] = n;
}
""",
    "src/inc/scale.h": b"#define FACTOR 2\nfloat scale(float v) { return v * 3.0f; }\n",
}


def find(files: dict[str, bytes], path: str = "src/k.cl", workload: bytes | None = None) -> Found:
    given = Workload("workload.py", workload) if workload is not None else None
    return OpenCL().find(path, files[path], given, files.get)


def closures(files: dict[str, bytes]) -> dict[str, str]:
    return {kernel.entry: kernel.closure for kernel in find(files).kernels}


def changed(path: str, before: bytes, after: bytes) -> set[str]:
    """Entries whose closure differs after an edit."""
    assert before in HELPED[path]
    edited = HELPED | {path: HELPED[path].replace(before, after)}
    new = closures(edited)
    return {entry for entry, closure in closures(HELPED).items() if new[entry] != closure}


def test_every_kernel_of_a_file_is_found_with_its_files() -> None:
    found = find(HELPED)
    assert found.problems == ()
    assert [kernel.entry for kernel in found.kernels] == ["first", "second"]
    assert [file.path for file in found.kernels[0].files] == ["src/k.cl", "src/inc/scale.h"]
    assert all(kernel.launch is None for kernel in found.kernels)


@pytest.mark.parametrize(
    ("path", "before", "after", "entries"),
    [
        ("src/k.cl", b"/* the second */", b"/* number two */  ", set()),
        ("src/k.cl", b"{ y[get", b"{\n    // store\n    y[get", set()),
        ("src/k.cl", b"#define UNUSED 4", b"#define UNUSED 5", set()),
        ("src/k.cl", b"float unrelated(float v) { return v; }", b"", set()),
        ("src/k.cl", b"scale(1.0f)", b"scale(1.5f)", {"first"}),
        ("src/k.cl", b"fmin(v, table[1])", b"fmax(v, table[1])", {"first"}),
        ("src/k.cl", b"{ 1.0f, 2.0f }", b"{ 1.0f, 4.0f }", {"first"}),
        ("src/k.cl", b"y[0] = n", b"y[1] = n", {"second"}),
        ("src/k.cl", b"size(16, 1, 1)", b"size(8, 1, 1)", {"second"}),
        ("src/k.cl", b"local float tile", b"float tile", {"second"}),
        ("src/inc/scale.h", b"v * 3.0f", b"v * 4.0f", {"first"}),
        ("src/inc/scale.h", b"FACTOR 2", b"FACTOR 3", {"first"}),
        ("src/inc/scale.h", b"#define FACTOR", b"// twice\n#define  FACTOR", set()),
    ],
)
def test_a_closure_changes_with_what_it_uses_and_nothing_else(
    path: str, before: bytes, after: bytes, entries: set[str]
) -> None:
    assert changed(path, before, after) == entries


def test_a_launch_is_part_of_the_closure_and_its_comments_are_not() -> None:
    files = cases.SGEMM.files()
    kernel = kernel_of(files)
    assert kernel.launch is not None
    assert kernel.launch.kind is LaunchKind.NDRANGE
    assert (kernel.launch.path, kernel.launch.symbol) == ("workload.py", "launch")

    def with_launch(text: bytes) -> str:
        workload = files["workload.py"].replace(b"    return {", text + b"    return {")
        return kernel_of(files | {"workload.py": workload}).closure

    assert with_launch(b"    # one work-item an element\n") == kernel.closure
    assert with_launch(b"    axes = dict(axes, M=1)\n") != kernel.closure


def test_a_kernel_prefers_the_launch_of_its_own_name() -> None:
    files = cases.SGEMM.files()
    files["workload.py"] += b"\n\ndef launch_f(axes):\n    return {'global': (1, 1)}\n"
    launch = kernel_of(files).launch
    assert launch is not None
    assert launch.symbol == "launch_f"


def test_a_syntax_error_is_a_problem_with_its_line_and_spares_the_other_kernels() -> None:
    source = b"kernel void good(global int *y) { y[0] = 1; }\n\nkernel void bad(global int *y) {\n    y[0] = ;\n}\n"
    found = find({"k.cl": source}, "k.cl")
    assert [kernel.entry for kernel in found.kernels] == ["good"]
    assert [(problem.path, problem.line) for problem in found.problems] == [("k.cl", 4)]
    assert found.problems[0].message.startswith("syntax error")


def test_a_missing_include_is_a_problem_and_the_kernel_is_still_found() -> None:
    source = b'\n#include "gone.h"\nkernel void f(global int *y) { y[0] = 1; }\n'
    found = find({"k.cl": source}, "k.cl")
    assert [(p.line, p.message) for p in found.problems] == [
        (2, '"gone.h" is included but not found')
    ]
    assert [kernel.entry for kernel in found.kernels] == ["f"]


def test_an_include_that_leaves_the_worktree_is_not_read() -> None:
    asked: list[str] = []

    def read(path: str) -> bytes | None:
        asked.append(path)
        return None

    OpenCL().find("k.cl", b'#include "../../etc/passwd"\n', None, read)
    assert asked == []


def test_files_that_include_each_other_are_read_once() -> None:
    files = {
        "k.cl": b'#include "a.h"\nkernel void f(global int *y) {}',
        "a.h": b'#include "k.cl"\n',
    }
    assert [file.path for file in find(files, "k.cl").kernels[0].files] == ["k.cl", "a.h"]


def test_a_second_kernel_of_a_name_is_told_of_and_the_first_is_taken() -> None:
    source = b"#ifdef A\nkernel void f(global int *y) { y[0] = 1; }\n#else\nkernel void f(global int *y) {}\n#endif\n"
    found = find({"k.cl": source}, "k.cl")
    assert len(found.kernels) == 1
    assert "second definition of f" in found.problems[0].message


def test_words_in_comments_and_strings_are_not_qualifiers() -> None:
    source = b'// kernel void no(int x) {}\n/* global */ void also_no(int x) {}\nconstant char s[] = "kernel";\n'
    assert find({"k.cl": source}, "k.cl").kernels == ()


def test_a_file_of_four_mebibytes_is_read_and_a_larger_one_is_a_problem() -> None:
    kernel = b"kernel void f(global int *y) { y[0] = 1; }\n"
    filler = b"// " + b"x" * 96 + b"\n"
    large = kernel + filler * ((MAX_BYTES - len(kernel)) // len(filler))
    assert len(find({"k.cl": large}, "k.cl").kernels) == 1
    larger = find({"k.cl": large + filler * 2}, "k.cl")
    assert larger.kernels == ()
    assert "4 MiB" in larger.problems[0].message


FRAGMENTS = st.lists(
    st.sampled_from(
        [
            "kernel",
            "void",
            "f",
            "(",
            "global",
            "float",
            "*",
            "y",
            ",",
            "int",
            "n",
            ")",
            "{",
            "}",
            "[",
            "]",
            ";",
            "for",
            "if",
            "else",
            "return",
            "get_global_id(0)",
            "1",
            "+=",
            "=",
            "__attribute__((",
            "reqd_work_group_size(1,1,1)",
            "))",
            "#define",
            "#include",
            '"a"',
            "//",
            "/*",
            "*/",
            "'",
            '"',
            "\n",
            "\\",
            "float8",
            "vload8",
            "barrier",
            "?",
            ":",
            "&",
            "<",
            "y[0]=1;",
            "struct",
            "typedef",
            "constant",
        ]
    ),
    max_size=60,
).map(lambda words: " ".join(words).encode())


@settings(max_examples=150, deadline=None)
@given(st.binary(max_size=300) | FRAGMENTS)
@example(b"")
@example(b"\xff\xfe\x00kernel void")
@example(b"kernel void f(global int *y) " + b"{" * 400)
@example(b"kernel void (*f)(int);")
@example(b"kernel void f() { for (;;) a[b[c]] = d(e)(f); }")
def test_any_bytes_are_searched_and_analysed_without_an_error(data: bytes) -> None:
    for kernel in OpenCL().find("k.cl", data, None, lambda _: None).kernels:
        analysis = OpenCL().analyse(kernel, None, None)
        assert analysis.features
        for loop in analysis.anchors("(for_statement) @loop"):
            analysis.call("trip_count", loop["loop"], None)
            analysis.call("lane_independent", loop["loop"], None)


def test_a_file_is_found_the_same_whatever_its_line_ends() -> None:
    files = HELPED | {"src/k.cl": HELPED["src/k.cl"].replace(b"\n", b"\r\n")}
    assert closures(files) == closures(HELPED)


DEEP = {
    "sum": b"y[" + b" + ".join([b"n"] * 5000) + b"] = " + b" * ".join([b"2.0f"] * 5000) + b";",
    "brackets": b"y[" * 2000 + b"0" + b"]" * 2000 + b" = 1;",
    "parentheses": b"y[0] = " + b"(" * 3000 + b"n" + b")" * 3000 + b";",
    "conditions": b"if (" + b" || ".join([b"i >= n"] * 3000) + b") return; y[i] = 1;",
    "blocks": b"if (n) {" * 1500 + b"y[i] = i;" + b"}" * 1500,
}


def nested(text: bytes) -> bytes:
    return b"kernel void f(global int *y, int n) { int i = get_global_id(0);\n" + text + b"\n}\n"


@pytest.mark.parametrize("what", DEEP)
def test_a_kernel_that_nests_too_deeply_is_a_problem(what: str) -> None:
    found = find({"k.cl": nested(DEEP[what])}, "k.cl")
    assert found.kernels == ()
    assert "too deep to analyse" in found.problems[0].message


@pytest.mark.parametrize(
    "text",
    [
        b"y[" + b" + ".join([b"i"] * 180) + b"] = " + b" * ".join([b"2"] * 180) + b";",
        b"if (" + b" || ".join([b"i >= n"] * 180) + b") return; y[i] = 1;",
        b"for (int k = 0; k < n; ++k) {" * 90 + b"y[i] += k;" + b"}" * 90,
        b"".join(
            b"global int *p%d = %s + 1;" % (i, b"p%d" % (i - 1) if i else b"y") for i in range(600)
        )
        + b"p599[i] = 1;",
        b"".join(b"int v%d = %s + 1;" % (i, b"v%d" % (i - 1) if i else b"i") for i in range(600))
        + b"y[v599] = 1;",
    ],
    ids=["sum", "conditions", "loops", "pointers", "variables"],
)
def test_a_kernel_that_nests_less_deeply_is_analysed_and_edited_or_refused(text: bytes) -> None:
    target = target_of(cases.SAXPY.files() | {"k.cl": nested(text)})
    assert target.analysis.features
    assert offers("vector-columns-8", target)
    for name in ("opencl.coarsen", "opencl.vector_columns"):
        result = TRANSFORMS[name](target, {}, {"dim": 0, "factor": 4, "width": 8})
        assert isinstance(result, tuple | Refusal)


def test_conditional_sections_that_nest_deeply_are_searched() -> None:
    source = b"#ifdef A\n" * 1500 + b"kernel void f(global int *y) {}\n" + b"#endif\n" * 1500
    assert len(find({"k.cl": source}, "k.cl").kernels) <= 1
