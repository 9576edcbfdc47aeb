"""Our two themes: calm surfaces, and one hue for each meaning."""

from __future__ import annotations

from textual.theme import Theme

DARK = Theme(
    name="klineage-dark",
    dark=True,
    primary="#7aa2d6",
    secondary="#8fa8b8",
    accent="#d6a15e",
    foreground="#d3d7de",
    background="#14171c",
    surface="#181c22",
    panel="#232932",
    success="#86c07f",
    warning="#d9b45b",
    error="#e0787a",
    variables={"border-blurred": "#333b47", "border": "#7aa2d6"},
)

LIGHT = Theme(
    name="klineage-light",
    dark=False,
    primary="#2a5f9e",
    secondary="#4f6475",
    accent="#9a5b12",
    foreground="#22272e",
    background="#f6f5f2",
    surface="#fbfaf8",
    panel="#e8e6e0",
    success="#2c7a35",
    warning="#8a6200",
    error="#b3292e",
    variables={"border-blurred": "#c9c6bd", "border": "#2a5f9e"},
)

THEMES = (DARK, LIGHT)
