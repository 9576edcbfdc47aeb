"""A patch on its way out: what to say of the clipboard, and a file beside nothing it could replace."""

from __future__ import annotations

from pathlib import Path

CLIPBOARD_BYTES = 74_994
"""xterm and tmux take OSC 52 up to 100,000 base64 characters; more is dropped without a word."""


def clipboard_note(patch: str) -> tuple[str, str]:
    """What happened, and its level. A terminal never says that it took the text, so neither do we."""
    size = len(patch.encode())
    if size > CLIPBOARD_BYTES:
        says = f"Patch sent to the terminal's clipboard, but {size:,} bytes may be too long; save patch writes a file."
        return says, "warning"
    lines = patch.count("\n")
    return (
        f"Patch sent to the terminal's clipboard ({lines} lines); save patch writes a file.",
        "info",
    )


def patch_name(skill: str) -> str:
    """File name offered for a skill's patch."""
    return f"{skill.replace('/', '-')}.patch"


def write_patch(path: Path, patch: str) -> str:
    """Write to a new file and say where. Raises OSError; FileExistsError rather than replace one."""
    with path.open("x", encoding="utf-8", newline="") as file:
        file.write(patch)
    return f"Wrote {path} ({patch.count(chr(10))} lines)."
