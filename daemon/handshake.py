"""The first exchange of a connection: do both sides speak one protocol, and do they differ?"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import msgspec

from daemon.errors import VersionMismatch
from daemon.protocol import PROTOCOL, Hello, HelloReply
from daemon.rpc import read_params
from daemon.version import VERSION


class _Introduction(msgspec.Struct, frozen=True):
    # Read before Hello and without its strictness: another major version may have other fields.
    protocol: int
    version: str = "unknown"


def hello(client: str, folder: Path) -> Hello:
    """What this process says of itself.

    `client` names the program, `folder` the worktree it means: where a person named one, that one
    and not the folder they happen to be in.
    """
    return Hello(
        protocol=PROTOCOL,
        client=client,
        version=VERSION,
        interpreter=sys.executable,
        cwd=str(folder),
    )


def read_hello(raw: msgspec.Raw) -> Hello:
    """The client's introduction. Raises VersionMismatch, or RpcError for one that is malformed."""
    introduction = read_params(raw, _Introduction)
    if introduction.protocol != PROTOCOL:
        raise VersionMismatch(
            f"this client (version {introduction.version}) speaks protocol "
            f"{introduction.protocol}, the running daemon (version {VERSION}) protocol {PROTOCOL}; "
            "run `klineage daemon stop`, then try again",
            {"client": introduction.protocol, "daemon": PROTOCOL},
        )
    return read_params(raw, Hello)


def reply(
    said: Hello, root: Path, *, trusted: bool, seq: int, warnings: tuple[str, ...] = ()
) -> HelloReply:
    """What a daemon answers: who it is, with what differs between the two in front."""
    return HelloReply(
        protocol=PROTOCOL,
        version=VERSION,
        pid=os.getpid(),
        root=str(root),
        interpreter=sys.executable,
        cwd=str(Path.cwd()),
        trusted=trusted,
        seq=seq,
        warnings=(*differences(said, root, sys.executable, VERSION), *warnings),
    )


def differences(said: Hello, root: Path, interpreter: str, version: str) -> tuple[str, ...]:
    """What a person should know before trusting an answer: one line each."""
    found = []
    if said.version != version:
        found.append(
            f"the daemon is version {version}, this client {said.version}; "
            "`klineage daemon stop` lets the next command start the new one"
        )
    if not _same_interpreter(said.interpreter, interpreter):
        found.append(f"the daemon runs under {interpreter}, this client under {said.interpreter}")
    if not Path(said.cwd).is_relative_to(root):
        found.append(f"the daemon serves {root}, you mean {said.cwd}")
    return tuple(found)


def _same_interpreter(one: str, other: str) -> bool:
    # `python` and `python3` of one environment are one interpreter; two environments made from
    # one installation have the same real path, and are not.
    return Path(one).parent == Path(other).parent and os.path.realpath(one) == os.path.realpath(
        other
    )
