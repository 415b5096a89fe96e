"""The report as one self-contained page: nothing to fetch, nothing to run.

Names of tables, columns, analysts and levels are untrusted, so every one of them goes through
Jinja's escaping; only charts, which are drawn here from numbers (charts.py), are not escaped. The
page's content security policy also forbids scripts and loading.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction
from math import isfinite
from typing import Final

from jinja2 import Environment
from markupsafe import Markup

from accountant.auditor.costs import ColumnCost
from accountant.ledger import WIDTH_BINS
from proxy.reporting import charts
from proxy.reporting.model import Account, AnswerCounts, LedgerReport, ReportedCharge, TableReport
from proxy.reporting.pages import page_environment
from proxy.reporting.wording import credential_text, dearest_charges, limit_text
from proxy.shared.amounts import of_units

ORDERED_KINDS: Final = frozenset({"integer", "numeric", "date", "measure", "timestamp"})
EPSILON_WORDS_MAX: Final = 15  # beyond it the factor is only given as more than millions
N_LISTED_MAX: Final = 3  # levels named beside a chart


@dataclass(frozen=True, slots=True)
class ColumnPicture:
    """A column's cost, as a chart and as text."""

    name: str
    kind: str
    picture: Markup
    first: str
    last: str
    most: Fraction  # no cell has paid more
    least: Fraction  # some cell has paid this much
    dearest: str  # the levels with the largest cost
    lowest: Fraction  # no cell with the cheapest level has paid more
    is_exact: bool


@dataclass(frozen=True, slots=True)
class TablePage:
    """A table, and its charts."""

    table: TableReport
    anchor: str
    timeline: Markup
    shows_budget: bool
    columns: tuple[ColumnPicture, ...]
    even: tuple[str, ...]
    dearest: tuple[tuple[ReportedCharge, str], ...]


def to_html(
    report: LedgerReport,
    versions: Mapping[str, str],
    progress: Callable[[str], None] = lambda _: None,
) -> bytes:
    """The page, as UTF-8."""
    pages = []
    for place, table in enumerate(report.tables, start=1):
        progress(f"Drawing {table.name}")
        pages.append(_page(table, report.as_of, f"table-{place}"))
    template = _environment().get_template("report.html.j2")
    text = template.render(
        report=report,
        verdict=report.verdict,
        pages=pages,
        answers=sum((table.answers for table in report.tables), AnswerCounts()),
        versions=versions,
    )
    return text.encode()


def _environment() -> Environment:
    environment = page_environment()
    environment.filters |= {
        "limit": limit_text,
        "of_units": of_units,
        "credential": credential_text,
        "by_spending": _by_spending,
        "width_bins": _width_bins,
        "users": users_text,
        "factor": odds_factor,
        "even_odds": even_odds_percent,
    }
    return environment


def _page(table: TableReport, as_of: str, anchor: str) -> TablePage:
    columns = tuple(
        _column_picture(table, cost, f"{anchor}-column-{place}")
        for place, cost in enumerate(table.columns, start=1)
    )
    declared = () if table.declared is None else table.declared.columns
    asked = {cost.column for cost in table.columns}
    even = tuple(column.name for column in declared if column.name not in asked)
    dearest = tuple(dearest_charges(table))
    drawn = charts.timeline(table, as_of, f"{anchor}-timeline")
    return TablePage(table, anchor, drawn, charts.shows_budget(table), columns, even, dearest)


def _column_picture(table: TableReport, cost: ColumnCost, name: str) -> ColumnPicture:
    declared = table.declared and table.declared.column(cost.column, cost.n_levels)

    def levels(start: int, end: int) -> str:
        if declared:
            return declared.levels(start, end)
        return f"place {start}" if end - start == 1 else f"places {start} … {end - 1}"

    ends = (*cost.starts[1:], cost.n_levels)
    units = max(cost.at_least)
    found = [
        levels(start, end)
        for start, end, one in zip(cost.starts, ends, cost.at_least, strict=True)
        if one == units
    ]
    more = "" if len(found) <= N_LISTED_MAX else f" and {len(found) - N_LISTED_MAX} more"
    kind = declared.kind if declared else ""
    return ColumnPicture(
        name=cost.column,
        kind=kind,
        picture=charts.along_column(
            cost, table.spent, name, is_ordered=kind in ORDERED_KINDS or not kind
        ),
        first=levels(0, 1),
        last=levels(cost.n_levels - 1, cost.n_levels),
        most=of_units(max(cost.at_most)),
        least=of_units(units),
        dearest="" if len(found) == len(cost.starts) else ", ".join(found[:N_LISTED_MAX]) + more,
        lowest=of_units(min(cost.at_most)),
        is_exact=cost.is_exact,
    )


def odds_factor(epsilon: Fraction) -> str:
    """The largest factor by which odds change at this epsilon: e to its power, rounded up.

    >>> odds_factor(Fraction(1)), odds_factor(Fraction(0)), odds_factor(Fraction(100))
    ('2.719', '1.000', 'more than 3 million')
    """
    if epsilon > EPSILON_WORDS_MAX:
        return "more than 3 million"
    return f"{_exponential(epsilon).quantize(Decimal('0.001'), ROUND_CEILING):,}"


def even_odds_percent(epsilon: Fraction) -> str:
    """The most that a probability of one half can become, in percent, rounded up.

    >>> even_odds_percent(Fraction(1)), even_odds_percent(Fraction(0))
    ('73.2', '50.0')
    """
    if epsilon > EPSILON_WORDS_MAX:
        return "100.0"
    factor = _exponential(epsilon)
    context = Context(prec=30, rounding=ROUND_CEILING)
    share = context.divide(100 * factor, 1 + factor)
    return f"{share.quantize(Decimal('0.1'), ROUND_CEILING)}"


def _exponential(epsilon: Fraction) -> Decimal:
    """An upper bound on e to the power of an epsilon; at least 1."""
    if not epsilon:
        return Decimal(1)
    up = Context(prec=30, rounding=ROUND_CEILING)
    exponent = up.divide(Decimal(epsilon.numerator), Decimal(epsilon.denominator))
    return up.exp(exponent).next_plus(up)


def users_text(number: float) -> str:
    """A number of users, to the nearest.

    >>> users_text(1234.6), users_text(-2.0), users_text(float("inf"))
    ('1,235', '-2', 'any number')
    """
    return f"{round(number):,}" if isfinite(number) else "any number"


def _by_spending(accounts: Sequence[Account]) -> list[Account]:
    return sorted(accounts, key=lambda account: (-account.units, account.name))


def _width_bins(answers: AnswerCounts) -> list[tuple[str, int]]:
    """The bins of interval widths, each with its name and count."""
    lows = (0.0, *WIDTH_BINS[:-1])
    names = [f"{low:.0%} to {high:.0%}" for low, high in zip(lows, WIDTH_BINS, strict=True)]
    return list(zip([*names, "wider than promised"], answers.widths, strict=True))
