"""Import a worktree's modules with some files replaced, under the names they always have.

A candidate must run as the module it edits: relative imports, editable installs and vendored
packages go on resolving in the worktree, `__file__` stays the worktree's path, and only the bytes
differ. So every import is resolved by the interpreter's own finders first; a module whose file has
a stand-in is then loaded from those bytes. Nothing is written into the worktree.
"""

from __future__ import annotations

import ast
import importlib
import importlib.util
import linecache
import os
import sys
from collections.abc import Mapping, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType


class Overlay(MetaPathFinder):
    """Replaced files of one worktree. At most one is installed in a process."""

    def __init__(self, root: Path, stand_ins: Mapping[str, Path]) -> None:
        """`stand_ins` maps paths relative to `root` to the files that hold their bytes."""
        self.root = root
        self._data: dict[str, bytes] = {
            os.path.realpath(root / path): file.read_bytes() for path, file in stand_ins.items()
        }

    def install(self) -> None:
        """Put this finder first, and keep byte code out of the worktree."""
        sys.dont_write_bytecode = True
        sys.meta_path.insert(0, self)
        importlib.invalidate_caches()

    def uninstall(self) -> None:
        """Let imports resolve as before; modules that were loaded stay."""
        sys.meta_path.remove(self)

    def pin(self, path: str) -> bytes:
        """The bytes of a worktree file, read once: a save while it is gated changes nothing."""
        real = os.path.realpath(self.root / path)
        if real not in self._data:
            self._data[real] = Path(real).read_bytes()
        return self._data[real]

    def load(self, path: str) -> ModuleType:
        """The module defined by a worktree file. Whatever its code raises passes through.

        Raises ImportError when the name the file has belongs to another file.
        """
        self.pin(path)
        file = self.root / path
        name, base = module_name(file, self.root, sys.path)
        taken = _is_taken(name, file)
        for folder, position in ((base, 0), (self.root, len(sys.path))):
            if str(folder) not in sys.path:
                sys.path.insert(position, str(folder))
        if taken and not _is_package(file.parent):
            # A script called `test.py` or `triton.py`: run by hand it would be `__main__`.
            return self._load_script(f"kernel_{file.stem}".replace(".", "_"), file)
        module = importlib.import_module(name)
        found = module.__file__ or ""
        if os.path.realpath(found) != os.path.realpath(file):
            raise ImportError(f"{name} is {found or 'a namespace'}, not {file}: rename one of them")
        return module

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """What the other finders find, reading from the stand-in where its file has one."""
        for finder in sys.meta_path:
            spec = None if finder is self else finder.find_spec(fullname, path, target)
            if spec is not None:
                return self._covered(spec)
        return self._added(fullname, path)

    def _covered(self, spec: ModuleSpec) -> ModuleSpec:
        if spec.has_location and spec.origin is not None:
            data = self._data.get(os.path.realpath(spec.origin))
            if data is not None:
                spec.loader = _StandInLoader(spec.name, spec.origin, data)
        return spec

    def _added(self, fullname: str, path: Sequence[str] | None) -> ModuleSpec | None:
        """A module whose file exists in the overlay alone."""
        for folder in sys.path if path is None else path:
            file = Path(folder) / f"{fullname.rpartition('.')[2]}.py"
            data = self._data.get(os.path.realpath(file))
            if data is not None:
                loader = _StandInLoader(fullname, str(file), data)
                return importlib.util.spec_from_file_location(fullname, file, loader=loader)
        return None

    def _load_script(self, name: str, file: Path) -> ModuleType:
        loader = _StandInLoader(name, str(file), self._data[os.path.realpath(file)])
        spec = ModuleSpec(name, loader, origin=str(file))
        spec.has_location = True
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        loader.exec_module(module)
        return module


class _StandInLoader(SourceFileLoader):
    """Runs given bytes as the file at `path`."""

    def __init__(self, fullname: str, path: str, data: bytes) -> None:
        super().__init__(fullname, path)
        self._stand_in = data

    def get_data(self, path: str) -> bytes:
        return self._stand_in if path == self.path else super().get_data(path)

    def get_code(self, fullname: str) -> CodeType:
        # The inherited way may answer with the worktree's .pyc: its stamp is of the file on disk.
        try:
            code: CodeType = self.source_to_code(self._stand_in, self.path)
        except SyntaxError as error:
            # The interpreter quotes the line it finds on disk.
            lines = self._stand_in.decode(errors="replace").splitlines()
            if error.lineno is not None and error.lineno <= len(lines):
                error.text = lines[error.lineno - 1]
            raise
        return code

    def exec_module(self, module: ModuleType) -> None:
        # Triton compiles what inspect.getsource gives, and that reads through linecache. An entry
        # without a modification time is never checked against the file on disk.
        source = importlib.util.decode_source(self._stand_in)
        lines = source.splitlines(keepends=True)
        linecache.cache[self.path] = (len(self._stand_in), None, lines, self.path)
        super().exec_module(module)


def module_name(file: Path, root: Path, search: Sequence[str]) -> tuple[str, Path]:
    """The dotted name `file` is imported under, and the folder that name starts from.

    In order: the deepest folder of `search` above the file's package (installs, editable or not);
    a `src` folder; the parent of the outermost package. A file outside any package is a script and
    named by its stem, unless it imports relatively: then it is in a namespace package of `root`.
    """
    top = file.parent
    while _is_package(top):
        top = top.parent
    above = {os.path.realpath(entry): Path(entry) for entry in search if entry}
    for folder in (top, *top.parents):
        if os.path.realpath(folder) in above and _is_dotted(file, folder):
            return _dotted(file, folder), folder
    for folder in (top, *top.parents):
        if folder.name == "src" and folder.is_relative_to(root) and _is_dotted(file, folder):
            return _dotted(file, folder), folder
    if not _is_package(file.parent) and _imports_relatively(file) and _is_dotted(file, root):
        return _dotted(file, root), root
    return _dotted(file, top), top


def _is_package(folder: Path) -> bool:
    return (folder / "__init__.py").is_file()


def _dotted(file: Path, folder: Path) -> str:
    parts = list(file.relative_to(folder).with_suffix("").parts)
    return ".".join(parts[:-1] if parts[-1] == "__init__" and len(parts) > 1 else parts)


def _is_dotted(file: Path, folder: Path) -> bool:
    return all(part.isidentifier() for part in file.relative_to(folder).with_suffix("").parts[:-1])


def _imports_relatively(file: Path) -> bool:
    try:
        tree = ast.parse(file.read_bytes())
    except (OSError, SyntaxError, ValueError):
        return False  # loading it will say so, with the line
    return any(isinstance(node, ast.ImportFrom) and node.level > 0 for node in ast.walk(tree))


def _is_taken(name: str, file: Path) -> bool:
    """Whether importing a script's `name` would give another file, or cannot work."""
    if "." in name:
        return "." in file.stem
    if name in sys.modules or name in sys.stdlib_module_names:
        return True
    spec = PathFinder.find_spec(name)
    return spec is not None and os.path.realpath(spec.origin or "") != os.path.realpath(file)
