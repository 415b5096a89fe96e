"""The law of some columns given values of others, by a synthetic table's model.

Parses a value written as text into a level of a column.

Reads only the text and the public declaration of the column.

A network gives it without the table's rows: exactly, or from rows drawn for the question. A
pairwise model can only be sampled, so shares are counted among the table's rows. All of it is
public.
"""

import datetime as dt
import math
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from math import prod
from typing import Final

import numpy as np
import pyarrow as pa

from cube.axis import (
    Axis,
    BooleanAxis,
    CategoryAxis,
    DateAxis,
    LevelValue,
    NumericAxis,
    TimestampAxis,
)
from cube.refusals import InvalidRequest, TooLarge, UnknownName
from planner.sql import listed, shortened, suggestion
from proxy.api import describe_levels
from proxy.synthetic_tables.models import arrow_type, levels_of
from proxy.synthetic_tables.resolve import named
from synthesis import Floats, Model
from synthesis.privbayes import BayesianNetwork, law_given

NULL_TEXT: Final = "NULL"
_TRUTHS: Final = {"true": True, "false": False}


def level_place(axis: Axis, text: str) -> int:
    """The position of the level that a text stands for; for a number, its bin's position.

    >>> level_place(NumericAxis(name="hours", edges=(0.0, 20.0, 40.0), other=-1.0), "25.5")
    1
    >>> level_place(BooleanAxis(name="member", null=True), "null")
    2

    Raises
    ------
    InvalidRequest
        If there is no such level.
    """
    place = _place(axis, text)
    if place is None and axis.null_position is not None and text.upper() == NULL_TEXT:
        place = axis.null_position
    if place is None:
        texts = [level for level in axis.levels if isinstance(level, str)]
        raise InvalidRequest(
            f"{axis.name} has no level {shortened(text)!a}.",
            hint=suggestion(text, texts) or f"Its levels: {describe_levels(axis)}.",
        )
    return place


def _place(axis: Axis, text: str) -> int | None:
    """The same for a text other than NULL; None if there is no such level."""
    value = _value(axis, text)
    if isinstance(axis, NumericAxis) and isinstance(value, float) and value != axis.other:
        return _bin(axis, value)
    levels = axis.levels if axis.null_position is None else axis.levels[:-1]
    return next((place for place, level in enumerate(levels) if level == value), None)


def _value(axis: Axis, text: str) -> LevelValue:
    """The text as a value of the column's type; None if it is not one."""
    try:
        match axis:
            case CategoryAxis():
                return text
            case BooleanAxis():
                return _TRUTHS.get(text.lower())
            case DateAxis():
                return dt.date.fromisoformat(text)
            case TimestampAxis():
                return dt.datetime.fromisoformat(text)
            case _:
                return float(text)
    except ValueError:
        return None


def _bin(axis: NumericAxis, value: float) -> int | None:
    """The bin that contains a number; the last bin includes its upper edge."""
    if math.isnan(value) or not axis.edges[0] <= value <= axis.edges[-1]:
        return None
    return min(bisect_right(axis.edges, value), len(axis.edges) - 1) - 1


N_SHARES_MAX: Final = 100_000
SHARE: Final = "share"


class LawBasis(StrEnum):
    """How a law was obtained."""

    EXACT = "exact"  # the model's own numbers
    WEIGHTED = "weighted"  # weighted rows drawn for the question
    COUNTED = "counted"  # the table's rows


@dataclass(frozen=True, slots=True)
class LawQuestion:
    """The columns whose law is requested, and given values of others, as text.

    Parameters
    ----------
    given : tuple of (str, str)
        Columns and values.
    """

    columns: tuple[str, ...]
    given: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class ModelLaw:
    """A law as a table.

    Parameters
    ----------
    data : pyarrow.Table
        One row for each combination of the columns' values, with its share.
    n_rows : float, optional
        The effective number of rows drawn, or the number of rows counted; None if exact.
    """

    data: pa.Table
    way: LawBasis
    n_rows: float | None = None


@dataclass(frozen=True, slots=True)
class _Resolved:
    """A question in terms of positions of axes and levels."""

    columns: tuple[Axis, ...]
    given: Mapping[str, int]


def asked_law(  # noqa: PLR0913 - what is asked, and of what
    name: str,
    axes: Sequence[Axis],
    question: LawQuestion,
    model: Model,
    rows: Callable[[], pa.Table],
    *,
    seed: int,
) -> ModelLaw:
    """The law of some columns given values of others, by a synthetic table's model.

    Parameters
    ----------
    name : str
        Of the table.
    axes : sequence of Axis
        The axes of its columns.
    rows : callable
        Reads the table's rows.
    seed : int
        Rows for a question are drawn from it, so the same question has the same answer.

    Raises
    ------
    UnknownName, InvalidRequest, TooLarge, StoreUnavailable
    """
    asked = _resolved(name, axes, question)
    if isinstance(model, BayesianNetwork):
        return _of_network(model, asked, seed)
    return _counted(rows(), asked, axes)


def _of_network(network: BayesianNetwork, asked: _Resolved, seed: int) -> ModelLaw:
    columns = [axis.name for axis in asked.columns]
    try:
        law = law_given(network, columns, asked.given, np.random.default_rng(seed))
    except ValueError:
        raise _nothing_given("The model") from None
    way = LawBasis.EXACT if law.n_effective is None else LawBasis.WEIGHTED
    return ModelLaw(_table(asked.columns, law.shares), way, law.n_effective)


def _counted(rows: pa.Table, asked: _Resolved, axes: Sequence[Axis]) -> ModelLaw:
    looked_at = {axis.name for axis in asked.columns} | asked.given.keys()
    places = levels_of([axis for axis in axes if axis.name in looked_at], rows)
    is_given = np.ones(rows.num_rows, dtype=bool)
    for column, place in asked.given.items():
        is_given &= places[column] == place
    n_rows = int(is_given.sum())
    if n_rows == 0:
        raise _nothing_given("The table")
    counts = np.zeros([axis.size for axis in asked.columns])
    np.add.at(counts, tuple(places[axis.name][is_given] for axis in asked.columns), 1.0)
    return ModelLaw(_table(asked.columns, counts / n_rows), LawBasis.COUNTED, float(n_rows))


def _table(axes: Sequence[Axis], shares: Floats) -> pa.Table:
    """Every combination of levels, the last column varying fastest, with its share."""
    places = np.unravel_index(np.arange(shares.size), shares.shape)
    columns = [
        pa.array(axis.levels, type=arrow_type(axis)).take(pa.array(place))
        for axis, place in zip(axes, places, strict=True)
    ]
    return pa.table([*columns, shares.ravel()], names=[*(axis.name for axis in axes), SHARE])


def _resolved(name: str, axes: Sequence[Axis], question: LawQuestion) -> _Resolved:
    by_name = {axis.name: axis for axis in axes}

    def axis_of(text: str) -> Axis:
        found = named(text, list(by_name))
        if found is None:
            raise UnknownName(
                f"{name} has no column {shortened(text)!a}.",
                hint=suggestion(text, by_name) or f"It has {listed(by_name)}.",
            )
        return by_name[found]

    if not question.columns:
        raise InvalidRequest(
            "No column is requested.", hint="Name at least one column whose law is wanted."
        )
    columns = tuple(axis_of(text) for text in question.columns)
    given = [(axis_of(text), value) for text, value in question.given]
    all_names = [axis.name for axis in (*columns, *(axis for axis, _ in given))]
    for column in set(all_names):
        if all_names.count(column) > 1:
            raise InvalidRequest(
                f"{column} is named twice.", hint="Request a column, or give its value, only once."
            )
    n_shares = prod(axis.size for axis in columns)
    if n_shares > N_SHARES_MAX:
        raise TooLarge(
            f"The law has {n_shares} shares; {N_SHARES_MAX} are allowed.",
            hint="Ask for fewer columns at once.",
        )
    return _Resolved(columns, {axis.name: level_place(axis, value) for axis, value in given})


def _nothing_given(what: str) -> InvalidRequest:
    return InvalidRequest(f"{what} has no row with the given values.", hint="Give fewer values.")
