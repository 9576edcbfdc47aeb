"""Facts: what is known about a target, and what would supply what is not."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Union

if TYPE_CHECKING:
    from library.target import Locus

Value = Union[bool, int, float, str, tuple["Value", ...]]
Argument = Union[Value, "Locus"]
"""What a condition passes to a fact function: a value, or the range an anchor captured."""


@dataclass(frozen=True, slots=True)
class Known:
    """A fact with its value and where it comes from."""

    value: Value
    because: str
    """Short and concrete, shown to people: `SHAPES of workload.py`, `line 12: for (k…; k < K; ++k)`."""


@dataclass(frozen=True, slots=True)
class Missing:
    """A fact nobody has established. It never counts as met, nor as unmet."""

    reason: str
    supply: str
    """What would supply it, as an instruction: `declare SHAPES in workload.py`."""


Answer = Known | Missing
