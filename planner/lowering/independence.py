"""DP_CHI2_TEST(a, b, GIVEN => c): whether columns are independent, as a part of one noisy table.

    SELECT DP_CHI2_TEST(education, income, GIVEN => sex) FROM adult WHERE age > 30
    SELECT statistic, p_value, .. FROM part

The private table is asked for COUNT(*) by all of the test's arguments, which are expressions like
any group key. `proxy/engine/independence.py` computes the test from the noisy counts.
"""

import math
from collections.abc import Sequence

from sqlglot import exp

from cube.refusals import InvalidTarget, TooLarge, UnsupportedSql
from planner.independence_question import IndependenceQuestion
from planner.lowering.lowering import check_key
from planner.lowering.parts import PartBuilder
from planner.lowering.summands import conjuncts
from planner.sql.messages import position, unsupported
from planner.sql.nodes import Held, children
from planner.sql.options import DEFAULT_LEVEL, MANNER, N_REPLICATES, NO_MANNER, AnswerOptions
from planner.workload import GroupKey

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
        If the test is not the only item, or does not have two columns.
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
            "A test has no relative target.",
            hint="Name a half_width: it is that of the counts of its table.",
        )
    keys = [rows.resolved(argument).unnest() for argument in _arguments(test)]
    for key in keys:
        check_key(key)
    part.group(keys, [range(len(keys))])
    manner: AnswerOptions = select.meta.get(MANNER, NO_MANNER)
    part.question = IndependenceQuestion(
        shape=_shape(part.keys, test),
        level=float(DEFAULT_LEVEL) if manner.level is None else manner.level,
        n_replicates=N_REPLICATES if manner.n_replicates is None else manner.n_replicates,
    )
    _check_size(part.question)
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
                f"{FUNCTION} stands in a SELECT with {name}.",
                hint="A test has one outcome. Filter with WHERE, or ask one test for each group.",
                position=position(select),
            )
    if others or not _is_test(first):
        node = next(item for item in select.expressions if _tests_in(item))
        raise unsupported(
            node,
            f"is not alone: {FUNCTION} shows {len(COLUMNS)} columns of its own",
            f"Ask {FUNCTION}(a, b) alone in a subquery, and use its columns outside.",
        )
    test: exp.Expr = first
    return test


def _arguments(test: exp.Expr) -> list[exp.Expr]:
    """The two columns, and what they are conditioned on."""
    plain = [one for one in test.expressions if not isinstance(one, exp.Kwarg)]
    named = [one for one in test.expressions if isinstance(one, exp.Kwarg)]
    if any(one.name.upper() != GIVEN for one in named):
        raise unsupported(
            test,
            f"has an argument by a name that is not {GIVEN}",
            f"Say {FUNCTION}(a, b, {GIVEN} => (c, d)), and options before it, as in "
            "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(replicates => 99) ..",
        )
    if len(plain) != 2 or len(named) > 1:  # noqa: PLR2004 - two columns are tested
        raise unsupported(
            test,
            "does not have two columns to test",
            f"Say {FUNCTION}(a, b) or {FUNCTION}(a, b, {GIVEN} => (c, d)).",
        )
    for one in named:
        given = one.expression.unnest()
        plain += given.expressions if isinstance(given, exp.Tuple) else [given]
    return plain


def _shape(keys: Sequence[GroupKey], test: exp.Expr) -> tuple[int, ...]:
    sizes = tuple(len(set(key.values)) for key in keys)
    if min(sizes[:2]) < 2:  # noqa: PLR2004 - what has one value depends on nothing
        raise unsupported(
            test,
            "has a column with fewer than two values under WHERE",
            "Test columns that can have several.",
        )
    if math.prod(sizes) != len(keys[0].values):
        raise unsupported(
            test,
            "has combinations of values that no record can have",
            "Test columns that are not functions of each other, and let WHERE tie none of them.",
        )
    return sizes


def _check_size(question: IndependenceQuestion) -> None:
    n_cells = math.prod(question.shape)
    if n_cells * (question.n_replicates + 1) > N_SIMULATED_CELLS_MAX:
        raise TooLarge(
            f"{question.n_replicates} replicates of a table of {n_cells} cells are more than "
            f"{N_SIMULATED_CELLS_MAX} cells.",
            hint="Group the values, as with a CASE, or ask for fewer replicates.",
        )
