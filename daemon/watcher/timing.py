"""How long the watcher waits for what, and when hints are due. Seconds of a monotonic clock."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Timing:
    """Waiting times, all in seconds. The defaults are for people at an editor."""

    quiet_s: float = 0.1
    """A burst of events has ended when none came for this long."""
    cap_s: float = 1.0
    """A burst that never ends is looked at this often all the same."""
    missing_s: float = 0.3
    """A file is gone when it has been missing for this long; editors rename and rewrite."""
    rescan_s: float = 60.0
    """The whole tree is compared this often, for events the system lost."""
    git_quiet_s: float = 0.2
    """After git released its lock: a rebase takes the next lock well within this time."""
    git_patience_s: float = 2.0
    """A held lock is disregarded when nothing in the tree changed for this long: `git commit -a`
    holds it while its editor is open, and a killed git leaves it behind."""
    git_cap_s: float = 30.0
    """A tree that git rewrites for longer is looked at all the same."""
    git_check_s: float = 0.05
    """How often a held lock is looked at."""

    def due_at(self, first_at: float, last_at: float) -> float:
        """When a burst whose events came from `first_at` to `last_at` should be looked at."""
        return min(last_at + self.quiet_s, first_at + self.cap_s)

    def poll_pause_s(self, interval_s: float, scan_s: float) -> float:
        """Pause between two polls: at least 20 times what one costs, so polling stays under 5 %."""
        return max(interval_s, 20 * scan_s)
