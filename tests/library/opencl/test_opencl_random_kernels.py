"""Kernels put together at random: whatever a card edits still computes the same."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from opencl_builders import Case, Device, applying, target_of, workload

from gate.values.candidate import Candidate
from library.materialize import materialize

AXES = {"M": 13, "N": 11}
WORKLOAD = workload(
    "'X': rng.standard_normal((M, N), dtype=np.float32),"
    " 'W': rng.standard_normal(16, dtype=np.float32),"
    " 'R': rng.standard_normal(M, dtype=np.float32),"
    " 'B': rng.standard_normal(N, dtype=np.float32),"
    " 'Y': rng.standard_normal((M, N), dtype=np.float32)",
    "[{'M': 13, 'N': 11}, {'M': 32, 'N': 32}]",
    '{"global": (axes["N"], axes["M"])}',
)
CARDS = (
    "coarsen-rows-4",
    "coarsen-rows-8",
    "vector-columns-8",
    "unroll-4",
    "restrict",
    "vector-row-8",
)


class Writer:
    """Draws statements, keeping track of what is declared and where."""

    def __init__(self, draw: st.DrawFn) -> None:
        self._draw = draw
        self._count = 0
        self.lines: list[str] = []

    def one_of(self, *choices: str) -> str:
        return self._draw(st.sampled_from(choices))

    def name(self, kind: str) -> str:
        self._count += 1
        return f"{kind}{self._count}"

    def value(self, names: list[str], counter: str, depth: int = 0) -> str:
        leaves = [
            "X[row * N + col]",
            "R[row]",
            "B[col]",
            "0.5f",
            "W[3]",
            "Y[row * N + col]",
            *names,
        ]
        leaves += [f"W[{counter}]", f"W[{counter} + 1]"] if counter else []
        if depth > 2 or self._draw(st.booleans()):
            return self.one_of(*leaves)
        left = self.value(names, counter, depth + 1)
        right = self.value(names, counter, depth + 1)
        form = self.one_of("+", "-", "*", "fmax", "?", "(")
        if form == "fmax":
            return f"fmax({left}, {right})"
        if form == "?":
            return f"({self.one_of('N > 12', left + ' > 0.0f')} ? {left} : {right})"
        return (
            f"({left} {self.one_of('+', '*')} {right})" if form == "(" else f"{left} {form} {right}"
        )

    def block(self, names: list[str], counter: str, indent: str, depth: int) -> None:
        names = list(names)
        for _ in range(self._draw(st.integers(1, 3))):
            kind = self.one_of("new", "new", "sum", "set", "store", "for", "if", "array")
            if kind == "new" or (kind in ("sum", "set") and not names):
                name = self.name("v")
                self.lines.append(f"{indent}float {name} = {self.value(names, counter)};")
                names.append(name)
            elif kind == "sum":
                target = self.one_of(*names)
                self.lines.append(f"{indent}{target} += {self.value(names, counter)};")
            elif kind == "set":
                target = self.one_of(*names)
                self.lines.append(f"{indent}{target} = {self.value(names, counter)};")
            elif kind == "store":
                sign = self.one_of("=", "+=")
                self.lines.append(f"{indent}Y[row * N + col] {sign} {self.value(names, counter)};")
            elif kind == "array":
                name = self.name("p")
                self.lines += [
                    f"{indent}float {name}[2];",
                    f"{indent}{name}[0] = {self.value(names, counter)};",
                    f"{indent}{name}[1] = {name}[0] + {self.value(names, counter)};",
                ]
                names.append(f"{name}[1]")
            elif depth < 2:
                inner = self.name("t")
                head = f"for (int {inner} = 0; {inner} < 9; ++{inner})"
                condition = self.one_of("M > 20", "W[2] > 0.0f", "col > 3", "R[row] > 0.0f")
                self.lines.append(f"{indent}{head if kind == 'for' else f'if ({condition})'} {{")
                self.block(names, inner if kind == "for" else counter, indent + "    ", depth + 1)
                self.lines.append(f"{indent}}}")


@st.composite
def kernels(draw: st.DrawFn) -> Case:
    writer = Writer(draw)
    writer.lines += ["    float acc = 0.0f;", "    for (int k = 0; k < 9; ++k) {"]
    writer.block(["acc"], "k", "        ", 1)
    writer.lines += ["        acc += X[row * N + col] * W[k];", "    }"]
    writer.block(["acc"], "", "    ", 0)
    writer.lines.append("    Y[row * N + col] = acc;")
    body = "\n".join(writer.lines)
    source = f"""__kernel void f(__global const float *X, __global const float *W, __global const float *R,
                __global const float *B, __global float *Y, int M, int N)
{{
    int col = get_global_id(0);
    int row = get_global_id(1);
    if (row >= M || col >= N)
        return;
{body}
}}
"""
    return Case(source, WORKLOAD)


def check(device: Device, case: Case, names: list[str]) -> int:
    """Applies what applies, in order, and compares; gives the number of cards that did."""
    files, applied = case.files(), 0
    for name in names:
        target = target_of(files)
        for offer in applying(name, target)[:1]:
            candidate = materialize(offer.entry.card, offer.match, target)
            if isinstance(candidate, Candidate):
                files = {file.path: file.data for file in candidate.files_over(target.kernel)}
                applied += 1
    if applied:
        expected = device.run(case.files(), AXES)["Y"]
        actual = device.run(files, AXES)["Y"]
        np.testing.assert_allclose(
            actual, expected, rtol=1e-3, atol=1e-3, err_msg=files["k.cl"].decode()
        )
    return applied


def relaxed(examples: int) -> settings:
    return settings(
        max_examples=examples,
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
    )


@relaxed(12)
@given(kernels(), st.lists(st.sampled_from(CARDS), min_size=1, max_size=3))
def test_a_random_kernel_computes_the_same_after_any_cards(
    device: Device, case: Case, names: list[str]
) -> None:
    check(device, case, names)


@pytest.mark.proof
@pytest.mark.timeout(900)
@relaxed(400)
@given(kernels(), st.lists(st.sampled_from(CARDS), min_size=1, max_size=4))
def test_many_random_kernels_compute_the_same_after_any_cards(
    device: Device, case: Case, names: list[str]
) -> None:
    check(device, case, names)
