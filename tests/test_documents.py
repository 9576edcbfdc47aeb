"""What README and docs say stays true: paths exist, numbers come from results files."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
NAMED = re.compile(
    r"`((?:klineage_tui|daemon|library|gate|bench|tools|sample_kernels|tests)/[\w./<>*-]*)`"
)
CODE = re.compile(r"```.*?```|`[^`\n]*`", re.DOTALL)
LINK = re.compile(r"\]\((?!https?:|#)([^)#]+)")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_path_a_page_names_exists(page: Path) -> None:
    missing = []
    for named in NAMED.findall(page.read_text()):
        pattern = re.sub(r"(<[^>]*>|\*)+", "*", named).rstrip("/")
        if not any(ROOT.glob(pattern)):
            missing.append(named)
    assert missing == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_link_of_a_page_leads_somewhere(page: Path) -> None:
    prose = CODE.sub("", page.read_text())
    links = [link for link in LINK.findall(prose) if not (page.parent / link).exists()]
    assert links == []


def test_measured_numbers_are_rendered_from_results_files() -> None:
    done = subprocess.run(
        [sys.executable, str(ROOT / "tools" / "tables.py"), "--check"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{done.stdout}run `make tables`"


def test_every_make_target_readme_names_is_there() -> None:
    makefile = (ROOT / "Makefile").read_text()
    for target in re.findall(r"`make ([\w-]+)`", (ROOT / "README.md").read_text()):
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target
