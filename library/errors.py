"""Errors of the library.

LibraryError
├── CardError        a skill file is malformed; names file and field
├── ConditionError   a condition does not parse; names the offending text
└── SourceError      a source file cannot be analysed at all (too large, not text)
"""

from __future__ import annotations


class LibraryError(Exception):
    """Our data or our code is at fault. A kernel that merely has a syntax error is not one."""


class CardError(LibraryError):
    """A skill file is malformed."""


class ConditionError(LibraryError):
    """A condition does not parse or names an unknown fact function."""


class SourceError(LibraryError):
    """A source file cannot be analysed: binary, too large, or not decodable."""
