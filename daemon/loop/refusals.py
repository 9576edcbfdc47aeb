"""The gate's failures as what a client is told: our machine or the environment, never the kernel."""

from __future__ import annotations

from daemon.errors import RpcError, Stale, Unavailable
from daemon.protocol import INVALID_PARAMS
from gate.errors import Cancelled, EnvironmentLacks, GateError, StaleCandidate, WorkloadError


class GateFailed(RpcError):
    """The gate could not judge; says why in one line."""


class WorkloadUnusable(RpcError):
    """The workload file cannot be loaded or called; names file and symbol."""

    code = INVALID_PARAMS


def refusal(error: GateError) -> RpcError:
    """What a client is told of a failure of the gate."""
    kinds: tuple[tuple[type[GateError], type[RpcError]], ...] = (
        (EnvironmentLacks, Unavailable),
        (WorkloadError, WorkloadUnusable),
        (StaleCandidate, Stale),
        (Cancelled, Stale),
    )
    told = next((kind for gates, kind in kinds if isinstance(error, gates)), GateFailed)
    return told(str(error))
