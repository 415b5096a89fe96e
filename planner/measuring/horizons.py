"""Earlier horizons: what a block was when it was bought, on a table that has grown since.

A table is cut at its horizon. When the horizon moves, what was measured of everything becomes a
measurement of the levels that there were. As evidence of what analysts ask, it is still of
everything: a whole scope that was counted then was a wide purchase; and a total up to that day is
no sign that the days before it will be asked for again, since today's total needs the new ones.

The ledger's charges come in order, so the horizon at each of them is, as far as any charge shows,
the last level that anything bought so far is about. On a table that does not grow, every block is
what it was.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from cube.horizon import Horizon, reach
from cube.query import QueryBlock
from cube.schema import Schema


@dataclass(frozen=True, slots=True, eq=False)
class BoughtBlock:
    """A block as it was bought.

    Parameters
    ----------
    block : QueryBlock
        On the levels that there were; a block that cannot count a whole scope, as it is.
    schema : Schema
        With these levels.
    is_past : bool
        Whether it was about everything up to a horizon that has moved since.
    """

    block: QueryBlock
    schema: Schema
    is_past: bool = False


class Horizons:
    """The horizons of a table's charges, one after another.

    Parameters
    ----------
    schema : Schema
        As the table is now.
    """

    def __init__(self, schema: Schema) -> None:
        self._schema = schema
        self._reached = 0

    def copy(self) -> "Horizons":
        """A copy that does not change when this one does."""
        other = Horizons(self._schema)
        other._reached = self._reached
        return other

    def as_bought(self, blocks: Sequence[QueryBlock]) -> list[BoughtBlock]:
        """The blocks of the next charge."""
        axis = self._schema.grows
        if axis is None or not blocks:  # a charge for statistics alone
            return [BoughtBlock(block, self._schema) for block in blocks]
        size = self._schema.by_name[axis].size
        ends = [reach(block, axis) or size for block in blocks]
        self._reached = max([self._reached, *ends])
        if self._reached == size:
            return [BoughtBlock(block, self._schema) for block in blocks]
        then = Horizon(axis, size, self._reached)
        schema = then.cut_schema(self._schema)
        return [
            BoughtBlock(
                then.cut(block) if _may_be_wide(block, axis) else block,
                schema,
                is_past=end == self._reached,
            )
            for block, end in zip(blocks, ends, strict=True)
        ]


def _may_be_wide(block: QueryBlock, axis: str) -> bool:
    """Whether a block has no condition but on the axis: only then it may count all of a scope."""
    factors = (factor for term in block.query.terms for factor in term.factors)
    return all(factor.axes == (axis,) for factor in factors)
