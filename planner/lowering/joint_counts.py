"""Lowers joint counts of one table: consistent grouping sets, and tests of independence.

OPTIONS(consistency => ..): the counts of grouping sets must agree with one another.

    SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(consistency => 'exact') sex, race, COUNT(*)
    FROM adult GROUP BY CUBE(sex, race)

Here the sets are described as tables; the engine makes the answers agree.

DP_CHI2_TEST(a, b, GIVEN => c): whether columns are independent, as a part of one noisy table.

    SELECT DP_CHI2_TEST(education, income, GIVEN => sex) FROM adult WHERE age > 30
    SELECT DP_CHI2_TEST(education, income, sex) FROM adult
    SELECT statistic, p_value, .. FROM part

The private table is asked for COUNT(*) by all of the test's arguments, which are expressions like
any group key. `proxy/engine/answers/count_statistics.py` computes the test from the noisy counts.
"""

import math
from collections.abc import Iterable, Sequence

from sqlglot import exp

from cube.refusals import InvalidTarget, TooLarge, UnsupportedSql
from planner.lowering.lowering import check_key
from planner.lowering.parts import PartBuilder
from planner.lowering.summands import conjuncts
from planner.sql import (
    DEFAULT_LEVEL,
    MANNER,
    N_REPLICATES,
    NO_MANNER,
    AnswerOptions,
    Held,
    children,
    position,
    unsupported,
)
from planner.workload import Consistency, ConsistentSets, GroupKey, IndependenceQuestion

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
            "Consistency works only for grouping sets of COUNT(*).",
            hint="Put the other aggregates in a separate SELECT.",
        )
    sizes = [len(_levels(part, place)) for place in range(len(part.keys))]
    counts = [math.prod(sizes[place] for place in one) for one in part.sets]
    if sum(counts) != part.n_rows:
        raise UnsupportedSql(
            "The grouping sets cannot be made consistent: some combinations of their keys are "
            "impossible.",
            hint="Group by columns that do not determine each other, and do not relate them in "
            "WHERE.",
        )
    _check_joint_size(part, sizes, manner.consistency)
    part.consistency = ConsistentSets(
        manner.consistency, tuple(map(tuple, part.sets)), tuple(sizes)
    )


def _check_joint_size(part: PartBuilder, sizes: Sequence[int], consistency: Consistency) -> None:
    if consistency is Consistency.GLOBAL and math.prod(sizes) > N_JOINT_CELLS_MAX:
        raise TooLarge(
            f"A joint table of all keys has {math.prod(sizes)} cells; at most "
            f"{N_JOINT_CELLS_MAX} can be fitted.",
            hint="Group by fewer columns, or use the call Marginals, which fits larger tables.",
        )
    if part.n_rows > N_CELLS_MAX:
        raise TooLarge(
            f"The grouping sets have {part.n_rows} groups; SQL makes at most {N_CELLS_MAX} "
            "consistent.",
            hint="Use the call Marginals, or `tacit marginals`, for larger tables.",
        )


def _levels(part: PartBuilder, place: int) -> set[object]:
    """The values that a key has where it is not summed over."""
    key = part.keys[place]
    return {
        value
        for value, left_out in zip(key.values, key.is_summed_over, strict=True)
        if not left_out
    }


FUNCTION = "DP_CHI2_TEST"
GIVEN = "GIVEN"
COLUMNS = (
    "statistic",
    "p_value",
    "degrees_of_freedom",
    "decision",
    "reason",
    "level",
    "replicates",
)
N_SIMULATED_CELLS_MAX = 2**22  # of all replicates together: about three seconds

_FORBIDDEN = {
    "group": "GROUP BY",
    "having": "HAVING",
    "distinct": "DISTINCT",
    "qualify": "QUALIFY",
    "windows": "WINDOW",
    "order": "ORDER BY",
}


def asks_independence(select: exp.Select) -> bool:
    """Whether an item of a SELECT list is or contains a test."""
    return any(_tests_in(item) for item in select.expressions)


def lower_test(select: exp.Select, part: PartBuilder) -> None:
    """Make `part` the table of the only test of a SELECT, which then shows its outcome.

    Raises
    ------
    UnsupportedSql
        If the test is not the only item, or does not have two columns or more.
    TooLarge
        If the table has too many cells for the requested replicates.
    InvalidTarget
        If its target is relative.
    """
    test = _the_test(select)
    rows = part.rows
    where = select.args.get("where")
    own = () if where is None else tuple(conjuncts(rows.resolved(where.this)))
    part.conditions = (*(one for given in rows.conditions for one in conjuncts(given)), *own)
    if part.requested.relative is not None:
        raise InvalidTarget(
            "A test cannot have a relative target.",
            hint="Set half_width instead: the half-width of each count in the test's table.",
        )
    arguments, n_tested = _arguments(test)
    keys = [rows.resolved(argument).unnest() for argument in arguments]
    for key in keys:
        check_key(key)
    part.group(keys, [range(len(keys))])
    manner: AnswerOptions = select.meta.get(MANNER, NO_MANNER)
    part.question = IndependenceQuestion(
        shape=_shape(part.keys, test, n_tested),
        level=float(DEFAULT_LEVEL) if manner.level is None else manner.level,
        n_replicates=N_REPLICATES if manner.n_replicates is None else manner.n_replicates,
        n_tested=n_tested,
        is_likelihood_ratio=bool(manner.is_likelihood_ratio),
    )
    _check_simulated_size(part.question)
    part.aggregate(exp.Count(this=exp.Star(), big_int=True))
    select.set(
        "expressions", [exp.column(exp.to_identifier(name, quoted=True)) for name in COLUMNS]
    )
    for clause in ("where", "joins"):
        select.set(clause, None)
    select.set("from_", exp.From(this=exp.Table(this=exp.to_identifier(part.name, quoted=True))))


def _tests_in(node: exp.Expr) -> bool:
    if isinstance(node, exp.Query | exp.Subquery | Held):
        return False
    return _is_test(node) or any(map(_tests_in, children(node)))


def _is_test(node: exp.Expr) -> bool:
    return isinstance(node, exp.Anonymous) and node.name.upper() == FUNCTION


def _the_test(select: exp.Select) -> exp.Expr:
    (first, *others) = select.expressions
    for clause, name in _FORBIDDEN.items():
        if select.args.get(clause):
            raise UnsupportedSql(
                f"{FUNCTION} cannot be used in a SELECT with {name}.",
                hint="A test has one outcome. Filter with WHERE, or run one test for each group.",
                position=position(select),
            )
    if others or not _is_test(first):
        node = next(item for item in select.expressions if _tests_in(item))
        raise unsupported(
            node,
            f"is not the only item: {FUNCTION} itself gives {len(COLUMNS)} columns",
            f"Use {FUNCTION}(a, b) alone in a subquery, and use its columns outside.",
        )
    test: exp.Expr = first
    return test


def _arguments(test: exp.Expr) -> tuple[list[exp.Expr], int]:
    """The tested columns and what they are conditioned on, and how many are tested."""
    plain = [one for one in test.expressions if not isinstance(one, exp.Kwarg)]
    named = [one for one in test.expressions if isinstance(one, exp.Kwarg)]
    if any(one.name.upper() != GIVEN for one in named):
        raise unsupported(
            test,
            f"has a named argument other than {GIVEN}",
            f"Use {FUNCTION}(a, b, {GIVEN} => (c, d)). Options come before it, as in SELECT "
            "WITH DIFFERENTIAL_PRIVACY OPTIONS(replicates => 99) ..",
        )
    n_tested = len(plain)
    if n_tested < 2 or len(named) > 1:  # noqa: PLR2004 - what depends, and on what
        raise unsupported(
            test,
            "does not name two columns to test",
            f"Use {FUNCTION}(a, b), {FUNCTION}(a, b, c) for all three together, or {FUNCTION}(a, "
            f"b, {GIVEN} => (c, d)).",
        )
    for one in named:
        given = one.expression.unnest()
        plain += given.expressions if isinstance(given, exp.Tuple) else [given]
    return plain, n_tested


def _shape(keys: Sequence[GroupKey], test: exp.Expr, n_tested: int) -> tuple[int, ...]:
    sizes = tuple(len(set(key.values)) for key in keys)
    if min(sizes[:n_tested]) < 2:  # noqa: PLR2004 - what has one value depends on nothing
        raise unsupported(
            test,
            "tests a column that has fewer than two possible values under WHERE",
            "Test columns that have at least two possible values.",
        )
    if math.prod(sizes) != len(keys[0].values):
        raise unsupported(
            test,
            "tests columns some of whose combinations of values are impossible",
            "Test columns that do not determine each other, and do not relate them in WHERE.",
        )
    return sizes


def _check_simulated_size(question: IndependenceQuestion) -> None:
    n_cells = math.prod(question.shape)
    if n_cells * (question.n_replicates + 1) > N_SIMULATED_CELLS_MAX:
        raise TooLarge(
            f"{question.n_replicates} replicates of a table of {n_cells} cells exceed the limit "
            f"of {N_SIMULATED_CELLS_MAX} simulated cells.",
            hint="Group the values, for example with CASE, or ask for fewer replicates.",
        )
