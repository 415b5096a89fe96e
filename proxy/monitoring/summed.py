"""The metrics of several processes as those of one server.

What counts is added up. Of what describes the ledger, the word of the process that has read most of
it holds; it can be written if every process can write it.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Final, TypeAlias

from prometheus_client import Metric
from prometheus_client.samples import Sample

COUNTED: Final = frozenset({"counter", "histogram"})
ADDED: Final = frozenset({"tacit_purchases_in_flight"})  # gauges of what each process does
LEAST: Final = frozenset({"tacit_ledger_writable"})
ENTRIES: Final = "tacit_ledger_entries"
CREATED: Final = "_created"  # of a series that was begun in several processes, the first

Series: TypeAlias = tuple[str, tuple[tuple[str, str], ...]]


def summed(present: Sequence[Iterable[Metric]], past: Iterable[Metric] = ()) -> list[Metric]:
    """The metrics of a server.

    Parameters
    ----------
    present : sequence of iterable of Metric
        Of each of its processes.
    past : iterable of Metric
        What processes had counted that are no more.
    """
    in_order = sorted(map(list, present), key=_n_entries)  # the last has read most
    return [*counted([*in_order, past]), *_described(in_order)]


def counted(parts: Iterable[Iterable[Metric]]) -> list[Metric]:
    """Counters and histograms, added up."""
    return _merged([[one for one in part if one.type in COUNTED] for part in parts], _added)


def _described(in_order: Sequence[Iterable[Metric]]) -> list[Metric]:
    gauges = [[one for one in part if one.type not in COUNTED] for part in in_order]
    return _merged(gauges, _latest)


def _merged(
    parts: Iterable[Iterable[Metric]], choose: Callable[[str, float, float], float]
) -> list[Metric]:
    """One metric for each name, with a value for each series that any part has."""
    found: dict[str, tuple[Metric, dict[Series, float]]] = {}
    for part in parts:
        for metric in part:
            _, values = found.setdefault(metric.name, (metric, {}))
            for sample in metric.samples:
                series = sample.name, tuple(sorted(sample.labels.items()))
                before = values.get(series)
                values[series] = (
                    sample.value if before is None else choose(sample.name, before, sample.value)
                )
    return [_metric(metric, values) for metric, values in found.values()]


def _metric(like: Metric, values: dict[Series, float]) -> Metric:
    metric = Metric(like.name, like.documentation, like.type)
    metric.samples = [Sample(name, dict(labels), value) for (name, labels), value in values.items()]
    return metric


def _added(name: str, before: float, value: float) -> float:
    return min(before, value) if name.endswith(CREATED) else before + value


def _latest(name: str, before: float, value: float) -> float:
    if name in ADDED:
        return before + value
    return min(before, value) if name in LEAST else value


def _n_entries(part: Iterable[Metric]) -> float:
    """How much of the ledger a process has read."""
    return max(
        (sample.value for one in part if one.name == ENTRIES for sample in one.samples), default=0.0
    )
