"""Facts a condition may ask for: what every target has, and then what its language can say."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Protocol

from gate.values.workload import Axes
from library.fact import Answer, Argument, Known, Missing
from library.target import Feature, Locus, Presence, Target

if TYPE_CHECKING:
    from library.conditions.evaluate import Judgement

ASK_DEVICE = "run `klineage doctor`, or gate any kernel once, so that the device is asked"


class Facts(Protocol):
    """Where conditions get their facts from."""

    @property
    def shapes(self) -> tuple[Axes, ...]:
        """Declared shapes; a condition must hold at each."""
        ...

    def name(self, name: str, axes: Axes | None) -> Answer:
        """The value of a bare name at a shape."""
        ...

    def call(self, function: str, arguments: tuple[Argument, ...], axes: Axes | None) -> Answer:
        """The value of a fact function at a shape."""
        ...


class TargetFacts:
    """Facts of a target: `language`, `capability`, `platform_is`, `has`, `absent`; else its analysis.

    Remembers every answer, since cards of one library ask much the same: keep one for a retrieval.
    """

    def __init__(self, target: Target) -> None:
        self._target = target
        self._calls: dict[Hashable, Answer] = {}
        self.judgements: dict[Hashable, Judgement] = {}
        """What conditions came to, by their text and the captures they name."""

    @property
    def shapes(self) -> tuple[Axes, ...]:
        """Shapes the workload declares."""
        return self._target.analysis.shapes

    def name(self, name: str, axes: Axes | None) -> Answer:
        """`language`, or what the analysis knows the name as."""
        if name == "language":
            return Known(self._target.kernel.language.value, self._target.kernel.path)
        return self._target.analysis.name(name, axes)

    def call(self, function: str, arguments: tuple[Argument, ...], axes: Axes | None) -> Answer:
        """A built-in fact, or what the analysis answers."""
        # 1, 1.0 and True are equal keys but different arguments.
        kinds = tuple(map(type, arguments))
        key = (function, arguments, kinds, tuple(axes.items()) if axes is not None else None)
        answer = self._calls.get(key)
        if answer is None:
            answer = self._calls[key] = self._call(function, arguments, axes)
        return answer

    def _call(self, function: str, arguments: tuple[Argument, ...], axes: Axes | None) -> Answer:
        match function, arguments:
            case "capability", (str(name),):
                return self._capability(name)
            case "platform_is", (str(pattern),):
                return self._platform_is(pattern)
            case "has", (str(feature), *where):
                return presence(self._target.analysis.features, feature, where, Presence.PRESENT)
            case "absent", (str(feature), *where):
                return presence(self._target.analysis.features, feature, where, Presence.ABSENT)
        return self._target.analysis.call(function, arguments, axes)

    def _capability(self, name: str) -> Answer:
        platform = self._target.platform
        if platform is None:
            return Missing("no device has been asked yet", ASK_DEVICE)
        if name not in platform.capabilities:
            return Missing(f"{platform.name} does not report {name}", ASK_DEVICE)
        return Known(platform.capabilities[name], f"queried from {platform.device}")

    def _platform_is(self, pattern: str) -> Answer:
        platform = self._target.platform
        if platform is None:
            return Missing("no device has been asked yet", ASK_DEVICE)
        return Known(fnmatchcase(platform.name, pattern), f"the platform is {platform.name}")


def presence(
    features: Sequence[Feature], feature: str, where: Sequence[Argument], wanted: Presence
) -> Answer:
    """Whether a feature is `wanted` (present or absent), in the ranges `where` if any are given.

    Present anywhere counts as present; a row that is unknown makes the answer missing unless
    another row shows the feature.
    """
    rows = [row for row in features if row.id == feature]
    if not rows:
        return Missing(
            f"{feature} is not looked for in this language", "judge it from the compiled artifact"
        )
    loci = [place for place in where if isinstance(place, Locus)]
    shown = [row for row in rows if row.presence is Presence.PRESENT and _within(row, loci)]
    if shown:
        line = f"line {shown[0].locus.line}" if shown[0].locus else shown[0].layer.value
        return Known(wanted is Presence.PRESENT, f"{feature} {shown[0].name} at {line}")
    unknown = [row for row in rows if row.presence is Presence.UNKNOWN]
    if unknown:
        detail = unknown[0].detail or "the source does not show it"
        return Missing(
            f"{feature} {unknown[0].name}: {detail}",
            "gate this kernel once, so that the compiler's output is seen",
        )
    return Known(wanted is Presence.ABSENT, f"{feature} {rows[0].name} was not found")


def _within(row: Feature, loci: Sequence[Locus]) -> bool:
    """A feature without a place of its own holds for the whole kernel, hence everywhere in it."""
    if not loci or row.locus is None:
        return True
    place = row.locus
    return any(
        place.path == locus.path and place.start < locus.end and locus.start < place.end
        for locus in loci
    )
