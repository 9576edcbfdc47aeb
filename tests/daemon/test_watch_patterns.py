"""Which paths the globs of `[watch]` mean."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daemon.watcher.patterns import PathFilter, folders_of, translate


@pytest.mark.parametrize(
    ("pattern", "path", "matches"),
    [
        ("**/*.cl", "gemm.cl", True),
        ("**/*.cl", "a/b/gemm.cl", True),
        ("**/*.cl", "gemm.cl.orig", False),
        ("*.cl", "a/b/gemm.cl", True),
        ("kernels/*.cl", "kernels/gemm.cl", True),
        ("kernels/*.cl", "kernels/old/gemm.cl", False),
        ("kernels/*.cl", "more/kernels/gemm.cl", False),
        ("kernels/**", "kernels/a/b.cl", True),
        ("kernels/**", "kernels", False),
        ("kernels/", "kernels/a/b.cl", True),
        ("./kernels/*.cl", "kernels/gemm.cl", True),
        ("/kernels/*.cl", "kernels/gemm.cl", True),
        ("a/**/b/*.py", "a/b/x.py", True),
        ("a/**/b/*.py", "a/c/d/b/x.py", True),
        ("a/**/b/*.py", "ab/x.py", False),
        ("gemm_?.cl", "gemm_1.cl", True),
        ("gemm_?.cl", "gemm_12.cl", False),
        ("gemm_[0-9].cl", "gemm_7.cl", True),
        ("gemm_[!0-9].cl", "gemm_7.cl", False),
        ("gemm_[!0-9].cl", "gemm_x.cl", True),
        ("gemm_[]x].cl", "gemm_].cl", True),
        ("gemm_[!]x].cl", "gemm_].cl", False),
        ("gemm_[a-].cl", "gemm_-.cl", True),
        ("gemm_[z-a].cl", "gemm_m.cl", False),
        ("gemm_[.cl", "gemm_[.cl", True),
        ("a+b.cl", "a+b.cl", True),
        ("a+b.cl", "aab.cl", False),
    ],
)
def test_glob_matches_whole_path(pattern: str, path: str, matches: bool) -> None:
    assert (re.fullmatch(translate(pattern), path) is not None) is matches


NAMES = st.text(alphabet="ab+^$()|{}.-", min_size=1, max_size=6).filter(lambda name: name != ".")


@given(st.lists(NAMES, min_size=2, max_size=4))
def test_a_path_without_wildcards_matches_itself(names: list[str]) -> None:
    path = "/".join(names)
    assert re.fullmatch(translate(path), path)


@given(st.text(alphabet="ab[]!^-\\*?/", min_size=1, max_size=12))
def test_any_text_is_a_valid_pattern(pattern: str) -> None:
    re.compile(translate(pattern))


def test_excluded_paths_are_not_wanted() -> None:
    paths = PathFilter(["**/*.cl"], ["third_party/", "*_old.cl"])
    wanted = [p for p in ("a.cl", "third_party/a.cl", "x/a_old.cl", "a.py") if paths.holds(p)]
    assert wanted == ["a.cl"]


@pytest.mark.parametrize(
    "exclude", ["third_party", "third_party/", "third_party/**", "**/third_party/**"]
)
def test_an_excluded_folder_is_not_entered(exclude: str) -> None:
    assert not PathFilter(["**/*.cl"], [exclude]).enters("third_party")


@pytest.mark.parametrize(
    "folder",
    [".git", ".klineage", "build", "cmake-build-debug", "__pycache__", ".venv", "x.egg-info",
     "web/node_modules"],
)  # fmt: skip
def test_history_environments_and_build_products_are_not_entered(folder: str) -> None:
    paths = PathFilter(["**/*.cl"])
    assert not paths.enters(folder)
    assert not paths.holds(f"{folder}/deep/gemm.cl")


def test_a_build_folder_is_entered_when_an_include_spells_it_out() -> None:
    paths = PathFilter(["**/*.py", "build/generated/*.cl"])
    assert paths.holds("build/generated/gemm.cl")
    assert not PathFilter(["**/*.py"]).enters("build")


def test_our_own_temporary_files_are_never_wanted() -> None:
    assert not PathFilter(["**/*"]).holds("kernels/.klineage-ab12cd34-0")


def test_no_include_means_nothing_is_wanted() -> None:
    assert not PathFilter([]).holds("gemm.cl")


def test_folders_of_a_path_come_outermost_first() -> None:
    assert list(folders_of("a/b/c.cl")) == ["a", "a/b"]
    assert list(folders_of("c.cl")) == []
