"""Maps the attributes of a campaign to columns of a table, and blocks on the table to blocks on it.

An attribute's levels are in the order of its campaign, a column's in that of its kind: numbers
rise, false comes before true, and NULL is last. Where the two differ, a block's arrays are brought
into the campaign's order before it is asked. Levels that no kind of column has are text.

Not every campaign has such columns: SQL does not tell names apart by case, a campaign does.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from cube.axis import INTEGER_MAX, Axis, BooleanAxis, CategoryAxis, IntegerAxis, MeasureAxis
from cube.query import Factor, LinearQuery, Partition, QueryBlock, Scope, Term
from cube.schema import N_RECORDS_MAX, Schema
from local_dp.campaign import Attribute, Campaign, Level

N_TRUTHS = 2


@dataclass(frozen=True, eq=False)
class CollectedAxes:
    """The columns of a campaign's attributes.

    Parameters
    ----------
    axes : tuple of Axis
        One for each attribute, in order.
    moved : mapping of str to ndarray of int64
        Of the columns whose levels are in another order than their attribute's: for each of the
        attribute's levels, its place in the column.
    """

    axes: tuple[Axis, ...]
    moved: dict[str, NDArray[np.int64]]

    @classmethod
    def of(cls, campaign: Campaign) -> "CollectedAxes":
        """The columns of a campaign.

        Raises
        ------
        ValueError
            If an attribute's levels are no column's.
        """
        axes, moved = [], {}
        for attribute in campaign.attributes:
            axis, order = _axis(attribute)
            axes.append(axis)
            if order != sorted(order):
                moved[axis.name] = np.argsort(order)
        return cls(tuple(axes), moved)

    def schema(self, table: str) -> Schema:
        """The public schema of a table of these columns.

        Raises
        ------
        ValueError
            If they cannot be the columns of one table.
        """
        return Schema(table=table, axes=self.axes, n_records_max=N_RECORDS_MAX)

    def of_campaign(self, block: QueryBlock) -> QueryBlock:
        """A block with its levels in the campaign's order."""
        if not self.moved.keys() & set(block.scope):
            return block
        terms = tuple(
            Term(
                term.scale,
                tuple(Factor(one.axes, self._taken(one.values, one.axes)) for one in term.factors),
            )
            for term in block.query.terms
        )
        parts = block.partition
        if parts is not None:
            parts = Partition(parts.axes, self._taken(parts.labels, parts.axes))
        return QueryBlock(LinearQuery(terms, block.query.constant), parts)

    def of_columns(self, values: NDArray[np.float64], names: Scope) -> NDArray[np.float64]:
        """An array over attributes' levels in the order of the columns'."""
        for dimension, name in enumerate(names):
            if name in self.moved:
                values = values.take(np.argsort(self.moved[name]), axis=dimension)
        return values

    def _taken(self, values: NDArray[np.int64], axes: Scope) -> NDArray[np.int64]:
        for dimension, name in enumerate(axes):
            if name in self.moved:
                values = values.take(self.moved[name], axis=dimension)
        return values


def _axis(attribute: Attribute) -> tuple[Axis, list[int]]:
    """A column, and the places of its levels among the attribute's."""
    name, levels = attribute.name, attribute.levels
    null = [place for place, level in enumerate(levels) if level is None]
    regular = [place for place, level in enumerate(levels) if level is not None]
    kinds = {type(levels[place]) for place in regular}
    if kinds == {bool} and len(regular) == N_TRUTHS:
        ordered = sorted(regular, key=lambda place: bool(levels[place]))
        return BooleanAxis(name=name, null=bool(null)), ordered + null
    if kinds == {int}:
        numbers = sorted((int(levels[place] or 0), place) for place in regular)
        found = _number_axis(name, [number for number, _ in numbers], null=bool(null))
        if found is not None:
            return found, [place for _, place in numbers] + null
    texts = _texts([levels[place] for place in regular])
    return CategoryAxis(name=name, values=texts, null=bool(null)), regular + null


def _number_axis(name: str, numbers: Sequence[int], *, null: bool) -> Axis | None:
    """The column of numbers that lie equally far apart, none too large."""
    low, high = numbers[0], numbers[-1]
    steps = {after - before for before, after in pairwise(numbers)}
    if len(steps) > 1 or max(abs(low), abs(high)) > INTEGER_MAX:
        return None
    if steps <= {1}:
        return IntegerAxis(name=name, low=low, high=high, null=null)
    return MeasureAxis(name=name, low=low, high=high, step=Fraction(steps.pop()), null=null)


def _texts(levels: Sequence[Level]) -> tuple[str, ...]:
    """Levels as text: as it is, or as JSON has it; all of them so if two would be the same."""
    texts = tuple(one if isinstance(one, str) else json.dumps(one) for one in levels)
    return texts if len(set(texts)) == len(texts) else tuple(map(json.dumps, levels))
