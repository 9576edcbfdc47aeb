"""Alignment, word marks, highlighting, patches, and how diff lines are cut."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scene import AFTER, BEFORE, DIFFS

from daemon.protocol import FileDiff
from klineage_tui.diff import align
from klineage_tui.diff import document as capped
from klineage_tui.diff.align import hunks, word_marks
from klineage_tui.diff.document import document
from klineage_tui.diff.highlight import plain_lines, source_lines
from klineage_tui.diff.patch import patch_text
from klineage_tui.diff.rows import entries, folded, pieces
from klineage_tui.paint import text_of

texts = st.text(st.sampled_from("ab c\n\t;日"), max_size=60)
line_lists = st.lists(st.sampled_from(["a", "b", "c", ""]), max_size=14)


@given(line_lists, line_lists, st.integers(0, 3))
def test_hunks_hold_every_change_and_only_true_pairs(
    before: list[str], after: list[str], context: int
) -> None:
    found = [row for hunk in hunks(before, after, context) for row in hunk]
    assert all(before[row.left] == after[row.right] for row in found if row.kind == "same")
    lefts = [row.left for row in found if row.left is not None]
    rights = [row.right for row in found if row.right is not None]
    assert lefts == sorted(set(lefts))
    assert rights == sorted(set(rights))
    # What no hunk holds is equal on both sides.
    rest_left = [one for index, one in enumerate(before) if index not in lefts]
    rest_right = [one for index, one in enumerate(after) if index not in rights]
    assert rest_left == rest_right


def test_equal_texts_have_no_hunk() -> None:
    assert hunks(["a", "b"], ["a", "b"]) == ()


def test_changes_far_apart_are_two_hunks_and_near_ones_are_one() -> None:
    lines = [str(number) for number in range(40)]
    near, far = list(lines), list(lines)
    near[10], near[14] = "x", "y"
    far[5], far[30] = "x", "y"
    assert len(hunks(lines, near)) == 1
    assert len(hunks(lines, far)) == 2


def test_word_marks_cover_what_changed_and_nothing_else() -> None:
    left, right = "float acc = 0.0f;", "float8 acc = 0.0f;"
    assert word_marks(left, right) == (((0, 5),), ((0, 6),))


def test_lines_with_little_in_common_get_no_word_marks() -> None:
    assert word_marks("return a + b;", "#pragma unroll 4") == ((), ())


@pytest.mark.parametrize("path", ["k.cl", "k.py", "k.cu", "k.metal"])
@given(text=texts)
def test_highlighting_keeps_every_line_as_it_is(path: str, text: str) -> None:
    toned = [text_of(line) for line in source_lines(path, text)]
    assert toned == plain_lines(text)


@pytest.mark.parametrize("ends", ["\n", "\r\n", "\r", "\f\n", "\u2028\n"])
def test_unusual_line_ends_keep_both_views_of_a_file_alike(ends: str) -> None:
    text = f"int a;{ends}int b;{ends}"
    assert [text_of(line) for line in source_lines("k.cl", text)] == plain_lines(text)


def test_opencl_words_are_toned_where_the_lexer_for_c_knows_none() -> None:
    tones = {text: tone for line in source_lines("k.cl", AFTER) for text, tone in line}
    assert tones["__kernel"] == tones["__global"] == "code-keyword"
    assert tones["float8"] == "code-type"


@pytest.mark.skipif(shutil.which("patch") is None, reason="patch is not installed")
@pytest.mark.parametrize("end", ["\n", ""])
def test_a_yanked_patch_applies_with_patch(tmp_path: Path, end: str) -> None:
    diffs = [FileDiff(one.path, one.before.rstrip("\n") + end, one.after) for one in DIFFS]
    for one in diffs:
        (tmp_path / one.path).parent.mkdir(exist_ok=True)
        (tmp_path / one.path).write_text(one.before)
    command = ["patch", "-p1", "--fuzz=0"]
    subprocess.run(
        command, cwd=tmp_path, input=patch_text(diffs), text=True, check=True, capture_output=True
    )
    for one in diffs:
        assert (tmp_path / one.path).read_text() == one.after


def test_a_split_view_pairs_lines_and_a_unified_one_puts_removed_before_added() -> None:
    shown = document([FileDiff("k.cl", BEFORE, AFTER)])
    split = [entry for entry in entries(shown, split=True) if len(entry.sides) == 2]
    assert any(
        [side.ground for side in entry.sides] == ["removed", "added"] and entry.sides[0].marks
        for entry in split
    )
    grounds = [entry.sides[0].ground for entry in entries(shown, split=False)]
    assert "added" in grounds
    assert grounds.index("removed") < grounds.index("added")


def test_a_file_too_big_to_show_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(capped, "SHOWN_BYTES", 100)
    (file,) = document([FileDiff("k.cl", BEFORE, AFTER)]).files
    assert file.hunks == ()
    assert "not shown" in file.note
    assert "save patch writes" in file.note


def test_too_many_rows_are_cut_and_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(capped, "SHOWN_ROWS", 5)
    shown = document([FileDiff("k.cl", BEFORE, AFTER)])
    assert sum(len(hunk) for hunk in shown.files[0].hunks) == 5
    assert "first 5 rows" in shown.files[0].note


@given(line_lists, line_lists)
def test_anchors_change_how_lines_pair_but_lose_none(before: list[str], after: list[str]) -> None:
    long_before = [f"unique {number}" for number in range(align.ANCHORED_LINES)] + before
    long_after = ["new", *long_before[: align.ANCHORED_LINES : 2], *after, *long_before[1:300:2]]
    found = [row for hunk in hunks(long_before, long_after, 10_000) for row in hunk]
    assert [row.left for row in found if row.left is not None] == list(range(len(long_before)))
    assert [row.right for row in found if row.right is not None] == list(range(len(long_after)))
    assert all(long_before[r.left] == long_after[r.right] for r in found if r.kind == "same")


def test_a_big_edit_is_aligned_within_a_second_or_so() -> None:
    before = "".join(f"float v{number} = {number};\n" for number in range(15_000))
    after = before.replace("v7000 ", "w7000 ").replace("v9000 ", "w9000 ")
    shown = document([FileDiff("k.cl", before, after)])
    assert shown.hunk_count == 2


@given(st.text(st.sampled_from("ab日 "), max_size=40), st.integers(2, 12))
def test_wrapped_code_loses_no_character_and_overflows_no_line(text: str, width: int) -> None:
    (entry,) = [
        entry
        for entry in entries(document([FileDiff("k.txt", "", f"{text}x\n")]), split=False)
        if entry.sides[0].ground == "added"
    ]
    lines = folded(pieces(entry.sides[0]), width)
    spans = [tuple(piece.span for piece in line) for line in lines]
    assert "".join(text_of(line) for line in spans) == f"{text}x"
    from klineage_tui.paint import width_of

    assert all(width_of(line) <= width for line in spans)
