"""Reading one klineage.toml: every mistake in it named, with its file and key."""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import msgspec
import tomli

from daemon.configuration_tables import Table
from daemon.errors import ConfigurationError

Tables = dict[str, dict[str, Any]]
"""Table name → what a file sets in it."""


def read_layer(path: Path, tables: Mapping[str, Table], belongs: Path | None) -> Tables:
    """What the file sets, checked. A missing or empty file sets nothing.

    `belongs`: for a repository's file, the user's file, where the keys it may not set belong.
    Raises ConfigurationError.
    """
    found = _parse(path)
    for name, values in found.items():
        if name not in tables:
            raise ConfigurationError(f"{path}: no table [{name}]{_nearest(name, tables)}")
        if not isinstance(values, dict):
            raise ConfigurationError(f"{path}: {name} must be a table: write [{name}]")
        table = tables[name]
        _check_keys(path, name, values, table.kind)
        if belongs is not None:
            _check_user_only(path, name, values, table, belongs)
        _check_values(path, name, values, table.kind)
    return found


def _parse(path: Path) -> Tables:
    if not path.exists():
        return {}
    if not path.is_file():
        raise ConfigurationError(f"{path} is not a file; move it away")
    try:
        return tomli.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigurationError(f"cannot read {path}: {error.strerror}; check its mode") from error
    except UnicodeDecodeError as error:
        raise ConfigurationError(f"{path} is not UTF-8 text (byte {error.start})") from error
    except tomli.TOMLDecodeError as error:
        raise ConfigurationError(f"{path} is not TOML: {error}") from error


def _check_keys(path: Path, name: str, values: Mapping[str, Any], kind: Any) -> None:
    if not (isinstance(kind, type) and issubclass(kind, msgspec.Struct)):
        return
    fields = {field.name: field.type for field in msgspec.structs.fields(kind)}
    for key, value in values.items():
        if key not in fields:
            raise ConfigurationError(f"{path}: [{name}] has no key {key}{_nearest(key, fields)}")
        if isinstance(value, dict):
            _check_keys(path, f"{name}.{key}", value, fields[key])


def _check_user_only(
    path: Path, name: str, values: Mapping[str, Any], table: Table, belongs: Path
) -> None:
    for key in values:
        if table.forbids_repository(key):
            raise ConfigurationError(
                f"{path}: [{name}] {key} may not be set by a repository, since it decides what "
                f"runs on your machine or in your name; it belongs in {belongs}"
            )


def _check_values(path: Path, name: str, values: Mapping[str, Any], kind: Any) -> None:
    try:
        msgspec.convert(values, kind)
    except msgspec.ValidationError as error:
        what, _, where = str(error).partition(" - at ")
        key = re.sub(r"^`\$\.?|`$", "", where)
        raise ConfigurationError(f"{path}: [{name}] {key}: {what[0].lower()}{what[1:]}") from error


def _nearest(word: str, valid: Collection[str]) -> str:
    close = difflib.get_close_matches(word, valid, n=1)
    return f"; did you mean {close[0]}?" if close else f"; there are {', '.join(sorted(valid))}"
