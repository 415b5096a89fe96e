"""The clients of `benchmarks.load`: what they ask, how they ask it, and what they record.

A client is a thread with a connection of its own. It sends a statement, waits for the whole answer,
checks it, and sends the next. Its statements come from a shared dashboard, unless too few of its
answers so far were paid: then it makes up a statement with a narrower target than the dashboard's.

All statements are counts of a point, a range or a list, now and then by group. They stay on four
charts of two columns each; or, if more is wanted, on a number of topics, sets of one to three
columns drawn from all of them, which makes everything more expensive: each topic shares columns
with most others. Whether an answer was free or paid is read from its receipt; some of what is made
up turns out to be known.
"""

import math
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import grpc
import numpy as np

from cube.axis import Axis, CategoryAxis, IntegerAxis
from cube.schema import Schema
from proxy.config.settings import load
from proxy.protocol import tacit_pb2
from proxy.protocol.tacit_pb2_grpc import TacitStub

CONFIDENCE = 0.95
CHARTS = (
    ("age", "hours_per_week"),
    ("education_num", "sex"),
    ("age", "marital_status"),
    ("hours_per_week", "income"),
)
N_COLUMNS_SHARES = (0.15, 0.55, 0.3)  # of topics of one, two and three columns
SHARE_OF_GROUPED = 0.1
SHARE_OF_SINGLE_NAMES = 0.5  # of predicates on categories; the others name two
SHARE_OF_POINTS = 0.3  # of predicates on numbers; the others are ranges
N_GROUP_LEVELS_MAX = 16  # of a column to group by: a chart, not a table
# In people of 48,842, drawn evenly on a logarithmic scale.
DASHBOARD_HALF_WIDTHS = (100.0, 400.0)
OWN_HALF_WIDTHS = (30.0, 150.0)
UNITS_PER_EPSILON = 2**40
CALL_SECONDS_MAX = 60.0
WIDTH_SLACK = 1 + 1e-9  # the ends of an interval are doubles


@dataclass(frozen=True, slots=True)
class Statement:
    """SQL, and the half-width it is wanted at."""

    sql: str
    half_width: float


@dataclass(frozen=True, slots=True)
class Orders:
    """What the clients of one process are to do.

    Parameters
    ----------
    configuration : Path
        Whose schema they ask about.
    addresses : tuple of str
        The servers; the threads take turns.
    n_threads : int
    dashboard : tuple of Statement
    share_of_paid : float
        Of the answers to each client.
    start_at, seconds : float
        When to begin, on the clock of `time.time`, and for how long.
    n_topics : int
        How many there are besides the charts.
    seed : int
        Of the topics, the same for all.
    number : int
        Of these clients' process.
    """

    configuration: Path
    addresses: tuple[str, ...]
    n_threads: int
    dashboard: tuple[Statement, ...]
    share_of_paid: float
    start_at: float
    seconds: float
    n_topics: int
    seed: int
    number: int


@dataclass(slots=True)
class Outcome:
    """What came of it.

    Parameters
    ----------
    free_ms, paid_ms : list of float
        How long each answer took that cost no measurement, or one.
    units : int
        What all receipts add up to, in units of 2**-40 epsilon.
    too_wide : list of str
        Answers with an interval wider than asked, a line each.
    failures : list of str
        What went wrong, a line each.
    processor_seconds : float
        What the clients' processes took while they asked.
    """

    free_ms: list[float] = field(default_factory=list)
    paid_ms: list[float] = field(default_factory=list)
    units: int = 0
    too_wide: list[str] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)
    processor_seconds: float = 0.0

    def add(self, other: "Outcome") -> None:
        """Take in what came of something else."""
        self.free_ms += other.free_ms
        self.paid_ms += other.paid_ms
        self.units += other.units
        self.too_wide += other.too_wide
        self.failures += other.failures
        self.processor_seconds += other.processor_seconds


class Imagination:
    """Statements nobody planned.

    Parameters
    ----------
    schema : Schema
        The table they are about.
    topics : sequence of tuple of str
        The columns of each topic.
    half_widths : tuple of float
        The narrowest and the widest that are asked for.
    rng : numpy.random.Generator
    """

    def __init__(
        self,
        schema: Schema,
        topics: Sequence[tuple[str, ...]],
        half_widths: tuple[float, float],
        rng: np.random.Generator,
    ) -> None:
        self._schema = schema
        self._topics = topics
        self._logarithms = np.log(half_widths)
        self._rng = rng

    def statement(self) -> Statement:
        """One more."""
        topic = self._topics[int(self._rng.integers(len(self._topics)))]
        axes = [self._schema.by_name[name] for name in topic]
        keys: list[str] = []
        if axes[0].size <= N_GROUP_LEVELS_MAX and self._rng.random() < SHARE_OF_GROUPED:
            keys = [axes.pop(0).name]
        where = " AND ".join(map(self._predicate, axes))
        sql = f"SELECT {', '.join([*keys, 'COUNT(*) AS n'])} FROM {self._schema.table}"  # noqa: S608 - names of a schema
        sql += f" WHERE {where}" if where else ""
        sql += f" GROUP BY {keys[0]}" if keys else ""
        return Statement(sql, round(float(np.exp(self._rng.uniform(*self._logarithms))), 1))

    def _predicate(self, axis: Axis) -> str:
        """A point, a range or a list of levels; never all of them."""
        levels = axis.regular
        first, last = np.sort(self._rng.permutation(len(levels))[:2])
        if isinstance(axis, CategoryAxis):
            names = ["'" + str(levels[place]).replace("'", "''") + "'" for place in (first, last)]
            if len(levels) == len(names) or self._rng.random() < SHARE_OF_SINGLE_NAMES:
                return f"{axis.name} = {names[0]}"
            return f"{axis.name} IN ({', '.join(names)})"
        if isinstance(axis, IntegerAxis) and self._rng.random() < SHARE_OF_POINTS:
            return f"{axis.name} = {levels[first]}"
        return f"{axis.name} >= {levels[first]} AND {axis.name} < {levels[last]}"


def topics_of(schema: Schema, n_topics: int, seed: int) -> list[tuple[str, ...]]:
    """The sets of columns that are asked about: the charts, and others."""
    rng = np.random.default_rng(seed)
    names = [axis.name for axis in schema.axes]
    topics = set(CHARTS)
    while len(topics) < n_topics + len(CHARTS):
        n_columns = 1 + int(rng.choice(len(N_COLUMNS_SHARES), p=N_COLUMNS_SHARES))
        topics.add(tuple(sorted(rng.permutation(names)[:n_columns].tolist())))
    return sorted(topics)


def dashboard_of(
    schema: Schema, n_statements: int, n_topics: int, seed: int
) -> tuple[Statement, ...]:
    """The statements that everybody asks."""
    rng = np.random.default_rng([seed, seed])
    topics = topics_of(schema, n_topics, seed)
    imagination = Imagination(schema, topics, DASHBOARD_HALF_WIDTHS, rng)
    return tuple(imagination.statement() for _ in range(n_statements))


@contextmanager
def connected(address: str) -> Iterator[TacitStub]:
    """A stub with a connection of its own, made before the first call."""
    options = (("grpc.use_local_subchannel_pool", 1),)
    with grpc.insecure_channel(address, options) as channel:
        grpc.channel_ready_future(channel).result(CALL_SECONDS_MAX)
        yield TacitStub(channel)


def ask(stub: TacitStub, statement: Statement, outcome: Outcome) -> bytes:
    """Ask, wait for all of the answer, and write down what it was; the relation that came."""
    target = tacit_pb2.Target(half_width=statement.half_width, confidence=CONFIDENCE)
    request = tacit_pb2.QueryRequest(sql=statement.sql, target=target)
    started = time.perf_counter()
    try:
        replies = list(stub.Query(request, timeout=CALL_SECONDS_MAX))
    except grpc.RpcError as error:
        outcome.failures.append(f"{error.code()}: {error.details()}")
        return b""
    milliseconds = 1e3 * (time.perf_counter() - started)
    receipt = replies[-1].receipt
    units = receipt.epsilon_spent * UNITS_PER_EPSILON  # exact: the factor is a power of two
    if not units.is_integer():
        outcome.failures.append(f"a cost of {receipt.epsilon_spent!r} is no whole units")
    outcome.units += int(units)
    is_paid = any(column.source == "measured" for column in receipt.columns)
    (outcome.paid_ms if is_paid else outcome.free_ms).append(milliseconds)
    widths = [
        high - low
        for column in receipt.columns
        for low, high in zip(column.low, column.high, strict=True)
    ]
    widest = max(widths, default=math.inf)
    if widest > 2 * statement.half_width * WIDTH_SLACK:
        outcome.too_wide.append(f"{widest / 2} where {statement.half_width}: {statement.sql}")
    return b"".join(reply.ipc for reply in replies)


def run_clients(orders: Orders) -> Outcome:
    """Run the clients of one process to the end of their time."""
    schema = load(orders.configuration).tables[0].schema
    outcomes = [Outcome() for _ in range(orders.n_threads)]
    threads = [
        threading.Thread(target=_client, args=(orders, schema, place, outcomes[place]))
        for place in range(orders.n_threads)
    ]
    for thread in threads:
        thread.start()
    time.sleep(max(0.0, orders.start_at - time.time()))
    before = time.process_time()
    for thread in threads:
        thread.join()
    return together([*outcomes, Outcome(processor_seconds=time.process_time() - before)])


def together(outcomes: Iterable[Outcome]) -> Outcome:
    """What several came to."""
    total = Outcome()
    for outcome in outcomes:
        total.add(outcome)
    return total


def _client(orders: Orders, schema: Schema, place: int, outcome: Outcome) -> None:
    rng = np.random.default_rng([orders.seed, orders.number, place])
    topics = topics_of(schema, orders.n_topics, orders.seed)
    imagination = Imagination(schema, topics, OWN_HALF_WIDTHS, rng)
    popularity = 1 / np.arange(1, len(orders.dashboard) + 1)
    popularity /= popularity.sum()
    try:
        with connected(orders.addresses[place % len(orders.addresses)]) as stub:
            time.sleep(max(0.0, orders.start_at - time.time()))
            end = time.monotonic() + orders.seconds
            while time.monotonic() < end:
                n_paid, n_free = len(outcome.paid_ms), len(outcome.free_ms)
                if n_paid < orders.share_of_paid * (n_paid + n_free):
                    statement = imagination.statement()
                else:
                    statement = orders.dashboard[rng.choice(len(popularity), p=popularity)]
                ask(stub, statement, outcome)
    except Exception as error:  # noqa: BLE001 - a thread that dies in silence would be a lie
        outcome.failures.append(f"a client ended: {error!r}")
