"""Prometheus metrics of one process, and of several as those of one server.

Times by bucket: how precisely the process reports how long anything took.

The time that a measurement takes depends on the data that it counts. Logs and metrics therefore
report a time as the upper edge of its bucket, never the time itself.

Prometheus metrics, in a registry of their own: counts, budgets, and times by bucket.

A label's value is one of a list that is fixed when the process starts: stages, kinds of answer,
methods of the protocols, codes of refusals, tables of the configuration. Any other value counts as
"other", so that no client can add a text, or a million series, to the metrics.

The time of a measurement depends on data. So a time is recorded by its bucket and nothing finer:
what is added to a histogram's sum is the bucket's upper edge.

What counts is added up. Of what describes the ledger, the word of the process that has read most of
it holds; it can be written if every process can write it.
"""

import time
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from typing import Final, TypeAlias

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, Metric
from prometheus_client.samples import Sample

from accountant.ledger.history import Renewal
from cube.refusals import NotAuthenticated, Refused
from proxy.api import BudgetStatus
from proxy.monitoring.events import (
    CANCELLED_CODE,
    INTERNAL_CODE,
    NO_METHOD_CODE,
    OK_CODE,
    POSTGRES_MESSAGES,
    POSTGRES_METHOD,
    AnswerKind,
    Stage,
)
from proxy.protocol import flight_pb2, tacit_pb2

# Upper edges in seconds. Up to two seconds each is at most twice the one before, which bounds the
# error of a quantile.
BUCKETS: Final = (
    *(0.0005, 0.001, 0.0015, 0.002, 0.003, 0.005, 0.0075),
    *(0.01, 0.015, 0.02, 0.03, 0.05, 0.075),
    *(0.1, 0.15, 0.2, 0.3, 0.5, 0.75),
    *(1.0, 2.0, 5.0, 10.0, 30.0),
)
BEYOND: Final = 60.0  # what is reported for a time beyond the last edge


def edge_of(seconds: float) -> float:
    """The upper edge of the bucket that a time is in.

    >>> edge_of(0.0123), edge_of(0.015), edge_of(1000)
    (0.015, 0.015, 60.0)
    """
    place = bisect_left(BUCKETS, seconds)
    return BUCKETS[place] if place < len(BUCKETS) else BEYOND


OTHER: Final = "other"
METHODS: Final = frozenset(
    f"/{service.full_name}/{method.name}"
    for service in (
        tacit_pb2.DESCRIPTOR.services_by_name["Tacit"],
        flight_pb2.DESCRIPTOR.services_by_name["FlightService"],
    )
    for method in service.methods
) | {
    *(POSTGRES_METHOD + name for name in POSTGRES_MESSAGES),
    "/grpc.health.v1.Health/Check",
    "/grpc.health.v1.Health/List",
    "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo",
}


def _codes(refusal: type[Refused]) -> Iterator[str]:
    yield refusal.code
    for narrower in refusal.__subclasses__():
        yield from _codes(narrower)


REFUSAL_CODES: Final = frozenset(_codes(Refused))
CALL_CODES: Final = REFUSAL_CODES | {OK_CODE, INTERNAL_CODE, CANCELLED_CODE, NO_METHOD_CODE}


class _Timed:
    """A stage under way; subtracts its time from the time of the stage around it."""

    __slots__ = ("_clock", "_histogram", "_inner", "_outer", "_started")

    def __init__(self, histogram: Histogram, clock: Callable[[], float]) -> None:
        self._histogram = histogram
        self._clock = clock
        self._outer: _Timed | None = None
        self._started = 0.0
        self._inner = 0.0

    def __enter__(self) -> None:
        self._outer = _UNDER_WAY.get()
        _UNDER_WAY.set(self)
        self._started = self._clock()

    def __exit__(self, *_: object) -> None:
        seconds = self._clock() - self._started
        # Set, not reset: an abandoned stream may be closed in another context.
        _UNDER_WAY.set(self._outer)
        if self._outer is not None:
            self._outer._inner += seconds  # noqa: SLF001 - the same class
        self._histogram.observe(edge_of(max(0.0, seconds - self._inner)))


_UNDER_WAY: Final[ContextVar[_Timed | None]] = ContextVar("stage_under_way", default=None)


class Metrics:
    """The process's metrics, and a `Watcher` that keeps them. Thread-safe.

    Parameters
    ----------
    tables : iterable of str
        The private tables of the configuration.
    clock : callable
        Seconds on a monotonic clock.
    """

    def __init__(self, tables: Iterable[str], clock: Callable[[], float] = time.monotonic) -> None:
        self.registry = CollectorRegistry()
        self._tables = frozenset(tables)
        self._clock = clock
        self._make_counters()
        self._make_gauges()

    def stage(self, stage: Stage) -> AbstractContextManager[object]:
        """Time what happens inside, without the stages within it."""
        return _Timed(self._stages[stage], self._clock)

    @contextmanager
    def purchase(self) -> Iterator[None]:
        """Count what happens inside as one purchase that is under way."""
        with self._purchases.track_inprogress():
            yield

    def answered(self, table: str, kind: AnswerKind) -> None:
        """Count one answer."""
        known = table if table in self._tables or kind is AnswerKind.PUBLIC else OTHER
        self._answers.labels(known, str(kind)).inc()

    def took_much(self, table: str) -> None:
        """Count one statement that took a large part of a budget."""
        self._large_purchases.labels(table if table in self._tables else OTHER).inc()

    def called(self, method: str, code: str) -> None:
        """Count one call, and the refusal that it ended with."""
        code = code if code in CALL_CODES else OTHER
        self._calls.labels(method if method in METHODS else OTHER, code).inc()
        if code in REFUSAL_CODES:
            self._refusals.labels(code).inc()
        if code == NotAuthenticated.code:
            self._authentication_failures.inc()

    def incident(self) -> None:
        """Count one incident."""
        self._incidents.inc()

    def show_ledger(
        self, budgets: Iterable[BudgetStatus], *, n_entries: int, is_writable: bool
    ) -> None:
        """Bring the gauges up to date."""
        for budget in budgets:
            if budget.table in self._tables:
                self._epsilon_left.labels(budget.table).set(float(budget.left))
                self._epsilon_limit.labels(budget.table).set(float(budget.limit))
                self._show_renewal(budget.table, budget.renewal)
        self._entries.set(n_entries)
        self._writable.set(is_writable)

    def _show_renewal(self, table: str, renewal: Renewal | None) -> None:
        """What was spent beyond the window of a budget that renews."""
        sums = (None, None) if renewal is None else (renewal.spent_in_year, renewal.spent_in_all)
        gauges = (self._epsilon_in_year, self._epsilon_in_all)
        for gauge, spent in zip(gauges, sums, strict=True):
            if spent is not None:
                gauge.labels(table).set(float(spent))

    def _make_counters(self) -> None:
        """Make counters and histograms; every known series starts at zero, so that rates work."""
        seconds = Histogram(
            "tacit_stage_seconds",
            "Time by stage of a call; the sum adds the buckets' upper edges.",
            ["stage"],
            buckets=BUCKETS,
            registry=self.registry,
        )
        self._stages = {stage: seconds.labels(str(stage)) for stage in Stage}
        self._answers = self._counter("tacit_answers", "Answers given.", "table", "kind")
        for table in self._tables:
            for kind in (AnswerKind.FREE, AnswerKind.PAID):
                self._answers.labels(table, str(kind))
        self._answers.labels("", str(AnswerKind.PUBLIC))
        self._large_purchases = self._counter(
            "tacit_large_purchases", "Requests that took a tenth of a budget.", "table"
        )
        for table in self._tables:
            self._large_purchases.labels(table)
        self._calls = self._counter("tacit_calls", "Calls that ended.", "method", "code")
        for method in METHODS:
            self._calls.labels(method, OK_CODE)
        self._refusals = self._counter("tacit_refusals", "Calls that were refused.", "code")
        for code in REFUSAL_CODES:
            self._refusals.labels(code)
        self._incidents = self._counter("tacit_incidents", "Unexpected errors; see the log.")
        self._authentication_failures = self._counter(
            "tacit_authentication_failures", "Calls without a credential that is in force."
        )

    def _make_gauges(self) -> None:
        self._epsilon_left = self._gauge("tacit_epsilon_left", "Budget left.", "table")
        self._epsilon_limit = self._gauge("tacit_epsilon_limit", "Total budget.", "table")
        self._epsilon_in_year = self._gauge(
            "tacit_epsilon_spent_in_year", "Spent in 12 months, if the budget renews.", "table"
        )
        self._epsilon_in_all = self._gauge(
            "tacit_epsilon_spent_in_all", "Spent since the first entry, if it renews.", "table"
        )
        self._entries = self._gauge("tacit_ledger_entries", "Entries of the ledger.")
        self._writable = self._gauge("tacit_ledger_writable", "1 if the ledger can be written.")
        self._purchases = self._gauge("tacit_purchases_in_flight", "Purchases under way.")

    def _counter(self, name: str, documentation: str, *labels: str) -> Counter:
        return Counter(name, documentation, labels, registry=self.registry)

    def _gauge(self, name: str, documentation: str, *labels: str) -> Gauge:
        return Gauge(name, documentation, labels, registry=self.registry)


COUNTED: Final = frozenset({"counter", "histogram"})
ADDED: Final = frozenset({"tacit_purchases_in_flight"})  # gauges of each process's own work
LEAST: Final = frozenset({"tacit_ledger_writable"})
ENTRIES: Final = "tacit_ledger_entries"
CREATED: Final = "_created"  # of a series that was begun in several processes, the first

Series: TypeAlias = tuple[str, tuple[tuple[str, str], ...]]


def summed(present: Sequence[Iterable[Metric]], past: Iterable[Metric] = ()) -> list[Metric]:
    """The metrics of a server.

    Parameters
    ----------
    present : sequence of iterable of Metric
        The metrics of each process.
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
