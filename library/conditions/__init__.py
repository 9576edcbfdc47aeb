"""Conditions: when a skill is sound, as expressions over facts. docs/conditions.md is the manual.

`parse` reads an expression once; `judge` decides it on a target as met, unmet or unknown, with the
facts that decided it.
"""

from library.conditions.evaluate import FactUsed, Judgement, Truth, judge
from library.conditions.expression import Condition, parse
from library.conditions.facts import Facts, TargetFacts

__all__ = ["Condition", "FactUsed", "Facts", "Judgement", "TargetFacts", "Truth", "judge", "parse"]
