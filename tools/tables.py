"""Render results/*.json into the marked places of README and docs; with --check, only compare.

A place is written `<!-- results NAME -->` … `<!-- end -->`, where NAME is a results file's `name`
(all its devices are shown). No measured number is typed by hand.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PLACE = re.compile(r"(<!-- results (?P<name>[\w-]+) -->\n).*?(<!-- end -->)", re.DOTALL)


def render(name: str) -> str:
    """The Markdown table for one benchmark, over every device it was run on."""
    parts = []
    for path in sorted((ROOT / "results").glob(f"{name}-*.json")):
        record = json.loads(path.read_text())
        if record["name"] != name:
            continue
        limits = any(_wanted(figure) for figure in record["figures"])
        rows = ["| figure | measured | wanted |", "|---|---|---|"]
        rows = rows if limits else [row.rpartition("|")[0].rpartition("|")[0] + "|" for row in rows]
        for figure in record["figures"]:
            wanted = f" {_wanted(figure)} |" if limits else ""
            rows.append(f"| {figure['name']} | {_value(figure)} |{wanted}")
        link = f"results/{path.name}"
        note = f"{record['method'].rstrip('.')}. On {record['device']}, {record['at'][:10]}; `{record['command']}`; [{link}]({link})."
        parts.append("\n".join([*rows, "", note, ""]))
    return "\n".join(parts) if parts else "No results file yet.\n"


def _value(figure: dict[str, object]) -> str:
    samples = figure["samples"]
    count = f" (n = {len(samples)})" if isinstance(samples, list) and len(samples) > 1 else ""
    note = f"; {figure['note']}" if figure["note"] else ""
    return f"{figure['value']:.4g} {figure['unit']}{count}{note}"


def _wanted(figure: dict[str, object]) -> str:
    for key, word in (("at_most", "at most"), ("at_least", "at least")):
        if figure[key] is not None:
            mark = "" if figure["held"] else " (does not hold)"
            return f"{word} {figure[key]:g} {figure['unit']}{mark}"
    return ""


def main() -> int:
    """Rewrite the places; with --check, 1 if one is out of date."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="change nothing; 1 if out of date")
    options = parser.parse_args()
    stale = []
    for page in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]:
        text = page.read_text()
        fresh = _fill(text, page)
        if fresh != text:
            stale.append(page.relative_to(ROOT))
            if not options.check:
                page.write_text(fresh)
    for page in stale:
        print(f"{'out of date' if options.check else 'rendered'}: {page}")
    return 1 if options.check and stale else 0


def _fill(text: str, page: Path) -> str:
    """The page's text with every place rendered anew."""
    return PLACE.sub(lambda place: place[1] + _relink(render(place["name"]), page) + place[3], text)


def _relink(table: str, page: Path) -> str:
    """Links of a table, seen from the page's own folder."""
    up = "../" * (len(page.relative_to(ROOT).parts) - 1)
    return table.replace("](results/", f"]({up}results/")


if __name__ == "__main__":
    sys.exit(main())
