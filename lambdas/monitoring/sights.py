"""What is looked at: each thing by itself, so that one that can't be seen hides no other."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import attrs

from lambdas.shared.errors import LakeferryError
from lambdas.shared.log import Log


@attrs.frozen
class Sight:
    """`look` gives the metric's value for one thing. Raises LakeferryError where it can't be seen."""

    metric: str
    of: str
    look: Callable[[], float]


@attrs.frozen
class Seen:
    """`values` by metric and thing; `unseen` are the metrics of which at least one thing could not be seen."""

    values: dict[tuple[str, str], float]
    unseen: dict[str, list[str]]

    def all_of(self, metric: str) -> list[float]:
        return [value for (name, _), value in self.values.items() if name == metric]

    @property
    def metrics(self) -> list[str]:
        """Those that were looked at, measured or not."""
        return sorted({metric for metric, _ in self.values} | set(self.unseen))


def look_at(sights: Iterable[Sight], log: Log) -> Seen:
    seen = Seen({}, {})
    for sight in sights:
        told = log.bind(metric=sight.metric, of=sight.of)
        try:
            value = round(max(0.0, sight.look()), 3)
        except LakeferryError as error:
            told.error("not seen", code=error.row.code, reason=str(error))
            seen.unseen.setdefault(sight.metric, []).append(sight.of)
        except Exception:  # a mistake of ours in one place must not end the watch of all others
            told.error("not seen", trace=True)
            seen.unseen.setdefault(sight.metric, []).append(sight.of)
        else:
            seen.values[sight.metric, sight.of] = value
            told.info("seen", value=value)
    return seen
