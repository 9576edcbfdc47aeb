"""klineage init: write a commented klineage.toml into the worktree."""

from __future__ import annotations

import argparse

from daemon.configuration import commented_default
from daemon.errors import ConfigurationError
from daemon.verbs.connection import root_of
from daemon.verbs.failure import DONE
from daemon.verbs.output import print_json


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Whether to print instead of writing."""
    parser.add_argument("--print", action="store_true", help="print it, write nothing")


def run(options: argparse.Namespace) -> int:
    """Write the file; refuses to overwrite one."""
    text = commented_default()
    if options.print:
        if options.json:
            print_json({"text": text})
        else:
            print(text, end="")
        return DONE
    path = root_of(options) / "klineage.toml"
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError as error:
        raise ConfigurationError(f"{path} is there already; --print shows the defaults") from error
    except OSError as error:
        raise ConfigurationError(f"cannot write {path}: {error.strerror}") from error
    if options.json:
        print_json({"written": str(path)})
    else:
        print(f"wrote {path}; every line is a comment until you change it")
    return DONE
