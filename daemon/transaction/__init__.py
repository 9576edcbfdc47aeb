"""Apply, undo and redo: several files changed as one, or none.

`ChangeLog` is what others use. `target` decides whether a file may be replaced, `rewrite` replaces
several at once, `disk` holds the system calls, `store` the journal's rows, `recovery` settles what
a killed daemon left behind.
"""

from daemon.transaction.change import Change, ChangeMeta, Kind
from daemon.transaction.change_log import ChangeLog

__all__ = ["Change", "ChangeLog", "ChangeMeta", "Kind"]
