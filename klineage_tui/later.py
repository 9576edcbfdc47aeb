"""Screens that are imported when they are first opened, so that the first picture does not wait for them."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from textual.screen import Screen

    from klineage_tui.actions import Scope
    from klineage_tui.commands import Actions


def evidence_screen() -> Screen[None]:
    from klineage_tui.screens.evidence import EvidenceScreen

    return EvidenceScreen()


def history_screen() -> Screen[None]:
    from klineage_tui.screens.history import HistoryScreen

    return HistoryScreen()


def daemon_screen() -> Screen[None]:
    from klineage_tui.screens.daemon import DaemonScreen

    return DaemonScreen()


def help_screen(scope: Scope, overrides: dict[str, str]) -> Screen[None]:
    from klineage_tui.screens.help import HelpScreen

    return HelpScreen(scope, overrides)


def commands() -> type[Actions]:
    """The provider of the palette."""
    from klineage_tui.commands import Actions

    return Actions
