"""Put the present settings and their defaults into docs/configuration.md.

    python tools/configuration_page.py

A test compares the page with the settings; run this when it fails.
"""

from __future__ import annotations

import re
from pathlib import Path

from daemon.configuration import commented_default

PAGE = Path(__file__).parents[1] / "docs" / "configuration.md"


def main() -> None:
    """Replace the page's block of TOML."""
    page = PAGE.read_text(encoding="utf-8")
    block = f"```toml\n{commented_default(user=True)}```"
    PAGE.write_text(re.sub(r"```toml\n.*?```", lambda _: block, page, flags=re.S), encoding="utf-8")


if __name__ == "__main__":
    main()
