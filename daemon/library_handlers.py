"""What the daemon answers about the library: its skills, and why one is or is not offered."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress

import msgspec

from daemon.connection import Handler
from daemon.errors import NotFound, Unavailable
from daemon.loop.board import KernelState
from daemon.loop.devices import Devices
from daemon.loop.settling import Settling
from daemon.loop.views import condition_view, skill_view
from daemon.protocol import (
    Skills,
    SkillShown,
    SkillsList,
    SkillsShow,
    SkillsWhy,
    Why,
    WhyView,
)
from library.detect import target_for
from library.errors import LibraryError
from library.retrieval import explain
from library.store import Entry, Store

FindKernels = Callable[[str], Awaitable[tuple[KernelState, ...]]]
"""The kernels of `path` or `path::entry`, looked at now. Raises NotFound."""


class LibraryHandlers:
    """One method each; they only translate between the protocol and the library."""

    def __init__(
        self, store: Store, devices: Devices, settling: Settling, kernels: FindKernels
    ) -> None:
        self._store = store
        self._devices = devices
        self._settling = settling
        self._kernels = kernels

    def by_method(self) -> Mapping[str, Handler]:
        """Method → handler."""
        return {
            "skills.list": self.skills_list,
            "skills.show": self.skills_show,
            "skills.why": self.skills_why,
        }

    async def skills_list(self, request: SkillsList) -> Skills:
        """Every card in force."""
        entries = self._store.load().entries
        wanted = [
            entry
            for entry in entries
            if not request.language or request.language in entry.card.scope.languages
        ]
        return Skills(tuple(skill_view(entry) for entry in wanted))

    async def skills_show(self, request: SkillsShow) -> SkillShown:
        """One card, whole, with its trials."""
        entry = self._entry(request.skill)
        return SkillShown(
            skill=skill_view(entry),
            card_json=msgspec.json.encode(entry.card).decode(),
            body=entry.body(),
            trials_json=tuple(msgspec.json.encode(t).decode() for t in entry.evidence.trials),
        )

    async def skills_why(self, request: SkillsWhy) -> Why:
        """Presence or absence, line by line."""
        entry = self._entry(request.skill)
        state = (await self._kernels(request.kernel))[0]
        with suppress(Unavailable):  # then the lines say that no device has been asked
            await self._devices.of(state.kernel.language)
        target = target_for(
            state.kernel,
            state.workload,
            self._devices.platforms.get(state.kernel.language),
            self._settling.traces_of(state),
        )
        explanation = explain(entry, target)
        return Why(
            WhyView(
                skill=entry.card.skill_id,
                kernel=state.id,
                answer=explanation.answer.value,
                lines=explanation.lines,
                conditions=tuple(condition_view(result) for result in explanation.conditions),
            )
        )

    def _entry(self, skill: str) -> Entry:
        try:
            return self._store.find(skill)
        except LibraryError as error:
            raise NotFound(str(error)) from error
