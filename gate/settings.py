"""GateSettings: the `[gate]` table of klineage.toml. docs/configuration.md shows it whole."""

from __future__ import annotations

from typing import Annotated

import msgspec

Units = Annotated[int, msgspec.Meta(ge=5)]
"""Fewer than five independent observations give no interval worth the name: 4 cover 87.5 %."""

Count = Annotated[int, msgspec.Meta(ge=1)]
Duration = Annotated[float, msgspec.Meta(gt=0)]


class ScreenSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How a candidate is timed at tier `screen`: two warm workers, seconds."""

    blocks: Units = 6
    """ABBA or BAAB blocks at least. 6 give an interval with 96.9 % coverage from least to greatest;
    slow kernels may end with 5 and 93.8 %."""
    blocks_max: Units = 15
    """Further blocks fill `seconds` up to this many."""
    cell_ms: Duration = 40.0
    """Launches of one cell of a block are added until they last this long, milliseconds; a cell has
    three at least, unless they would last longer than twice this."""
    seconds: Annotated[float, msgspec.Meta(ge=0)] = 1.5
    """Blocks beyond the least number are begun until timing has lasted this long, seconds."""
    limit_s: Duration = 4.0
    """No further block is begun after this many seconds of timing, once 5 are done."""


class ConfirmSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How a candidate is judged at tier `confirm`: fresh process pairs, fresh seeds."""

    seeds: Count = 3
    """Secret seeds of the correctness inputs."""
    processes: Units = 6
    """Process pairs of the first look; one pair is one observation."""
    processes_max: Units = 12
    """Process pairs of the second look, taken when the first left the answer open."""
    blocks: Count = 2
    """ABBA or BAAB blocks in each pair, at each shape."""
    cell_ms: Duration = 40.0
    """As in `screen`, milliseconds."""


class DeadlineSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How long each stage may take before its process group is killed, seconds."""

    start_s: Duration = 90.0
    """A worker's start, with the import of the language's runtime."""
    original_s: Duration = 120.0
    """A build, or a launch, of the kernel as it stands."""
    compile_floor_s: Duration = 20.0
    """A build gets three times what the original's took, and at least this."""
    run_floor_s: Duration = 20.0
    """A correctness launch gets twenty times what the original's took, and at least this."""
    reference_s: Duration = 120.0
    """One call into the workload file: inputs, reference or comparison."""


class GateSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Where kernels run, how hard they are tested, and what counts as a gain."""

    python: str = ""
    """Interpreter that kernels and workloads run in. Empty: the one klineage runs in."""
    devices: dict[str, str] = {}
    """Device by language: `opencl = "pocl"` (part of a platform's or device's name), `triton =
    "cuda:1"` or a compile-only target such as `"sm_80"`. A language left out takes its default."""
    environment: dict[str, str] = {}
    """Variables added to the workers' otherwise short environment."""
    minimum_gain: Annotated[float, msgspec.Meta(ge=0)] = 0.005
    """A smaller speedup is no gain, as a fraction: 0.005 is 0.5 %."""
    screen: ScreenSettings = ScreenSettings()
    """Tier `screen`."""
    confirm: ConfirmSettings = ConfirmSettings()
    """Tier `confirm`."""
    deadlines: DeadlineSettings = DeadlineSettings()
    """Deadlines of the stages."""
    log_bytes: Count = 16 * 1024
    """Longest worker output kept behind a failure, bytes."""
    file_bytes: Count = 8 * 1024**3
    """Largest file a worker may write, bytes."""
    device_lock: str = ""
    """File that is locked while a device is timed. Empty: one for each user of this machine."""


USER_ONLY = ("python", "devices", "environment", "device_lock")
"""Fields only the user's own configuration may set, never a repository's."""
