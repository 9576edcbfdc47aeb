"""Who is at the other end of a Unix socket."""

from __future__ import annotations

import os
import socket
import struct
import sys


def is_other_user(connected: socket.socket, owner: int | None = None) -> bool:
    """Whether the process at the other end runs under another user than `owner` (None: ours).

    False where the system does not say; there the folder's mode alone keeps others out.
    """
    return peer_uid(connected) not in (None, os.getuid() if owner is None else owner)


def peer_uid(connected: socket.socket) -> int | None:
    """User id of the process at the other end; None where the system does not say."""
    if sys.platform != "linux":
        return None
    # struct ucred of unix(7): pid, uid, gid.
    size = struct.calcsize("3i")
    credentials = connected.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, size)
    uid: int = struct.unpack("3i", credentials)[1]
    return uid
