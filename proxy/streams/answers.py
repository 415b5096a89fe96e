"""A stream as a table, answered by whichever process holds its states.

If this process does not hold a stream's states, it asks the process that does.

Of several workers the first holds all states, since a state is one file of one process. What
follows from the ledger is answered here; arrivals and releases go to that one, which says nothing
but that it is done, or why not: what was released is read from the ledger. If no process holds
states, all of that is refused.

A stream as a table: COUNT(DISTINCT user) for each of its epochs that is over; free, as paid for.

What was paid when an epoch began covers its release too, so asking costs nothing, and the answer of
an epoch is the same for ever. WHERE one of its predicates is answered from the estimator of that.
How many users came in several epochs together is not known, nor for how many two predicates held:
no process can tell who came again.

A stream that counts visits has a row for each user who came, with the number of visits up to the
levels declared: counts of rows by visits and sums of visits are answered too. If it has several
releases an epoch, each is a row of epochs: ``2026-11-24 1/4`` is the first quarter of that day.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from pathlib import Path
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from accountant.ledger import Ledger, Payer, StreamHistory, Window
from cube.axis import BooleanAxis, CategoryAxis, IntegerAxis
from cube.query import QueryBlock
from cube.refusals import InvalidRequest, StoreUnavailable, TooLarge, UnsupportedSql
from cube.runtime import cached_property
from cube.schema import Schema
from cube.statistic import UNIT_COUNT
from inference import Posterior
from inference.noise_law import law_of_noise
from local_dp.estimates import coefficients_of
from planner.sql import EPOCH, VISITS
from planner.workload import Fallback, IndependenceQuestion, Wanted
from proxy.api import STREAM, TableInfo
from proxy.streams.served_stream import NotedStream, ServedStream, epsilon_of
from proxy.tables import AS_IT_IS, OwnAnswer, OwnAnswers, OwnCells
from streams import (
    STEP_MAX,
    AnyEpoch,
    Arrivals,
    ErrorLaw,
    ReleasedCount,
    Statistic,
    VisitEpoch,
    VisitErrorLaw,
    VisitEstimate,
    epoch_of,
)


class What(StrEnum):
    """What needs a state."""

    BEGIN = "begin"
    OBSERVE = "observe"
    SYNC = "sync"
    RELEASE = "release"
    DROP = "drop"


@dataclass(frozen=True, slots=True)
class Asked:
    """What the holder of a stream's states is asked for.

    Parameters
    ----------
    of : str
        The epoch to release, or who drops the stream.
    arrivals : Arrivals, optional
        Who arrived, or left.
    """

    stream: str
    what: What
    of: str = ""
    arrivals: Arrivals | None = None

    def done_by(self, stream: ServedStream) -> None:
        """Have it done by the stream itself.

        Raises
        ------
        Refused
        """
        match self.what:
            case What.BEGIN:
                stream.begin()
            case What.OBSERVE if self.arrivals is not None:
                stream.observe(self.arrivals)
            case What.SYNC:
                stream.sync()
            case What.RELEASE:
                stream.release(self.of)
            case What.DROP:
                stream.drop(self.of)


class StreamElsewhere(NotedStream):
    """Such a stream. Thread-safe.

    Parameters
    ----------
    ledger : Ledger
        The ledger, with the stream's opening entry.
    folder : Path, optional
        Where the holder keeps states; None if there is no holder.
    ask : callable
        Has something done by the holder, after which the ledger here has what follows from it;
        raises its refusals.
    """

    def __init__(
        self, ledger: Ledger, name: str, folder: Path | None, ask: Callable[[Asked], None]
    ) -> None:
        super().__init__(ledger, name, folder)
        self._ask = ask

    def observe(self, arrivals: Arrivals) -> None:
        """Note users who arrived, or who left; see `ServedStream.observe`."""
        self._ask(Asked(self.name, What.OBSERVE, arrivals=arrivals))

    def sync(self) -> None:
        """Wait until the disk has what arrived so far."""
        self._ask(Asked(self.name, What.SYNC))

    def begin(self) -> str:
        """Begin the present epoch unless it was begun; its name."""
        try:
            self._ask(Asked(self.name, What.BEGIN))
        except StoreUnavailable:
            if self._present_epoch() not in self.history.released:  # or only the answer got lost
                raise
        return tuple(self.history.released)[-1]

    def release(self, name: str) -> AnyEpoch:
        """An epoch that is over with its release; once released, the same for ever."""
        if self._epoch(name).is_open:
            self._ask(Asked(self.name, What.RELEASE, name))
        epoch = self._epoch(name)
        if epoch.is_open:
            raise StoreUnavailable(
                f"The release of the epoch {name} of the stream {self.name} is not known yet.",
                hint="Ask again in a moment: once known, it never changes.",
            )
        return epoch

    def drop(self, who: str) -> None:
        """End the stream, and have its states erased."""
        try:
            self._ask(Asked(self.name, What.DROP, who))
        except StoreUnavailable:
            if not self.history.is_dropped:  # it is, if only the answer did not come
                raise

    def close(self) -> None:
        """Nothing is held here."""

    def _read_again(self) -> None:
        self._ledger.refresh()


TRUTHS: Final = (False, True)  # the levels of a predicate's column


@dataclass(frozen=True, slots=True)
class Counted:
    """What one row of an answer counts: the users of an epoch, for whom a predicate held if any.

    With a statistic, it is what is counted of their visits, so many times.
    """

    epoch: str
    predicate: str | None
    statistic: Statistic | None = None
    times: float = 1.0


Released: TypeAlias = ReleasedCount | VisitEstimate


@dataclass(frozen=True)
class ReleaseLaw:
    """The law of the error of one released number, with the interval of that number.

    Parameters
    ----------
    count : ReleasedCount or VisitEstimate
    times : float
        What the answer is of the number.
    """

    count: Released
    times: float = 1.0

    @property
    def scales(self) -> NDArray[np.float64]:
        """None: it is no sum of Laplace variables."""
        return self._law.scales

    @property
    def gaussian(self) -> float:
        """Its standard deviation, for who takes it as a Gaussian term."""
        return abs(self.times) * self._law.gaussian

    @property
    def tail_error(self) -> float:
        """Bound on the error of `tail`."""
        return self._law.tail_error

    def tail(self, z: float) -> float:
        """The probability of an error above `z`, if as many users were there as estimated."""
        return self._law.tail(z / abs(self.times))

    def half_width(self, confidence: float) -> float:
        """So far from the estimate that all is inside which the release does not contradict."""
        interval = self.count.interval(confidence)
        value = self.count.n_users
        return abs(self.times) * max(value - interval.low, interval.high - value, 0.0)

    @cached_property
    def _law(self) -> ErrorLaw | VisitErrorLaw:
        return self.count.law


class StreamTable:
    """A stream in SQL: a table that answers by itself, with the epochs that were over just now."""

    def __init__(self, stream: ServedStream | StreamElsewhere) -> None:
        self._stream = stream
        # The same for who plans a statement and who answers it.
        self._releases = _releases(stream)
        self._epochs = tuple(self._releases)

    @property
    def info(self) -> TableInfo:
        """A column with the epochs, one for each predicate, and the users as the unit."""
        history = self._stream.history
        opened = history.opened
        levels = self._epochs or tuple(history.released)[-1:] or ("none",)
        schema = Schema(
            table=self._stream.name,
            axes=(
                CategoryAxis(name=EPOCH, values=levels),
                *map(_truth, opened.predicates),
                *((IntegerAxis(name=VISITS, low=1, high=opened.levels),) if opened.levels else ()),
            ),
            n_records_max=max(1, opened.universe or 2**32) * len(levels),
            unit=opened.column,
            rows_per_unit_max=max(2, len(levels)),
        )
        each = "" if opened.epochs is Window.NEVER else f" for each {opened.epochs}"
        return TableInfo(
            schema,
            AS_IT_IS,
            kind=STREAM,
            comment=(
                f"Stream. COUNT(DISTINCT {opened.column}){each}{_with_visits(opened.levels)}, from "
                f"a state that is itself private; epsilon {float(epsilon_of(opened)):.6g} an epoch,"
                " with all that is released of it."
            ),
        )

    @property
    def edition(self) -> str:
        """Its epochs that are over: the last one, and how many."""
        epochs = self._epochs
        return f"{len(epochs)} {epochs[-1] if epochs else ''}"

    @property
    def position(self) -> tuple[int, str]:
        """How many epochs were released."""
        history = self._stream.history
        n_parts = len(history.partial)
        return sum(map(bool, history.released.values())) + n_parts, self.edition

    def foreseen(self, wanted: Sequence[Wanted], fallback: Fallback) -> list[float | None]:
        """The half-widths of epochs that are released; None of others. Releases nothing."""
        del fallback
        history = self._stream.history
        found: list[float | None] = []
        for one in wanted:
            asked = [row for row in self._asked(one) if row is not None]
            if not all(self._noisy(history, row.epoch) for row in asked):
                found.append(None)
                continue
            laws = [_law(self._noted(row.epoch), row) for row in asked]
            widths = [law.half_width(one.target.confidence) for law in laws]
            found.append(max(widths, default=0.0))
        return found

    def answer(self, wanted: Sequence[Wanted], payer: Payer, fallback: Fallback) -> OwnAnswers:
        """The numbers of users; an epoch that is over is released if it was not yet.

        Raises
        ------
        Refused
        """
        del payer, fallback
        asked = [self._asked(one) for one in wanted]
        names = {row.epoch for one in asked for row in one if row is not None}
        epochs = {name: self._released(name) for name in sorted(names)}
        no_users = Posterior(0.0, law_of_noise(np.empty(0)))

        def answered(row: Counted | None) -> Posterior:
            if row is None:
                return no_users
            law = _law(epochs[row.epoch], row)
            return Posterior(row.times * law.count.n_users, law)

        blocks = tuple(OwnAnswer(tuple(map(answered, one)), STREAM) for one in asked)
        opened = self._stream.history.opened
        said = f"epsilon {float(epsilon_of(opened)):.6g}, paid when it began, covers its state and "
        all_of_it = "all of its release" if opened.predicates else "its release"
        return OwnAnswers(blocks, (f"{self._stream.name}: of an epoch, {said}{all_of_it}.",))

    def cells(self, block: QueryBlock, question: IndependenceQuestion) -> OwnCells:
        """None: who came is counted, and nothing else is known of anybody.

        Raises
        ------
        UnsupportedSql
        """
        del block, question
        raise UnsupportedSql(
            f"{self._stream.name} is a stream, and streams have no tests of independence.",
            hint=f"Ask for COUNT(DISTINCT {self._stream.history.opened.column}), which is free.",
        )

    def _released(self, label: str) -> AnyEpoch:
        """An epoch with the release of a label, made now if it was not yet."""
        name, part = self._releases[label]
        return self._noted(label) if part else self._stream.release(name)

    def _noted(self, label: str) -> AnyEpoch:
        """An epoch with a release that the ledger has."""
        history = self._stream.history
        name, _ = self._releases[label]
        return epoch_of(self._stream.name, history.opened, name, self._noisy(history, label))

    def _noisy(self, history: StreamHistory, label: str) -> tuple[int, ...]:
        name, part = self._releases[label]
        return history.partial[name, part] if part else history.released[name]

    def _asked(self, wanted: Wanted) -> list[Counted | None]:
        """What each row of a block counts; None for a row that counts no users.

        Raises
        ------
        UnsupportedSql, InvalidRequest
            If it is about something else than the users of one epoch.
        """
        name, opened = self._stream.name, self._stream.history.opened
        rule = wanted.rule
        counts_users = rule is not None and rule.kind == UNIT_COUNT
        if (rule is not None and (rule.beside or not counts_users)) or not (
            counts_users or opened.levels
        ):
            raise UnsupportedSql(
                f"{name} is a stream, and only its distinct users can be counted.",
                hint=f"Ask for COUNT(DISTINCT {opened.column}), which is free.",
            )
        if not self._epochs:
            if self._stream.is_by_clock:
                raise InvalidRequest(
                    f"No epoch of the stream {name} is over yet.",
                    hint="An epoch is released once its window of time has ended.",
                )
            raise InvalidRequest(
                f"The stream {name} has no state from which its users could be counted.",
                hint="Drop it, and create another stream.",
            )
        scope = wanted.block.scope
        predicates = [one for one in opened.predicates if one in scope]
        if len(predicates) > 1:
            raise self._not_counted()
        sizes = {EPOCH: len(self._epochs)} | dict.fromkeys(predicates, len(TRUTHS))
        sizes |= {VISITS: opened.levels} if opened.levels else {}
        coefficients, _ = coefficients_of(wanted.block, sizes)
        # By epochs, truths, visits and rows; a row that does not name one is the same for all.
        cells = coefficients.reshape(*(sizes[axis] for axis in scope), wanted.block.n_rows)
        order = [axis for axis in (EPOCH, *predicates, VISITS) if axis in scope]
        cells = cells.transpose(*map(scope.index, order), len(scope))
        if EPOCH not in scope:
            cells = np.broadcast_to(cells, (len(self._epochs), *cells.shape))
        if not predicates:
            cells = np.repeat(cells[:, np.newaxis], len(TRUTHS), axis=1)
        if VISITS not in scope:
            cells = np.repeat(cells[:, :, np.newaxis], max(1, opened.levels), axis=2)
        if counts_users:
            cells = (cells != 0).astype(np.float64)
        return [self._counted(row, *predicates) for row in np.moveaxis(cells, -1, 0)]

    def _counted(self, row: NDArray[np.float64], predicate: str | None = None) -> Counted | None:
        """What a row counts: of shape (epochs, truths of the predicate, visits)."""
        inside = np.flatnonzero(row.any(axis=(1, 2)))
        if not inside.size:
            return None
        if inside.size > 1:
            name, column = self._stream.name, self._stream.history.opened.column
            raise UnsupportedSql(
                f"The number of users that came to {name} in several epochs together is not known.",
                hint=f"Ask for COUNT(DISTINCT {column}) with GROUP BY {EPOCH}, or for one epoch.",
            )
        does_not_hold, holds = row[inside[0]]
        if does_not_hold.any() and not np.array_equal(does_not_hold, holds):
            raise self._not_counted()
        epoch = self._epochs[inside[0]]
        of = None if does_not_hold.any() else predicate
        if not self._stream.history.opened.levels:
            return Counted(epoch, of)
        return Counted(epoch, of, *self._statistic(holds))

    def _statistic(self, weights: NDArray[np.float64]) -> tuple[Statistic, float]:
        """What is counted of a user's visits, of shape (levels,), and how many times."""
        steps = np.diff(weights, prepend=0.0)
        most = float(np.abs(steps).max())
        shares = [Fraction(one).limit_denominator(STEP_MAX) for one in (steps / most).tolist()]
        parts = math.lcm(*(one.denominator for one in shares))
        found = tuple(int(one * parts) for one in shares)
        is_exact = np.allclose(np.array(found) * most / parts, steps, rtol=1e-12, atol=0.0)
        if parts > STEP_MAX or not is_exact:
            raise UnsupportedSql(
                f"This sum over the {VISITS} of users of {self._stream.name} is not known exactly.",
                hint=f"Ask for SUM({VISITS}), SUM(LEAST({VISITS}, 5)), AVG({VISITS}), or the "
                f"number of users with a number of {VISITS} or more.",
            )
        return Statistic(found), most / parts

    def _not_counted(self) -> UnsupportedSql:
        name, opened = self._stream.name, self._stream.history.opened
        return UnsupportedSql(
            f"{name} counts its users, and those who came while a predicate held: "
            f"{', '.join(opened.predicates)}. Other predicates, and several together, are not "
            "known.",
            hint=f"Ask for COUNT(DISTINCT {opened.column}) WHERE {opened.predicates[0]}, or "
            "without WHERE; what is to be counted is declared in CREATE STREAM.",
        )


def _truth(predicate: str) -> BooleanAxis:
    return BooleanAxis(name=predicate)


def _with_visits(levels: int) -> str:
    return f" and the visits of each up to {levels}" if levels else ""


def _releases(stream: ServedStream | StreamElsewhere) -> dict[str, tuple[str, int]]:
    """The releases that can be answered, by their labels: the epoch, and its parts that were over.

    The last release of an epoch has the name of the epoch.
    """
    ended = set(stream.answerable())
    history = stream.history
    n = history.opened.n_releases
    found: dict[str, tuple[str, int]] = {}
    for name in history.released:
        parts = [part for epoch, part in history.partial if epoch == name]
        found |= {f"{name} {part:0{len(str(n))}}/{n}": (name, part) for part in parts}
        if name in ended:
            found[name] = (name, 0)
    return found


def _law(epoch: AnyEpoch, row: Counted) -> ReleaseLaw:
    """The number that a row counts, as it was released."""
    if isinstance(epoch, VisitEpoch) and row.statistic is not None:
        estimate = epoch.visits(row.predicate).estimate(row.statistic)
        if estimate.is_too_long:
            raise TooLarge(
                f"The law of this sum over {VISITS} has too many values to compute an interval.",
                hint=f"Ask for SUM({VISITS}), or for users by their number of {VISITS}.",
            )
        return ReleaseLaw(estimate, row.times)
    return ReleaseLaw(epoch.count(row.predicate), row.times)
