"""How fast and how small the loop is; writes results/loop-<device>.json. See README."""

from __future__ import annotations

import argparse
import asyncio
import os
import pty
import select
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from bench.home import move_in
from bench.record import Figure, cpu_device, percentile, show, write
from daemon.client import Client
from daemon.protocol import (
    Empty,
    FileChanged,
    Shutdown,
    Snapshot,
    Subscribe,
    SuggestionChanged,
    SuggestionsChanged,
    Trust,
    Wire,
)
from library.card import read_card, write_card

ROOT = Path(__file__).resolve().parent.parent
BIN = Path(sys.executable).parent
SKILLS_WANTED = 300


class Home:
    """A home folder for one measurement: every XDG folder below it, and a worktree."""

    def __init__(self) -> None:
        self.path = Path(tempfile.mkdtemp(prefix="kl-bench-"))
        self.root = self.path / "work"
        self.root.mkdir()
        move_in(self.path)
        (self.root / "klineage.toml").write_text("")

    def add_samples(self) -> None:
        """The OpenCL samples."""
        for operator in ("gemm", "row_softmax"):
            shutil.copytree(ROOT / "sample_kernels" / operator / "opencl", self.root / operator)

    def fill_library(self) -> int:
        """Shipped cards copied under other ids into the user's place, up to SKILLS_WANTED."""
        shipped = sorted((ROOT / "library" / "skills").glob("*/references/card.json"))
        place = self.path / "data_home" / "klineage" / "skills"
        for number in range(SKILLS_WANTED - len(shipped)):
            source = shipped[number % len(shipped)].parent.parent
            card = read_card(source / "references" / "card.json")
            name = f"{source.name[:50]}-copy-{number}"
            folder = place / name
            (folder / "references").mkdir(parents=True)
            text = (
                (source / "SKILL.md").read_text().replace(f"name: {source.name}", f"name: {name}")
            )
            (folder / "SKILL.md").write_text(text)
            fields = {f: getattr(card, f) for f in card.__struct_fields__}
            fields["skill_id"] = f"{card.skill_id}-copy-{number}"
            write_card(type(card)(**fields), folder / "references" / "card.json")
        return SKILLS_WANTED


@asynccontextmanager
async def connected(home: Home) -> AsyncIterator[Client]:
    """A client of that worktree's daemon, which is stopped afterwards."""
    client = await Client.connect(home.root)
    try:
        yield client
    finally:
        await client.call("shutdown", Shutdown())
        await client.close()
        shutil.rmtree(home.path)


async def until(
    client: Client, wanted: Callable[[str, Wire], bool], limit_s: float = 120.0
) -> float:
    """Monotonic time at which a notification satisfied `wanted`."""
    async with asyncio.timeout(limit_s):
        async for method, notice in client.notices():
            if wanted(method, notice):
                return time.perf_counter()
    raise RuntimeError("the daemon closed the connection")


async def save_to_suggestions(saves: int, trusted: bool) -> Figure:
    """Save → ranked suggestions at the client, for saves that change the closure."""
    home = Home()
    home.add_samples()
    count = home.fill_library()
    async with connected(home) as client:
        await client.call("subscribe", Subscribe())
        if trusted:
            await client.call("trust", Trust(True))
        snapshot = await client.call("snapshot", Empty())
        assert isinstance(snapshot, Snapshot)
        assert snapshot.status.skills == count, snapshot.status.skills

        def ranked(method: str, notice: Wire) -> bool:
            return (
                isinstance(notice, SuggestionsChanged)
                and notice.kernel.endswith("::gemm_naive")
                and bool(notice.suggestions)
            )

        kernel = home.root / "gemm" / "gemm_naive.cl"
        source = kernel.read_text()
        samples = []
        for number in range(saves):
            # A real edit each time: the accumulator under another name, so another closure.
            edited = source.replace("acc", f"acc{number}")
            start = time.perf_counter()
            kernel.write_text(edited)
            at = await until(client, ranked)
            samples.append((at - start) * 1e3)
    name = f"save → ranked suggestions at the client, p95, {count} skills, debounce included"
    if trusted:
        name += ", while the gate works"
    return Figure(name, percentile(samples, 95), "ms", at_most=250.0, samples=samples)


async def save_to_verdict(times: int) -> Figure:
    """Save → first screened verdict on the naive OpenCL GEMM, warm daemon."""
    home = Home()
    home.add_samples()
    async with connected(home) as client:
        await client.call("subscribe", Subscribe())
        await client.call("trust", Trust(True))

        def screened(method: str, notice: Wire) -> bool:
            return (
                isinstance(notice, SuggestionChanged)
                and notice.suggestion.kernel.endswith("gemm_naive")
                and notice.suggestion.stage == "screened"
            )

        await until(client, screened)
        kernel = home.root / "gemm" / "gemm_naive.cl"
        source = kernel.read_text()
        samples = []
        for number in range(times):
            start = time.perf_counter()
            kernel.write_text(source.replace("acc", f"acc{number}"))
            samples.append(await until(client, screened) - start)
    return Figure(
        "save → first screened verdict, OpenCL GEMM 256³ workload, warm daemon",
        max(samples),
        "s",
        at_most=6.0,
        samples=samples,
        note="slowest",
    )


async def at_rest(seconds: float) -> list[Figure]:
    """Resident memory and processor time of the daemon with nothing to do."""
    home = Home()
    home.add_samples()
    async with connected(home) as client:
        status = (await client.call("snapshot", Empty())).status
        ticks = os.sysconf("SC_CLK_TCK")

        def used_s() -> float:
            fields = Path(f"/proc/{status.pid}/stat").read_text().rpartition(")")[2].split()
            return (int(fields[11]) + int(fields[12])) / ticks

        await asyncio.sleep(5.0)
        before = used_s()
        await asyncio.sleep(seconds)
        share = (used_s() - before) / seconds * 100
        rollup = Path(f"/proc/{status.pid}/smaps_rollup").read_text()
        resident = next(
            int(line.split()[1]) for line in rollup.splitlines() if line.startswith("Rss")
        )
    return [
        Figure("daemon at rest, resident memory", resident / 1024, "MiB", at_most=70.0),
        Figure(f"daemon at rest, CPU over {seconds:.0f} s", share, "%", at_most=0.5),
    ]


def first_paint(command: list[str], times: int, name: str, at_most: float | None) -> Figure:
    """Start → first characters on a 120×40 terminal."""
    samples = []
    for _ in range(times):
        primary, secondary = pty.openpty()
        start = time.perf_counter()
        environment = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "120", "LINES": "40"}
        process = subprocess.Popen(
            command,
            stdin=secondary,
            stdout=secondary,
            stderr=secondary,
            env=environment,
            start_new_session=True,
        )
        os.close(secondary)
        seen = b""
        # Textual switches to the alternate screen and asks the terminal questions before it
        # paints; the first paint is the first drawn row, placed by a cursor position at 1;1.
        while b"\x1b[1;1H" not in seen:
            ready, _, _ = select.select([primary], [], [], 30)
            if not ready:
                raise RuntimeError(f"{command} painted nothing in 30 s: {seen[-200:]!r}")
            seen += os.read(primary, 1 << 16)
        samples.append((time.perf_counter() - start) * 1e3)
        process.kill()
        process.wait()
        os.close(primary)
    return Figure(name, percentile(samples, 95), "ms", at_most=at_most, samples=samples)


async def checkout(files: int) -> Figure:
    """`git checkout` of many kernels while watching: last one told, each exactly once."""
    home = Home()
    git = ["git", "-C", str(home.root), "-c", "user.name=bench", "-c", "user.email=bench@invalid"]
    subprocess.run([*git, "init", "-q", "-b", "one"], check=True)
    source = (ROOT / "sample_kernels/gemm/opencl/gemm_naive.cl").read_text()
    for branch, word in (("one", "acc"), ("two", "total")):
        if branch == "two":
            subprocess.run([*git, "checkout", "-q", "-b", "two"], check=True)
        for number in range(files):
            folder = home.root / f"kernels{number % 20}"
            folder.mkdir(exist_ok=True)
            text = source.replace("acc", f"{word}{number}")
            (folder / f"k{number}.cl").write_text(text)
        subprocess.run([*git, "add", "-A"], check=True)
        subprocess.run([*git, "commit", "-q", "-m", branch], check=True)
    async with connected(home) as client:
        await client.call("subscribe", Subscribe())
        snapshot = await client.call("snapshot", Empty())
        while len(snapshot.files) < files:
            await until(client, lambda method, notice: method == "file.changed")
            snapshot = await client.call("snapshot", Empty())
        seen: dict[str, int] = {}

        def told(method: str, notice: Wire) -> bool:
            if isinstance(notice, FileChanged):
                seen[notice.file.path] = seen.get(notice.file.path, 0) + 1
            return len(seen) == files

        checking_out = await asyncio.create_subprocess_exec(*git, "checkout", "-q", "one")
        reader = asyncio.create_task(until(client, told))
        await checking_out.wait()
        finished = time.perf_counter()
        at = await reader
    twice = [path for path, count in seen.items() if count > 1]
    assert not twice, f"told more than once: {twice[:5]}"
    return Figure(
        f"checkout of {files} files while watching: git done → last of them told, each once",
        at - finished,
        "s",
        at_most=3.0,
    )


async def measure(options: argparse.Namespace) -> list[Figure]:
    """Every figure, one after the other, on an otherwise idle machine."""
    figures: list[Figure] = []
    empty = "from textual.app import App; App().run()"
    steps: list[Callable[[], Awaitable[Figure | list[Figure]]]] = [
        lambda: save_to_suggestions(options.saves, trusted=False),
        lambda: save_to_suggestions(options.saves, trusted=True),
        lambda: save_to_verdict(options.verdicts),
        lambda: at_rest(options.rest_s),
        lambda: checkout(2000),
    ]
    for step in steps:
        made = await step()
        figures += made if isinstance(made, list) else [made]
        show(figures[-1:] if not isinstance(made, list) else made)
    home = Home()
    home.add_samples()
    async with connected(home) as client:
        await client.call("ping", Empty())
        command = [str(BIN / "klineage-tui"), str(home.root)]
        painted = [
            first_paint(
                command, options.starts, "klineage-tui start → first paint, daemon up, p95", 800.0
            ),
            first_paint(
                [sys.executable, "-c", empty],
                options.starts,
                "an empty Textual app, the same way",
                None,
            ),
        ]
    show(painted)
    return figures + painted


def main() -> int:
    """Measure, print, write; 1 if a limit does not hold."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--saves", type=int, default=200)
    parser.add_argument("--verdicts", type=int, default=10)
    parser.add_argument("--starts", type=int, default=20)
    parser.add_argument("--rest-s", type=float, default=60.0)
    options = parser.parse_args()
    kept = {name: value for name, value in os.environ.items() if name.startswith("XDG_")}
    try:
        figures = asyncio.run(measure(options))
    finally:
        os.environ.update(kept)
    load = os.getloadavg()
    path = write(
        "loop",
        cpu_device(),
        figures,
        method="Wall clock at the client over a real daemon, socket and PoCL device; nearest-rank percentiles.",
        command="python bench/loop.py",
        extra={"load_average": load, "cores": os.cpu_count()},
    )
    print(f"wrote {path.relative_to(ROOT)}")
    return 0 if all(figure.held for figure in figures) else 1


if __name__ == "__main__":
    sys.exit(main())
