"""Retrieval: which skills apply to a target, in what order, and why or why not.

Hard filters and conditions decide (`consider.py`); ranking only orders what they left
(`ranking.py`). Nothing here edits or measures.
"""

from library.retrieval.explain import Explanation, explain
from library.retrieval.offer import Answer, ConditionResult, Offer, Reason, Retrieval
from library.retrieval.retrieve import retrieve

__all__ = [
    "Answer",
    "ConditionResult",
    "Explanation",
    "Offer",
    "Reason",
    "Retrieval",
    "explain",
    "retrieve",
]
