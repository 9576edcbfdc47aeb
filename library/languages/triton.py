"""Triton: kernels found by their source alone; the user's module is never imported."""

from __future__ import annotations

from gate.values.kernel import Kernel, Language, Launch, LaunchKind, SourceFile
from gate.values.platform import Platform
from gate.values.trace import LaunchTrace
from gate.values.workload import Workload
from library.facts.triton import TritonAnalysis
from library.languages import Found, Problem, ReadFile
from library.languages.python_closure import Closure, closure_of
from library.languages.python_module import Module, Repository
from library.languages.python_source import ancestors, line_of, syntax_problems
from library.languages.triton_kernels import JitFunction, called_helpers
from library.languages.triton_launch import LaunchSite, choose_wrapper, kernels_of
from library.target import Analysis
from library.workload_source import read_workload

OUTSIDE = ("triton", "torch", "numpy", "math", "os", "sys", "functools", "typing", "__future__")
"""Packages whose names mean the same everywhere; anything else a kernel calls must be found."""


class Triton:
    """Surface language `triton`."""

    language = Language.TRITON
    suffixes: tuple[str, ...] = (".py",)

    def find(self, path: str, data: bytes, workload: Workload | None, read: ReadFile) -> Found:
        """Kernels of a file: jit functions that are launched, or that no jit function calls."""
        if b"triton" not in data:
            return Found(())
        repository = Repository(read)
        module = repository.add(path, data)
        operator = read_workload(workload).operator if workload is not None else ""
        problems = list(syntax_problems(module.source))
        kernels = []
        for jit, sites in kernels_of(module):
            if jit.function.whole.has_error:
                continue
            chosen = choose_wrapper(module, sites, operator)
            names = {*jit.names}
            launch = None
            if isinstance(chosen, str):
                line = line_of(jit.function.node)
                problems.append(Problem(path, line, f"{jit.name} cannot be gated: {chosen}"))
            else:
                symbol, site = chosen
                names |= {symbol, _outermost(module, site)}
                launch = Launch(LaunchKind.WRAPPER, path, symbol)
            closure = closure_of(repository, module, names)
            problems += _missing_helpers(jit, module, closure)
            kernels.append(_kernel(jit, module, launch, closure))
        return Found(tuple(kernels), tuple(problems))

    def analyse(
        self,
        kernel: Kernel,
        workload: Workload | None,
        platform: Platform | None,
        traces: tuple[LaunchTrace, ...] = (),
    ) -> Analysis:
        """Features, facts and anchors of a kernel that `find` gave."""
        return TritonAnalysis.of(kernel, workload, platform, traces)


def _kernel(jit: JitFunction, module: Module, launch: Launch | None, closure: Closure) -> Kernel:
    files = tuple(SourceFile(m.source.path, m.source.data) for m in closure.modules)
    return Kernel(Language.TRITON, module.source.path, jit.name, files, launch, closure.digest)


def _outermost(module: Module, site: LaunchSite) -> str:
    """The module-level name that holds the launching function: itself, or its class."""
    if not site.host.nested:
        return site.host.name
    node = site.host.node
    for outer in ancestors(node):
        if outer.type in ("class_definition", "function_definition"):
            node = outer
    name = node.child_by_field_name("name")
    return module.source.text(name) if name is not None else site.host.name


def _missing_helpers(jit: JitFunction, module: Module, closure: Closure) -> list[Problem]:
    """Functions the kernel calls that no file of the worktree defines."""
    problems = []
    for name in sorted(called_helpers(module, jit.function)):
        item = module.imports.get(name)
        if item is None or item.module.split(".")[0] in OUTSIDE:
            continue
        if (name, item.dotted) in closure.outside:
            message = f"{name} of {item.module} is not in this worktree; what it does is unknown"
            problems.append(Problem(module.source.path, line_of(item.node), message))
    return problems
