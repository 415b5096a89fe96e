"""A stream as a table: COUNT(DISTINCT user) for each of its epochs that is over; free, as paid for.

What was paid when an epoch began covers its release too, so asking costs nothing, and the answer of
an epoch is the same for ever. How many users came in several epochs together is not known: nobody
can tell who came again.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from accountant.ledger.limits import Payer, Window
from cube.axis import CategoryAxis
from cube.block import QueryBlock
from cube.cached import cached_property
from cube.refusals import InvalidRequest, UnsupportedSql
from cube.schema import Schema
from inference.noise_law.law import law_of_noise
from inference.posterior import Posterior
from local_dp.estimates.queries import coefficients_of
from planner.fallback import Fallback
from planner.independence_question import IndependenceQuestion
from planner.workload import Wanted
from proxy.api.requests import TableInfo
from proxy.streams.elsewhere import StreamElsewhere
from proxy.streams.opening import epsilon_of
from proxy.streams.served_stream import ServedStream
from proxy.tables.self_answering import AS_IT_IS, OwnAnswer, OwnAnswers, OwnCells
from streams.declared import epoch_of
from streams.epoch import Epoch
from streams.interval import ErrorLaw

STREAM: Final = "stream"  # the kind of these tables, and the source of their answers
EPOCH: Final = "epoch"  # the column with the names of epochs


@dataclass(frozen=True)
class ReleaseLaw:
    """The law of the error of one release, with the interval of that release.

    Parameters
    ----------
    epoch : Epoch
        One that is released.
    """

    epoch: Epoch

    @property
    def scales(self) -> NDArray[np.float64]:
        """None: it is no sum of Laplace variables."""
        return self._law.scales

    @property
    def gaussian(self) -> float:
        """Its standard deviation, for who takes it as a Gaussian term."""
        return self._law.gaussian

    @property
    def tail_error(self) -> float:
        """Bound on the error of `tail`."""
        return self._law.tail_error

    def tail(self, z: float) -> float:
        """The probability of an error above `z`, if as many users were there as estimated."""
        return self._law.tail(z)

    def half_width(self, confidence: float) -> float:
        """So far from the estimate that all is inside which the release does not contradict."""
        interval = self.epoch.interval(confidence)
        value = self.epoch.n_users
        return max(value - interval.low, interval.high - value, 0.0)

    @cached_property
    def _law(self) -> ErrorLaw:
        population = self.epoch.population
        present = min(population.n_users_max, max(0, round(self.epoch.n_users)))
        return ErrorLaw(population, self.epoch.mechanism, present)


class StreamTable:
    """A stream in SQL: a table that answers by itself, with the epochs that were over just now.

    Parameters
    ----------
    stream : ServedStream or StreamElsewhere
    """

    def __init__(self, stream: ServedStream | StreamElsewhere) -> None:
        self._stream = stream
        self._epochs = stream.answerable()  # the same for who plans a statement and who answers it

    @property
    def info(self) -> TableInfo:
        """One column with the epochs, and the users as the unit."""
        history = self._stream.history
        opened = history.opened
        levels = self._epochs or tuple(history.released)[-1:] or ("none",)
        schema = Schema(
            table=self._stream.name,
            axes=(CategoryAxis(name=EPOCH, values=levels),),
            n_records_max=max(1, opened.universe or 2**32) * len(levels),
            unit=opened.column,
            rows_per_unit_max=max(2, len(levels)),
        )
        each = "" if opened.epochs is Window.NEVER else f" for each {opened.epochs}"
        return TableInfo(
            schema,
            AS_IT_IS,
            kind=STREAM,
            comment=f"Stream. COUNT(DISTINCT {opened.column}){each}, from a state that is private "
            f"by itself; epsilon {float(epsilon_of(opened)):.6g} an epoch, with its release.",
        )

    @property
    def edition(self) -> str:
        """Its epochs that are over: the last one, and how many."""
        epochs = self._epochs
        return f"{len(epochs)} {epochs[-1] if epochs else ''}"

    @property
    def position(self) -> tuple[int, str]:
        """How many epochs were released."""
        released = self._stream.history.released
        return sum(one is not None for one in released.values()), self.edition

    def foreseen(self, wanted: Sequence[Wanted], fallback: Fallback) -> list[float | None]:
        """The half-widths of epochs that are released; None of others. Releases nothing."""
        del fallback
        history = self._stream.history
        found: list[float | None] = []
        for one in wanted:
            names = [name for name in self._asked(one) if name is not None]
            released = [(name, history.released[name]) for name in names]
            if any(ones is None for _, ones in released):
                found.append(None)
                continue
            epochs = [epoch_of(self._stream.name, history.opened, *pair) for pair in released]
            widths = [ReleaseLaw(epoch).half_width(one.target.confidence) for epoch in epochs]
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
        names = {name for one in asked for name in one if name is not None}
        epochs = {name: self._stream.release(name) for name in sorted(names)}
        laws = {name: ReleaseLaw(epoch) for name, epoch in epochs.items()}
        nobody = Posterior(0.0, law_of_noise(np.empty(0)))
        blocks = tuple(
            OwnAnswer(
                tuple(
                    nobody if name is None else Posterior(epochs[name].n_users, laws[name])
                    for name in one
                ),
                STREAM,
            )
            for one in asked
        )
        epsilon = float(epsilon_of(self._stream.history.opened))
        said = f"epsilon {epsilon:.6g}, paid when it began, covers its state and its release"
        return OwnAnswers(blocks, (f"{self._stream.name}: of an epoch, {said}.",))

    def cells(self, block: QueryBlock, question: IndependenceQuestion) -> OwnCells:
        """None: it has one column.

        Raises
        ------
        UnsupportedSql
        """
        del block, question
        raise UnsupportedSql(
            f"{self._stream.name} is a stream, whose epochs are not tested for independence.",
            hint=f"Ask for COUNT(DISTINCT {self._stream.history.opened.column}), which is free.",
        )

    def _asked(self, wanted: Wanted) -> list[str | None]:
        """The epoch that each row of a block is about; None of a row about no epoch.

        Raises
        ------
        UnsupportedSql, InvalidRequest
            If it is about something else than the users of one epoch.
        """
        name, column = self._stream.name, self._stream.history.opened.column
        if wanted.groups_max is None or wanted.only_cut:
            raise UnsupportedSql(
                f"{name} is a stream, of which only distinct users are counted.",
                hint=f"Ask for COUNT(DISTINCT {column}), which is free.",
            )
        epochs = self._epochs
        if not epochs:
            raise InvalidRequest(
                f"No epoch of the stream {name} is over yet.",
                hint="An epoch is released once its window of time has ended.",
            )
        coefficients, _ = coefficients_of(wanted.block, {EPOCH: len(epochs)})
        if not wanted.block.scope:
            coefficients = np.repeat(coefficients, len(epochs), axis=0)
        found: list[str | None] = []
        for row in coefficients.T:
            inside = np.flatnonzero(row)
            if inside.size > 1:
                raise UnsupportedSql(
                    f"How many users came to {name} in several epochs together is not known.",
                    hint=f"Ask for COUNT(DISTINCT {column}) with GROUP BY {EPOCH}, or of one.",
                )
            found.append(epochs[int(inside[0])] if inside.size else None)
        return found
