"""Devices: what each language's kernels run on, asked once."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Awaitable, Callable

from daemon.errors import Unavailable
from daemon.loop.board import Basis
from daemon.loop.gate_queue import GateQueue, Priority, Superseded
from daemon.loop.publishing import Publisher
from gate.errors import EnvironmentLacks, GateError
from gate.evaluate import Gate
from gate.values.kernel import Language
from gate.values.platform import Platform

log = logging.getLogger(__name__)

Learned = Callable[[Language], Awaitable[None]]
"""Called when it is known what a language's device is, or that there is none."""


class Devices:
    """Platforms by language. Asking runs nothing of the repository, so it needs no trust."""

    def __init__(
        self,
        gate: Gate,
        queue: GateQueue,
        publisher: Publisher,
        tasks: asyncio.TaskGroup,
        learned: Learned,
    ) -> None:
        self._gate = gate
        self._queue = queue
        self._publisher = publisher
        self._tasks = tasks
        self._learned = learned
        self._asking: dict[Language, asyncio.Task[None]] = {}
        self.platforms: dict[Language, Platform] = {}
        self.lacking: dict[Language, str] = {}
        """Languages no device could be asked for, with what would fix it."""

    def ask(self, language: Language) -> asyncio.Task[None]:
        """Ask the language's device what it is, unless it was asked. Shield it to wait for it."""
        if language not in self._asking:
            name = f"asking for {language}"
            self._asking[language] = self._tasks.create_task(self._ask(language), name=name)
        return self._asking[language]

    async def of(self, language: Language) -> Platform:
        """The device that kernels of a language run on. Raises Unavailable if there is none."""
        await asyncio.shield(self.ask(language))
        if language not in self.platforms:
            raise Unavailable(self.lacking.get(language, "the daemon is closing"))
        return self.platforms[language]

    def ask_again(self) -> None:
        """Ask for those that lacked something: it may have been installed since."""
        lacking = list(self.lacking)
        self.lacking.clear()
        for language in lacking:
            del self._asking[language]
            self.ask(language)

    def close(self) -> None:
        """Stop asking."""
        for task in self._asking.values():
            task.cancel()

    async def _ask(self, language: Language) -> None:
        def work(stop: threading.Event, step: Callable[[str], None]) -> Platform:
            step(f"asking the {language} device what it is")
            return self._gate.platform(language)

        job = self._queue.submit(language.value, Basis(""), "probe", Priority.TRACE, work)
        try:
            self.platforms[language] = await asyncio.shield(job.done)
        except Superseded:
            return
        except EnvironmentLacks as error:
            self._lacks(language, "warning", str(error))
        except GateError as error:
            self._lacks(language, "error", str(error))
        except Exception as error:
            # A fault of ours in one language must not end the daemon for the others.
            log.exception("asking the %s device failed", language)
            self._lacks(language, "error", f"{error!r}; the daemon's log has more")
        await self._learned(language)

    def _lacks(self, language: Language, level: str, why: str) -> None:
        self.lacking[language] = why
        self._publisher.message(level, f"{language} kernels are shown, not gated: {why}")
