"""One digest over everything a wrapper's launches are: binaries, grids, scalars and host code."""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Mapping, Sequence
from types import ModuleType
from typing import Any

from .languages import Built
from .triton_binary import Binary
from .triton_launch import Launch


def built(
    entry: Binary, launches: Sequence[Launch], binaries: Sequence[Binary], host: str
) -> Built:
    """What was built for `launches`, each with its binary; `entry` is the kernel's own.

    Two builds have one digest only if nothing that reaches the device differs and the host code
    around it is the same: an edit of the grid alone leaves every binary as it was.
    """
    sha = hashlib.sha256(host.encode())
    for launch, binary in zip(launches, binaries, strict=True):
        scalars = {
            name: argument.value
            for name, argument in launch.arguments.items()
            if argument.kind != "pointer"
        }
        sha.update(f"\0{launch.name}{launch.grid}{scalars}{binary.digest}".encode())
    return Built(digest=sha.hexdigest(), ir=entry.ir, resources=entry.resources)


def host_digest(files: Mapping[str, bytes], modules: Sequence[ModuleType]) -> str:
    """Digest of the files' syntax without the bodies of jit functions (the binaries show those)."""
    names = _jit_names(modules)
    sha = hashlib.sha256()
    for path, data in files.items():
        sha.update(f"{path}\0".encode())
        sha.update(_without_bodies(data, names) if path.endswith(".py") else data)
    return sha.hexdigest()


def _without_bodies(data: bytes, names: set[str]) -> bytes:
    try:
        tree = ast.parse(data)
    except SyntaxError:
        return data  # a file that nothing imports
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and node.name in names:
            node.body = []
    return ast.dump(tree).encode()


def _jit_names(modules: Sequence[ModuleType]) -> set[str]:
    from triton.runtime.jit import KernelInterface

    names = set()
    for module in modules:
        for value in vars(module).values():
            function: Any = value
            while isinstance(function, KernelInterface):
                function = getattr(function, "fn", None)
            if function is not value and function is not None:
                names.add(function.__name__)
    return names
