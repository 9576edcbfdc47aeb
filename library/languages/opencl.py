"""OpenCL C: how its kernels are found, parsed and analysed."""

from __future__ import annotations

from gate.values.kernel import Kernel, Language, Launch, LaunchKind, SourceFile
from gate.values.platform import Platform
from gate.values.trace import LaunchTrace
from gate.values.workload import Workload
from library.facts.opencl import OpenCLAnalysis
from library.languages import Found, Problem, ReadFile
from library.languages.c_closure import (
    Definition,
    Definitions,
    Unit,
    closure_digest,
    load_units,
)
from library.languages.c_tree import depth, syntax_problems
from library.languages.opencl_source import function_name, kernel_definitions, parse_unit
from library.workload_source import LaunchSource, read_workload

MAX_BYTES = 4 * 1024 * 1024
MAX_DEPTH = 200
"""Of a kernel's tree. What follows an expression or a block down calls itself once or twice a level."""


class OpenCL:
    """`LanguageSupport` for OpenCL C."""

    language = Language.OPENCL
    suffixes = (".cl", ".ocl", ".opencl")

    def find(self, path: str, data: bytes, workload: Workload | None, read: ReadFile) -> Found:
        """The kernels of a `.cl` file; see `LanguageSupport.find`.

        A kernel's launch is `launch_<entry>` of the workload file, else `launch`.
        """
        if len(data) > MAX_BYTES:
            return Found((), (Problem(path, 1, f"larger than {MAX_BYTES // 2**20} MiB"),))
        units, problems = load_units(path, data, read, parse_unit)
        launches = read_workload(workload) if workload else None
        table = Definitions(units)
        kernels: dict[str, Kernel] = {}
        for definition in kernel_definitions(units[0]):
            entry = function_name(units[0], definition.node)
            if entry in kernels:
                line = definition.node.start_point[0] + 1
                said = f"a second definition of {entry}, not looked at; the first one is"
                problems += (Problem(path, line, said),)
                continue
            if depth(definition.node) > MAX_DEPTH:
                line = definition.node.start_point[0] + 1
                said = f"{entry} nests more than {MAX_DEPTH} levels deep, too deep to analyse"
                problems += (Problem(path, line, said),)
                continue
            launch = launches.launch_for(entry) if launches else None
            kernels[entry] = _kernel(units, table.closure(definition), entry, workload, launch)
        syntax = tuple(
            p for unit in units for p in syntax_problems(unit.path, unit.data, unit.tree)
        )
        return Found(tuple(kernels.values()), syntax + problems)

    def analyse(
        self,
        kernel: Kernel,
        workload: Workload | None,
        platform: Platform | None,
        traces: tuple[LaunchTrace, ...] = (),
    ) -> OpenCLAnalysis:
        """Features, facts and anchors of a kernel; see `LanguageSupport.analyse`."""
        return OpenCLAnalysis(kernel, workload, platform, traces)


def _kernel(
    units: tuple[Unit, ...],
    parts: tuple[Definition, ...],
    entry: str,
    workload: Workload | None,
    launch: LaunchSource | None,
) -> Kernel:
    files = [SourceFile(unit.path, unit.data) for unit in units]
    where = None
    if workload is not None and launch is not None:
        files.append(SourceFile(workload.path, workload.data))
        where = Launch(LaunchKind.NDRANGE, workload.path, launch.symbol)
    return Kernel(
        language=Language.OPENCL,
        path=units[0].path,
        entry=entry,
        files=tuple(files),
        launch=where,
        closure=closure_digest(parts, Language.OPENCL, entry, launch.normalized if launch else ""),
    )
