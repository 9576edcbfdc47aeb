"""What goes over the socket: JSON-RPC 2.0, one JSON object a line, and these flat types.

The window and the command line know the daemon by this file and `daemon.client` alone. Nothing of
gate or library is imported here, so a client starts without them. Requests and their results are
paired in `METHODS`; notifications in `NOTICES`.
"""

from __future__ import annotations

from typing import Literal, dataclass_transform

import msgspec

PROTOCOL = 1
"""Major version. A client and a daemon with different ones do not talk; the client says so."""

MAX_FRAME_BYTES = 8 * 1024 * 1024
"""Longest line either side accepts, newline included."""

# JSON-RPC error codes. The standard ones, then ours.
PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603
VERSION_MISMATCH = -32001
UNTRUSTED = -32002
STALE = -32003
NOT_CONFIRMED = -32004
NOT_FOUND = -32005
BUSY = -32006
UNAVAILABLE = -32007
IO_FAILED = -32008


@dataclass_transform(frozen_default=True, field_specifiers=(msgspec.field,))
class Wire(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Base of everything on the wire: immutable, and an unknown key is an error."""


# ---- views: what clients show -----------------------------------------------------------------


class FeatureView(Wire):
    """One row of a kernel's state."""

    id: str
    name: str
    presence: Literal["present", "absent", "unknown"]
    layer: Literal["source", "ir", "binary"]
    line: int | None = None
    detail: str = ""


class KernelView(Wire):
    """A kernel found in the worktree."""

    id: str
    """`path::entry`; stable while the file and the name stay."""
    path: str
    entry: str
    language: str
    line: int
    closure: str
    workload: str | None
    """Path of its workload file; None means it can be shown but not gated."""
    features: tuple[FeatureView, ...] = ()
    applicable: int = 0
    """Suggestions whose conditions all hold."""


class FileView(Wire):
    """A watched file with what was found in it."""

    path: str
    kernels: tuple[KernelView, ...] = ()
    problems: tuple[str, ...] = ()
    """`line 12: syntax error near "floot"`; one clear line each."""


class ConditionView(Wire):
    """A precondition of a skill on a kernel, with the facts that decided it."""

    id: str
    category: str
    text: str
    truth: Literal["met", "unmet", "unknown"]
    because: str
    """`K=256 % 8 == 0`, or which fact is missing."""
    supply: str = ""
    """For unknown: what would supply the missing fact."""


class CheckView(Wire):
    """One thing the gate checked, or did not and why."""

    name: str
    outcome: Literal["passed", "failed", "not run"]
    detail: str


class TimingView(Wire):
    """Measured latency before and after at one shape."""

    shape: str
    before_us: float
    after_us: float
    speedup: float
    speedup_low: float
    speedup_high: float
    confidence: float
    method: str


class VerdictView(Wire):
    """The gate's answer, as shown."""

    status: str
    tier: Literal["screen", "confirm", "admit"]
    message: str
    at: str
    """UTC, ISO 8601."""
    platform: str
    device: str
    trust: str
    equivalent_to: str
    checks: tuple[CheckView, ...] = ()
    timings: tuple[TimingView, ...] = ()
    """First declared shape first."""
    resources_before: dict[str, int | None] = {}
    resources_after: dict[str, int | None] = {}
    """registers, spill_bytes, …; null is "unavailable"."""
    log: str = ""
    cost_s: float = 0.0


Stage = Literal[
    "queued",  # applies; waits for the gate
    "screening",
    "screened",  # has a screen verdict
    "confirming",
    "confirmed",  # has a confirm verdict
    "manual",  # applies, but its carrier needs a rewriter or the transform refused
    "blocked",  # some condition is unmet or unknown
    "rejected",  # a person said no
    "applied",
]


class SuggestionView(Wire):
    """A skill on a kernel: whether it applies, what was measured, what could go wrong."""

    id: str
    """12 hex digits, stable for (closure, card, locus)."""
    kernel: str
    path: str
    line: int
    skill: str
    """Skill id, `opencl.coarsen-rows`."""
    card: str
    """Card digest."""
    intent: str
    stage: Stage
    rank: int
    """1 is shown first."""
    expected: str = ""
    """Gain its evidence predicts, with the number of trials: `1.8x (3 trials here)`; never a measurement of this kernel."""
    reason: str = ""
    """One line: why it is at this stage."""
    conditions: tuple[ConditionView, ...] = ()
    risks: tuple[str, ...] = ()
    verdict: VerdictView | None = None
    files: tuple[str, ...] = ()
    """Files its candidate changes."""


class FileDiff(Wire):
    """Text of one file before and after, for a client to diff."""

    path: str
    before: str
    after: str


class EntryView(Wire):
    """One change in history."""

    id: int
    at: str
    kind: Literal["applied", "undone", "redone", "rejected"]
    suggestion: str
    skill: str
    kernel: str
    files: tuple[str, ...] = ()
    gain: str = ""
    note: str = ""
    undoable: bool = False


class SkillView(Wire):
    """A skill of the library, with what its evidence says."""

    skill_id: str
    digest: str
    intent: str
    languages: tuple[str, ...]
    platforms: tuple[str, ...]
    status: str
    place: str
    """`shipped`, `user` or `repository`."""
    trials: int
    gains: str = ""
    """Measured range by platform: `pocl-cpu 2.8–3.4x (2)`."""
    carrier: str = ""
    path: str = ""


class WhyView(Wire):
    """Why a skill is or is not offered on a kernel."""

    skill: str
    kernel: str
    answer: Literal["applies", "blocked", "excluded"]
    lines: tuple[str, ...]
    """Scope, state, anchors, each condition with its facts, evidence; one line each."""
    conditions: tuple[ConditionView, ...] = ()


class JobView(Wire):
    """Something the gate is doing or will do."""

    id: str
    suggestion: str
    tier: Literal["screen", "confirm", "admit"]
    state: Literal["queued", "running", "done", "cancelled", "interrupted", "failed"]
    step: str = ""


class StatusView(Wire):
    """Everything `klineage status` prints; answered at once, also while the gate works."""

    pid: int
    version: str
    root: str
    uptime_s: float
    trusted: bool
    watching: str
    """`inotify`, `polling every 2 s`, `paused`, or `degraded: …`."""
    platform: str
    device: str
    files: int
    kernels: int
    jobs: tuple[JobView, ...] = ()
    clients: int = 0
    warnings: tuple[str, ...] = ()
    skills: int = 0


# ---- requests and their results ---------------------------------------------------------------


class Hello(Wire):
    """First request of a connection."""

    protocol: int
    client: str
    version: str
    interpreter: str
    cwd: str


class HelloReply(Wire):
    """Who answered. Differences in interpreter or root are for the client to show."""

    protocol: int
    version: str
    pid: int
    root: str
    interpreter: str
    cwd: str
    trusted: bool
    seq: int
    """Sequence number of the newest notification."""
    warnings: tuple[str, ...] = ()
    """Such as a client and a daemon that run under different interpreters."""


class Empty(Wire):
    """No parameters, or nothing to say."""


class Ok(Wire):
    """Done, with a line for people."""

    message: str = ""


class Trust(Wire):
    """The person's one-time answer for this worktree."""

    trusted: bool


class Subscribe(Wire):
    """Ask for notifications newer than `since`; 0 for only new ones."""

    since: int = 0


class Subscribed(Wire):
    """`resync` true: what was asked for is gone; read the whole state again."""

    seq: int
    resync: bool


class Snapshot(Wire):
    """All a window needs to draw itself, as of notification `seq`."""

    seq: int
    status: StatusView
    files: tuple[FileView, ...]
    suggestions: tuple[SuggestionView, ...]
    history: tuple[EntryView, ...]
    keys: dict[str, str] = {}
    """Key bindings of the user's configuration, action → key."""


class Detect(Wire):
    """Analyse one file now. `path` is relative to the root, or absolute inside it."""

    path: str


class Suggest(Wire):
    """Suggestions for a file or a kernel id; empty for all. `wait`: until all are screened."""

    path: str = ""
    wait: bool = False


class Suggestions(Wire):
    suggestions: tuple[SuggestionView, ...]


class Gate(Wire):
    """Gate a suggestion, or a kernel as it stands (`path` or `path::entry`), and wait for it.

    With `since`, a kernel is timed against what it was before that history entry: the gain of a
    whole chain of changes, measured and not multiplied.
    """

    suggestion: str = ""
    kernel: str = ""
    tier: Literal["screen", "confirm", "admit"] = "confirm"
    since: int = 0


class Gated(Wire):
    verdict: VerdictView


class Diff(Wire):
    suggestion: str


class Diffed(Wire):
    files: tuple[FileDiff, ...]


class Apply(Wire):
    """Apply a suggestion that is confirmed faster for the present closure.

    `confirm` true confirms a screened one first and applies it only if it is then `faster`.
    `key` makes a repeated request harmless: the same key answers what the first one did.
    """

    suggestion: str
    confirm: bool = False
    key: str = ""


class Applied(Wire):
    entry: EntryView
    message: str


class Reject(Wire):
    suggestion: str
    reason: str


class Undo(Wire):
    """Undo history entry `entry`; 0 for the newest applied."""

    entry: int = 0


class Redo(Wire):
    """Redo history entry `entry`; 0 for the newest undone."""

    entry: int = 0


class History(Wire):
    limit: int = 100


class Entries(Wire):
    entries: tuple[EntryView, ...]


class SkillsList(Wire):
    language: str = ""


class Skills(Wire):
    skills: tuple[SkillView, ...]


class SkillsShow(Wire):
    """`skill` is a skill id or a digest prefix of at least 6 digits."""

    skill: str


class SkillShown(Wire):
    skill: SkillView
    card_json: str
    body: str
    trials_json: tuple[str, ...] = ()


class SkillsWhy(Wire):
    skill: str
    kernel: str
    """`path` or `path::entry`."""


class Why(Wire):
    why: WhyView


class Watch(Wire):
    action: Literal["pause", "resume", "rescan"]


class Shutdown(Wire):
    """`drain`: finish the running job first."""

    drain: bool = False


METHODS: dict[str, tuple[type[Wire], type[Wire]]] = {
    "hello": (Hello, HelloReply),
    "ping": (Empty, Ok),
    "status": (Empty, StatusView),
    "trust": (Trust, Ok),
    "subscribe": (Subscribe, Subscribed),
    "snapshot": (Empty, Snapshot),
    "detect": (Detect, FileView),
    "suggest": (Suggest, Suggestions),
    "gate": (Gate, Gated),
    "diff": (Diff, Diffed),
    "apply": (Apply, Applied),
    "reject": (Reject, Ok),
    "undo": (Undo, Applied),
    "redo": (Redo, Applied),
    "history": (History, Entries),
    "skills.list": (SkillsList, Skills),
    "skills.show": (SkillsShow, SkillShown),
    "skills.why": (SkillsWhy, Why),
    "watch": (Watch, Ok),
    "shutdown": (Shutdown, Ok),
}
"""Method name → (parameters, result). `hello` must come first on a connection."""


# ---- notifications ----------------------------------------------------------------------------


class FileChanged(Wire):
    """A watched file's content changed (or it vanished: `file` has no kernels and no problems)."""

    seq: int
    file: FileView
    gone: bool = False


class SuggestionsChanged(Wire):
    """The whole, ranked set for one kernel; it replaces what the client had for that kernel."""

    seq: int
    kernel: str
    suggestions: tuple[SuggestionView, ...]


class SuggestionChanged(Wire):
    """One suggestion moved to another stage or got a verdict."""

    seq: int
    suggestion: SuggestionView


class JobProgress(Wire):
    seq: int
    job: JobView


class HistoryChanged(Wire):
    seq: int
    entry: EntryView


class StatusChanged(Wire):
    seq: int
    status: StatusView


class Message(Wire):
    """One line for people."""

    seq: int
    level: Literal["info", "warning", "error"]
    text: str


class Resync(Wire):
    """The client fell behind; read `snapshot` again."""

    seq: int


class Closing(Wire):
    seq: int
    reason: str


NOTICES: dict[str, type[Wire]] = {
    "file.changed": FileChanged,
    "suggestions.changed": SuggestionsChanged,
    "suggestion.changed": SuggestionChanged,
    "job.progress": JobProgress,
    "history.changed": HistoryChanged,
    "status.changed": StatusChanged,
    "message": Message,
    "resync": Resync,
    "closing": Closing,
}
"""Notification method → its parameters."""
