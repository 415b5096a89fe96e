"""OPTIONS(consistency => ..): the counts of grouping sets must agree with one another.

    SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(consistency => 'exact') sex, race, COUNT(*)
    FROM adult GROUP BY CUBE(sex, race)

Here the sets are described as tables; `proxy/engine/consistency.py` makes the answers agree.
"""

import math
from collections.abc import Iterable, Sequence

from cube.refusals import TooLarge, UnsupportedSql
from planner.consistent_sets import Consistency, ConsistentSets
from planner.lowering.parts import PartBuilder
from planner.sql.options import AnswerOptions

N_JOINT_CELLS_MAX = 2**16  # can be fitted in a second or two
N_CELLS_MAX = 1024  # of all sets: computing the law of each error takes some milliseconds
COUNT = "COUNT(*)"


def ask_consistency(part: PartBuilder, answers: Iterable[int], manner: AnswerOptions) -> None:
    """Mark a part's counts as consistent, if its SELECT asks for that.

    Parameters
    ----------
    part : PartBuilder
    answers : iterable of int
        The positions of the answers that the SELECT shows.
    manner : AnswerOptions

    Raises
    ------
    InvalidTarget
        If there are no grouping sets.
    UnsupportedSql
        If anything other than counts is requested, or the groups of a set do not form a table.
    TooLarge
        If the sets have too many groups.
    """
    if manner.consistency is None or manner.consistency is Consistency.RAW:
        return
    if part.n_sections < 2 or not part.keys:  # noqa: PLR2004 - one table agrees with itself
        manner.refuse_consistency()
    is_count = [aggregate.sql for aggregate in part.aggregates] == [COUNT]
    if not is_count or any(part.is_formula(place) for place in answers):
        raise UnsupportedSql(
            "Consistency is for grouping sets of COUNT(*) alone.",
            hint="Ask the other aggregates in a SELECT of their own.",
        )
    sizes = [len(_levels(part, place)) for place in range(len(part.keys))]
    counts = [math.prod(sizes[place] for place in one) for one in part.sets]
    if sum(counts) != part.n_rows:
        raise UnsupportedSql(
            "The grouping sets are no tables: some combinations of their keys are not possible.",
            hint="Group by columns that are not functions of each other, and let WHERE tie none.",
        )
    _check_size(part, sizes, manner.consistency)
    part.consistency = ConsistentSets(
        manner.consistency, tuple(map(tuple, part.sets)), tuple(sizes)
    )


def _check_size(part: PartBuilder, sizes: Sequence[int], consistency: Consistency) -> None:
    if consistency is Consistency.GLOBAL and math.prod(sizes) > N_JOINT_CELLS_MAX:
        raise TooLarge(
            f"A joint table of all keys has {math.prod(sizes)} cells; {N_JOINT_CELLS_MAX} are "
            "fitted.",
            hint="Group by fewer columns, or ask the call Marginals, which fits larger ones.",
        )
    if part.n_rows > N_CELLS_MAX:
        raise TooLarge(
            f"The grouping sets have {part.n_rows} groups; {N_CELLS_MAX} are made consistent in "
            "SQL.",
            hint="Ask the call Marginals, or `tacit marginals`, for larger tables.",
        )


def _levels(part: PartBuilder, place: int) -> set[object]:
    """The values that a key has where it is not summed over."""
    key = part.keys[place]
    return {
        value
        for value, left_out in zip(key.values, key.is_summed_over, strict=True)
        if not left_out
    }
