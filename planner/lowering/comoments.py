"""CORR, COVAR and linear regression of two columns, from sums over records that have both.

With u = x - c and v = y - d, c and d the middles of the public ranges, all of them are formulas of
COUNT, SUM(u), SUM(v), SUM(u * v) and, centred once more, SUM(u * u) and SUM(v * v). A product of
two columns is one term with a factor for each, however many levels they have together. Here are the
formulas; which linear queries they consist of is asked in `formulas.py`.
"""

from dataclasses import dataclass

from sqlglot import exp

from planner.sql.messages import DIALECT
from planner.sql.nodes import copy_of, nodes_of

COVARIANCES = (exp.CovarPop, exp.CovarSamp)
COMOMENTS = (*COVARIANCES, exp.Corr, exp.RegrSlope, exp.RegrIntercept, exp.RegrR2)
_OF_ONE_COLUMN = (exp.RegrCount, exp.RegrAvgx, exp.RegrAvgy)


@dataclass(frozen=True, slots=True)
class Sums:
    """The parts of a formula, as SQL: linear answers, and the constants they are centred at.

    Parameters
    ----------
    count : str
        Of the records that have both columns.
    x, y, products : str
        The sums of u, of v, and of their products.
    x_squares, y_squares : str
        The sums of u² - m and of v² - m, with m the middle of each range.
    x_middle, y_middle, x_middle_square, y_middle_square : str
        The constants c and d, and each m.
    """

    count: str
    x: str
    y: str
    products: str
    x_squares: str = "0"
    y_squares: str = "0"
    x_middle: str = "0"
    y_middle: str = "0"
    x_middle_square: str = "0"
    y_middle_square: str = "0"


def needs_squares(node: exp.Expr) -> tuple[bool, bool]:
    """Whether a formula needs the squares of x, and those of y."""
    needs_both = isinstance(node, exp.Corr | exp.RegrR2)
    return not isinstance(node, COVARIANCES), needs_both


def comoment(node: exp.Expr, sums: Sums) -> exp.Expr:
    """The formula of a function of two columns."""
    count = f"NULLIF({sums.count}, 0)"
    x, y = f"({sums.x} / {count})", f"({sums.y} / {count})"
    covariance = f"({sums.products} / {count} - {x} * {y})"
    x_spread = _spread(sums.x_middle_square, sums.x_squares, x, count)
    slope = f"({covariance} / {x_spread})"
    match node:
        case exp.CovarPop():
            text = covariance
        case exp.CovarSamp():
            text = f"({covariance} * {count} / NULLIF({sums.count} - 1, 0))"
        case exp.RegrSlope():
            text = slope
        case exp.RegrIntercept():
            text = f"({sums.y_middle} + {y} - {slope} * ({sums.x_middle} + {x}))"
        case _:
            y_spread = _spread(sums.y_middle_square, sums.y_squares, y, count)
            ratio = f"({covariance} / SQRT({x_spread}) / SQRT({y_spread}))"
            text = f"GREATEST(LEAST({ratio}, 1.0), -1.0)"
            if isinstance(node, exp.RegrR2):
                text = f"({text} * {text})"
    formula: exp.Expr = exp.maybe_parse(text, dialect=DIALECT)
    return formula


def as_plain_aggregates(select: exp.Select) -> None:
    """Write REGR_COUNT, REGR_AVGX and REGR_AVGY of a SELECT as COUNT and AVG."""
    for node in nodes_of(select, *_OF_ONE_COLUMN):
        y, x = node.this, node.expression
        other, value = (x, y) if isinstance(node, exp.RegrAvgy) else (y, x)
        is_known = exp.Not(this=exp.Is(this=exp.paren(other), expression=exp.null()))
        known = exp.Case(ifs=[exp.If(this=is_known, true=copy_of(value))])
        is_count = isinstance(node, exp.RegrCount)
        new = exp.Count(this=known, big_int=True) if is_count else exp.Avg(this=known)
        new.meta.update(node.meta)
        node.replace(new)


def _spread(middle: str, squares: str, mean: str, count: str) -> str:
    """A variance to divide by: NULL where it is not above 0."""
    return f"NULLIF(GREATEST({middle} + {squares} / {count} - {mean} * {mean}, 0.0), 0)"
