"""Mechanical transforms: named functions that return byte-range edits.

A transform only edits. Whether it may is decided by the card's checks over facts; a transform
that meets source it cannot edit returns a Refusal saying what it met.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from library.edits import ByteEdit, Refusal
from library.target import Captures, Target

Parameters = Mapping[str, int | str | bool]
Transform = Callable[[Target, Captures, Parameters], tuple[ByteEdit, ...] | Refusal]
"""(target, the anchor match to act on, the card's parameters) → edits, or why not."""
