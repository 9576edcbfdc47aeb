"""Candidate: a kernel produced by materializing one skill on one target."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from gate.values.kernel import Kernel, SourceFile


@dataclass(frozen=True, slots=True)
class FileEdit:
    """The new bytes of one file, and the digest of the bytes they replace."""

    path: str
    before_digest: str
    """SHA-256 of the whole file the edit was made from."""
    after: bytes


@dataclass(frozen=True, slots=True)
class Candidate:
    """Edits over one or more files that together apply one skill at one locus."""

    skill: str
    """Digest of the card that was materialized; empty for a kernel gated as it stands."""
    edits: tuple[FileEdit, ...]

    @property
    def digest(self) -> str:
        """SHA-256 over the edited paths and bytes: the same change has the same digest."""
        sha = hashlib.sha256()
        for edit in sorted(self.edits, key=lambda edit: edit.path):
            sha.update(f"{edit.path}\0{edit.before_digest}\0".encode())
            sha.update(hashlib.sha256(edit.after).digest())
        return sha.hexdigest()

    def files_over(self, kernel: Kernel) -> tuple[SourceFile, ...]:
        """The kernel's closure files with this candidate's edits laid over them."""
        after = {edit.path: edit.after for edit in self.edits}
        kept = tuple(SourceFile(f.path, after.pop(f.path, f.data)) for f in kernel.files)
        return kept + tuple(SourceFile(path, data) for path, data in after.items())
