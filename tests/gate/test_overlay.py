"""Edited files run under the names their modules always have."""

from __future__ import annotations

import importlib
import inspect
import linecache
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from gate.worker.overlay import Overlay, module_name

Tree = Callable[[dict[str, str]], Path]


@pytest.fixture
def worktree(tmp_path: Path) -> Tree:
    def write(files: dict[str, str]) -> Path:
        root = tmp_path / "worktree"
        for path, text in files.items():
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_text(text)
        return root

    return write


@pytest.fixture
def overlay_over(tmp_path: Path) -> Iterator[Callable[..., Overlay]]:
    """Installs overlays, and afterwards forgets everything they imported."""
    modules, path, finders = dict(sys.modules), list(sys.path), list(sys.meta_path)
    lines, wrote = dict(linecache.cache), sys.dont_write_bytecode

    def install(root: Path, **edits: str) -> Overlay:
        stand_ins = {}
        for index, (place, text) in enumerate(edits.items()):
            file = tmp_path / "scratch" / str(index)
            file.parent.mkdir(exist_ok=True)
            file.write_text(text)
            stand_ins[place] = file
        overlay = Overlay(root, stand_ins)
        overlay.install()
        return overlay

    yield install
    sys.path[:], sys.meta_path[:] = path, finders
    sys.dont_write_bytecode = wrote
    for name in set(sys.modules) - set(modules):
        del sys.modules[name]
    linecache.cache.clear()
    linecache.cache.update(lines)
    importlib.invalidate_caches()


def test_edited_bytes_run_under_the_original_name(worktree: Tree, overlay_over) -> None:
    root = worktree({"ours/__init__.py": "", "ours/gemm.py": "TILE = 32\n"})
    module = overlay_over(root, **{"ours/gemm.py": "TILE = 64\n"}).load("ours/gemm.py")
    assert (module.TILE, module.__name__) == (64, "ours.gemm")
    assert module.__file__ == str(root / "ours/gemm.py")
    assert sys.modules["ours.gemm"] is module


def test_relative_imports_reach_edited_and_untouched_neighbours(
    worktree: Tree, overlay_over
) -> None:
    root = worktree(
        {
            "ours/__init__.py": "",
            "ours/ops/__init__.py": "",
            "ours/ops/gemm.py": "from ..tiles import TILE\nfrom .names import NAME\n",
            "ours/ops/names.py": "NAME = 'untouched'\n",
            "ours/tiles.py": "TILE = 32\n",
        }
    )
    module = overlay_over(root, **{"ours/tiles.py": "TILE = 128\n"}).load("ours/ops/gemm.py")
    assert (module.TILE, module.NAME, module.__name__) == (128, "untouched", "ours.ops.gemm")


def test_a_module_that_a_candidate_adds_is_found(worktree: Tree, overlay_over) -> None:
    root = worktree({"ours/__init__.py": "", "ours/gemm.py": "TILE = 32\n"})
    edits = {"ours/gemm.py": "from .added import TILE\n", "ours/added.py": "TILE = 16\n"}
    assert overlay_over(root, **edits).load("ours/gemm.py").TILE == 16


def test_getsource_shows_the_edited_text_even_after_the_file_changes(
    worktree: Tree, overlay_over
) -> None:
    root = worktree({"scale.py": "def scale(x):\n    return x * 2\n"})
    module = overlay_over(root, **{"scale.py": "def scale(x):\n    return x * 3\n"}).load(
        "scale.py"
    )
    (root / "scale.py").write_text("\n\n\ndef scale(x):\n    return x * 5\n")
    assert inspect.getsource(module.scale) == "def scale(x):\n    return x * 3\n"


def test_stale_byte_code_of_the_worktree_is_not_run(worktree: Tree, overlay_over) -> None:
    import py_compile

    root = worktree({"tiles.py": "TILE = 32\n"})
    py_compile.compile(str(root / "tiles.py"))
    assert overlay_over(root, **{"tiles.py": "TILE = 64\n"}).load("tiles.py").TILE == 64


def test_nothing_is_written_into_the_worktree(worktree: Tree, overlay_over) -> None:
    root = worktree(
        {"ours/__init__.py": "", "ours/gemm.py": "from . import tiles\n", "ours/tiles.py": ""}
    )
    before = sorted(root.rglob("*"))
    overlay_over(root, **{"ours/gemm.py": "from . import tiles as t\n"}).load("ours/gemm.py")
    assert sorted(root.rglob("*")) == before


def test_a_save_after_loading_changes_nothing_that_is_imported_later(
    worktree: Tree, overlay_over
) -> None:
    root = worktree({"late.py": "VALUE = 'read'\n"})
    overlay = overlay_over(root)
    overlay.pin("late.py")
    (root / "late.py").write_text("VALUE = 'saved'\n")
    assert overlay.load("late.py").VALUE == "read"


def test_an_editable_install_resolves_to_the_edited_bytes(
    worktree: Tree, overlay_over, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = worktree({"python/ours/__init__.py": "", "python/ours/gemm.py": "TILE = 32\n"})
    monkeypatch.syspath_prepend(str(root / "python"))
    overlay = overlay_over(root, **{"python/ours/gemm.py": "TILE = 64\n"})
    assert importlib.import_module("ours.gemm").TILE == 64
    assert overlay.load("python/ours/gemm.py") is sys.modules["ours.gemm"]


def test_a_worktree_reached_through_a_symbolic_link_is_the_same_worktree(
    worktree: Tree, overlay_over, tmp_path: Path
) -> None:
    real = worktree({"ours/__init__.py": "", "ours/gemm.py": "TILE = 32\n"})
    link = tmp_path / "link"
    link.symlink_to(real)
    sys.path.insert(0, str(real))
    overlay_over(link, **{"ours/gemm.py": "TILE = 64\n"})
    assert importlib.import_module("ours.gemm").TILE == 64


@pytest.mark.parametrize("stem", ["json", "test", "gemm.v2"])
def test_a_script_whose_name_is_taken_still_loads(stem: str, worktree: Tree, overlay_over) -> None:
    root = worktree({f"{stem}.py": "TILE = 32\n"})
    taken = sys.modules.get(stem)
    assert overlay_over(root).load(f"{stem}.py").TILE == 32
    assert sys.modules.get(stem) is taken


def test_a_module_that_another_distribution_shadows_is_an_import_error(
    worktree: Tree, overlay_over, tmp_path: Path
) -> None:
    root = worktree({"ours/__init__.py": "", "ours/gemm.py": ""})
    other = tmp_path / "site"
    (other / "ours").mkdir(parents=True)
    (other / "ours/__init__.py").write_text("")
    (other / "ours/gemm.py").write_text("")
    sys.path[:0] = [str(other), str(root)]
    with pytest.raises(ImportError, match=r"ours\.gemm is .*site.*rename one of them"):
        overlay_over(root).load("ours/gemm.py")


def test_what_a_module_raises_passes_through(worktree: Tree, overlay_over) -> None:
    root = worktree({"broken.py": "x = (\n"})
    with pytest.raises(SyntaxError) as raised:
        overlay_over(root).load("broken.py")
    assert raised.value.filename == str(root / "broken.py")


def test_a_syntax_error_quotes_the_edited_line(worktree: Tree, overlay_over) -> None:
    root = worktree({"scale.py": "def scale(x):\n    return x\n"})
    overlay = overlay_over(root, **{"scale.py": "def scale(x:\n    return x\n"})
    with pytest.raises(SyntaxError) as raised:
        overlay.load("scale.py")
    assert raised.value.text == "def scale(x:"


@pytest.mark.parametrize(
    ("files", "path", "search", "expected"),
    [
        ({"a/__init__.py": "", "a/b/__init__.py": "", "a/b/k.py": ""}, "a/b/k.py", [], "a.b.k"),
        ({"a/__init__.py": ""}, "a/__init__.py", [], "a"),
        ({"kernels/k.py": ""}, "kernels/k.py", [], "k"),
        ({"kernels/k.py": "from .tiles import T"}, "kernels/k.py", [], "kernels.k"),
        (
            {"src/space/a/__init__.py": "", "src/space/a/k.py": ""},
            "src/space/a/k.py",
            [],
            "space.a.k",
        ),
        ({"src/a/k.py": ""}, "src/a/k.py", [], "a.k"),
        ({"lib/space/k.py": ""}, "lib/space/k.py", ["lib"], "space.k"),
        ({"01-add.py": ""}, "01-add.py", [], "01-add"),
    ],
)
def test_a_file_has_the_name_it_is_imported_under(
    files: dict[str, str], path: str, search: list[str], expected: str, worktree: Tree
) -> None:
    root = worktree(files)
    assert module_name(root / path, root, [str(root / entry) for entry in search])[0] == expected
