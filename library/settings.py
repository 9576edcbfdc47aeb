"""LibrarySettings: the `[library]` table of klineage.toml. docs/configuration.md shows it whole."""

from __future__ import annotations

import msgspec


class LibrarySettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which skills are offered, and where your own are kept."""

    disabled: tuple[str, ...] = ()
    """Skills that are never offered, as skill ids or patterns: `opencl.native-*`."""
    user_skills: str = ""
    """Folder of your own skills and of the evidence made here. Empty:
    `$XDG_DATA_HOME/klineage/skills`."""


USER_ONLY = ("user_skills",)
"""Fields only the user's own configuration may set, never a repository's."""
