"""klineage.toml: layers, mistakes, and the commented default."""

from __future__ import annotations

import itertools
import os
import re
from dataclasses import replace
from pathlib import Path

import pytest
import tomli

from daemon.configuration import ConfigurationError, commented_default, load_configuration
from daemon.worktree import repository_configuration_path, user_configuration_path

DOCS = Path(__file__).parents[2] / "docs" / "configuration.md"


def write_repository(root: Path, text: str) -> Path:
    path = repository_configuration_path(root)
    path.write_text(text)
    return path


def write_user(text: str) -> Path:
    path = user_configuration_path()
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def uncommented(text: str) -> str:
    """Every `#key = default` line taken for a setting."""
    return re.sub(r"^#(?=\w+ = )", "", text, flags=re.MULTILINE)


def refused(root: Path) -> str:
    with pytest.raises(ConfigurationError) as raised:
        load_configuration(root)
    return raised.value.message


def test_no_file_gives_the_defaults(place: Path) -> None:
    found = load_configuration(place)
    assert found.watch.include == ("**/*.cl", "**/*.py")
    assert found.daemon.idle_exit_min == 30
    assert found.files == ()


def test_an_empty_file_gives_the_defaults(place: Path) -> None:
    defaults = load_configuration(place)
    path = write_repository(place, "")
    found = load_configuration(place)
    assert found.files == (path,)
    assert (found.watch, found.gate) == (defaults.watch, defaults.gate)


def test_the_users_file_is_over_the_repositorys_key_by_key(place: Path) -> None:
    repository = write_repository(
        place,
        '[watch]\npoll = true\ninclude = ["k/*.cl"]\n[gate.screen]\nblocks = 8\nlimit_s = 9',
    )
    user = write_user("[watch]\npoll = false\n[gate.screen]\nblocks = 12")
    found = load_configuration(place)
    assert found.watch.poll is False
    assert found.watch.include == ("k/*.cl",)
    assert (found.gate.screen.blocks, found.gate.screen.limit_s) == (12, 9.0)
    assert found.files == (repository, user)


def test_the_user_may_set_what_runs_programs(place: Path) -> None:
    write_user(
        '[gate]\npython = "/opt/torch/bin/python"\nenvironment = { CUDA_HOME = "/usr/local/cuda" }\n'
        '[rewriter]\nkind = "command"\ncommand = ["agent", "--print"]\n[budget]\nusd = 3\n'
        '[keys]\naccept = "A"\n'
    )
    found = load_configuration(place)
    assert found.gate.python == "/opt/torch/bin/python"
    assert found.rewriter.command == ("agent", "--print")
    assert found.budget.usd == 3.0
    assert found.keys == {"accept": "A"}


@pytest.mark.parametrize(
    ("table", "key", "value"),
    [
        ("gate", "python", '"/tmp/evil"'),
        ("gate", "environment", '{ LD_PRELOAD = "evil.so" }'),
        ("gate", "devices", '{ opencl = "pocl" }'),
        ("library", "user_skills", '"skills"'),
        ("rewriter", "command", '["sh"]'),
        ("rewriter", "endpoint", '"http://evil"'),
        ("budget", "usd", "1e9"),
        ("keys", "accept", '"j"'),
    ],
)
def test_a_repository_may_not_set_what_is_the_users(
    place: Path, table: str, key: str, value: str
) -> None:
    path = write_repository(place, f"[{table}]\n{key} = {value}")
    message = refused(place)
    assert message.startswith(f"{path}: [{table}] {key} may not be set by a repository")
    assert message.endswith(f"it belongs in {user_configuration_path()}")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[watch]\npol = true", "[watch] has no key pol; did you mean poll?"),
        ("[wacth]\npoll = true", "no table [wacth]; did you mean watch?"),
        ("[gate.screen]\nblock = 3", "[gate.screen] has no key block; did you mean blocks?"),
        ("watch = 3", "watch must be a table: write [watch]"),
        ("[watch]\npoll = 3", "[watch] poll: expected `bool | str`, got `int`"),
        ("[gate.screen]\nblocks = 'x'", "[gate] screen.blocks: expected `int`, got `str`"),
        ("[gate]\nscreen = 3", "[gate] screen: expected `object`, got `int`"),
        ("[daemon]\nidle_exit_min = 0", "[daemon] idle_exit_min: expected `float` > 0.0"),
        ("[watch\n", "is not TOML: "),
    ],
)
def test_a_mistake_names_the_file_and_the_key(place: Path, text: str, expected: str) -> None:
    path = write_repository(place, text)
    message = refused(place)
    assert message.startswith(str(path))
    assert expected in message


def test_a_word_like_no_other_lists_what_there_is(place: Path) -> None:
    write_repository(place, "[zzz]")
    assert "no table [zzz]; there are budget, daemon, gate," in refused(place)


def test_a_mistake_in_the_users_file_names_that_file(place: Path) -> None:
    path = write_user("[budget]\nusd = -1")
    assert refused(place).startswith(f"{path}: [budget] usd: ")


def test_a_file_that_is_not_text_is_refused(place: Path) -> None:
    repository_configuration_path(place).write_bytes(b"[watch]\n# \xff")
    assert "is not UTF-8 text (byte 10)" in refused(place)


def test_a_pipe_in_place_of_the_file_is_refused_and_not_read(place: Path) -> None:
    os.mkfifo(repository_configuration_path(place))
    assert "is not a file" in refused(place)


@pytest.mark.parametrize("user", [False, True])
def test_the_commented_default_sets_nothing_and_shows_every_default(
    place: Path, user: bool
) -> None:
    text = commented_default(user=user)
    defaults = load_configuration(place)
    path = write_user("") if user else write_repository(place, "")
    for written in (text, uncommented(text)):
        path.write_text(written)
        assert replace(load_configuration(place), files=()) == defaults


def test_the_users_commented_default_shows_every_key() -> None:
    shown = tomli.loads(uncommented(commented_default(user=True)))
    assert set(shown["gate"]) >= {"python", "devices", "environment", "screen", "confirm"}
    assert set(shown["rewriter"]) >= {"kind", "endpoint", "command"}
    assert set(shown["budget"]) == {"usd", "tokens", "device_s"}


def test_every_setting_has_a_sentence() -> None:
    lines = commented_default(user=True).splitlines()
    for before, line in itertools.pairwise(lines):
        if re.match(r"#\w+ = ", line):
            assert before.startswith("# "), line


def test_the_page_about_configuration_shows_the_present_defaults() -> None:
    shown = DOCS.read_text(encoding="utf-8")
    assert commented_default(user=True) in shown, "run tools/configuration_page.py"
