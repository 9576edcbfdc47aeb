"""Call a kernel's own host wrapper on a workload's inputs, and name what comes back."""

from __future__ import annotations

import os
import traceback
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import reduce
from pathlib import Path
from types import ModuleType

import torch

from .languages import BuildFailed, Case, LaunchFailed, Source, Tensor
from .overlay import Overlay
from .torch_tensors import from_torch, same_bits, to_torch

LOG_BYTES = 16 * 1024


class ImportFailed(BuildFailed):
    """A kernel's module did not load. Importing it is where kernels are defined."""

    def __init__(self, error: Exception, root: Path) -> None:
        super().__init__(failure_log(error, root))
        self.error = error


class Wrapper:
    """The host function of one kernel, with its inputs placed on a device."""

    def __init__(self, source: Source, device: str) -> None:
        self.device = device
        self._source = source
        self._overlay = Overlay(source.root, source.overlay)
        self._modules: dict[str, ModuleType] = {}
        self._case: Case | None = None
        self._inputs: dict[str, object] = {}
        self._pristine: dict[str, torch.Tensor] = {}

    @property
    def modules(self) -> tuple[ModuleType, ...]:
        """What was loaded so far: the kernel's module, and its launch's if that is another."""
        return tuple(self._modules.values())

    def attribute(self, path: str, name: str) -> object:
        """`name` (dotted for a method) of the module at `path`. Raises BuildFailed."""
        if not self._modules:
            self._overlay.install()
        if path not in self._modules:
            try:
                self._modules[path] = self._overlay.load(path)
            except Exception as error:
                raise ImportFailed(error, self._source.root) from None
        try:
            return reduce(getattr, name.split("."), self._modules[path])
        except AttributeError as error:
            raise BuildFailed(f"{path} defines no {name}") from error

    def source_bytes(self) -> dict[str, bytes]:
        """What was loaded for the kernel, its launch and each stand-in, by relative path."""
        paths = {self._source.path, self._source.launch_path, *self._source.overlay}
        return {path: self._overlay.pin(path) for path in sorted(paths)}

    def place(self, case: Case) -> None:
        """Copy the case's inputs to the device, into fresh storage."""
        self._case = case
        self._inputs = {
            name: to_torch(value, self.device) if isinstance(value, Tensor) else value
            for name, value in case.inputs.items()
        }
        self._pristine = {
            name: value.clone()
            for name in case.mutates
            if isinstance(value := self._inputs[name], torch.Tensor)
        }

    def restore(self) -> None:
        """Give declared mutated inputs the values they were placed with, at the same address."""
        for name, value in self._pristine.items():
            self._placed_tensor(name).copy_(value)

    def bound(self) -> Callable[[], object]:
        """The wrapper with its inputs bound: what is called, and all that is timed."""
        function = self.attribute(self._source.launch_path, self._source.launch_symbol)
        if not callable(function):
            raise BuildFailed(f"{self._source.launch_symbol} cannot be called")
        values = tuple(self._inputs.values())
        return lambda: function(*values)

    def name_outputs(self, result: object) -> dict[str, Tensor]:
        """Outputs in the reference's order and by its names, then declared mutated inputs.

        Raises LaunchFailed if there are too few or too many, or one is not a plain tensor.
        """
        case = self._placed()
        mutated = {name: self._inputs[name] for name in case.mutates}
        names = tuple(name for name in case.outputs if name not in mutated)
        named = {**_by_name(result, names, self._source.launch_symbol), **mutated}
        try:
            return {name: from_torch(value) for name, value in named.items()}
        except TypeError as error:
            raise LaunchFailed(f"{self._source.launch_symbol}: {error}") from error

    def changed_inputs(self) -> list[str]:
        """Undeclared inputs whose bytes differ from those that were placed."""
        case = self._placed()
        return [
            name
            for name, value in case.inputs.items()
            if name not in case.mutates
            and isinstance(value, Tensor)
            and not same_bits(self._placed_tensor(name), to_torch(value, self.device))
        ]

    @property
    def case(self) -> Case:
        """The case that was placed."""
        return self._placed()

    def clear(self) -> None:
        """Drop the inputs."""
        self._inputs = {}
        self._pristine = {}

    def _placed(self) -> Case:
        if self._case is None:
            raise RuntimeError("place comes first")
        return self._case

    def _placed_tensor(self, name: str) -> torch.Tensor:
        value = self._inputs[name]
        if not isinstance(value, torch.Tensor):
            raise TypeError(f"{name} is {type(value).__name__}, not a tensor")
        return value


@contextmanager
def poisoned_allocations() -> Iterator[None]:
    """Inside, memory that torch hands out uninitialized reads NaN, or the largest integer.

    torch fills it for every dtype in its deterministic mode; operations without a deterministic
    form go on working, and their warnings are of no use here.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.utils.deterministic.fill_uninitialized_memory = True
        # torch.use_deterministic_algorithms would do the same, and import torch's own compiler to
        # tell it: 1.4 s in every fresh process.
        torch._C._set_deterministic_algorithms(True, warn_only=True)
        try:
            yield
        finally:
            torch._C._set_deterministic_algorithms(False)


def failure_log(error: BaseException, root: Path) -> str:
    """One line that says what is wrong, then the error with its frames in the worktree.

    At most 16 KiB, both ends kept.
    """
    shown = traceback.TracebackException.from_exception(error)
    part: traceback.TracebackException | None = shown
    while part is not None:
        part.stack = traceback.StackSummary.from_list(
            [frame for frame in part.stack if _is_inside(frame.filename, root)]
        )
        part = part.__cause__ or part.__context__
    text = f"error: {_gist(error)}\n" + "".join(shown.format())
    if len(text) <= LOG_BYTES:
        return text
    half = LOG_BYTES // 2 - 32
    return f"{text[:half]}\n[… {len(text) - 2 * half} characters …]\n{text[-half:]}"


def _gist(error: BaseException) -> str:
    """What an error says in one line."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    if lines and hasattr(error, "node"):  # Triton's front end: where first, what last
        return lines[-1]
    return f"{type(error).__name__}: {lines[0] if lines else 'no message'}"


def _is_inside(filename: str, root: Path) -> bool:
    return os.path.realpath(filename).startswith(os.path.realpath(root) + os.sep)


def _by_name(result: object, names: Sequence[str], symbol: str) -> dict[str, object]:
    if isinstance(result, Mapping):
        missing = [name for name in names if name not in result]
        if missing:
            raise LaunchFailed(
                f"{symbol} returned {list(result)}; the reference names {missing} too"
            )
        return {name: result[name] for name in names}
    values = list(result) if isinstance(result, (tuple, list)) else [result]
    if not names and result is None:
        return {}
    if len(values) != len(names):
        raise LaunchFailed(
            f"{symbol} returned {len(values)} values; the reference names {len(names)}: "
            f"{', '.join(names)}"
        )
    return dict(zip(names, values, strict=True))
