"""The `[budgets.NAME]` sections: budgets that several tables about the same units spend together.

Epsilons and deltas are exact numbers, as a configuration file writes them. Nothing here opens the
data. That costs add up is the ledger's work (accountant/ledger/history/replay.py).
"""

import re
from collections.abc import Iterable, Mapping
from fractions import Fraction
from itertools import combinations
from typing import Any

from pydantic import field_validator

from accountant.gate import Funds
from accountant.ledger import Window
from cube.measurement import DELTA_MIN, UNITS_PER_EPSILON, WEIGHT_UNITS_MAX
from cube.schema import Schema
from planner.sql import listed
from proxy.sources import Problems, Section, TableLocation

EPSILON_MAX = Fraction(
    WEIGHT_UNITS_MAX, UNITS_PER_EPSILON
)  # above it there is no meaningful guarantee
DELTA_MAX = Fraction(1, 10**5)  # delta times the number of records must be far below 1
DECIMAL = re.compile(r"[0-9]{1,20}(\.[0-9]{1,40})?", re.ASCII)
SCIENTIFIC = re.compile(r"[0-9](\.[0-9]{1,20})?[eE]-[0-9]{1,2}", re.ASCII)


def parse_epsilon(value: Any) -> Fraction | None:
    """A positive epsilon, exactly as written; None if the value is not one.

    >>> parse_epsilon("0.1"), parse_epsilon(0.1), parse_epsilon("1e3"), parse_epsilon(True)
    (Fraction(1, 10), Fraction(1, 10), None, None)
    """
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return None
    if isinstance(value, str) and not DECIMAL.fullmatch(value):
        return None
    try:
        # The file says the shortest decimal of a float, not its binary value.
        epsilon = Fraction(value if isinstance(value, str) else repr(value))
    except ValueError:
        return None
    return epsilon if 0 < epsilon <= EPSILON_MAX else None


def parse_delta(value: Any) -> Fraction | None:
    """A delta, exactly as written; None if the value is not one.

    >>> parse_delta(1e-9) == parse_delta("1e-9") == Fraction(1, 10**9)
    True
    >>> parse_delta(0), parse_delta(0.5), parse_delta("tiny")
    (Fraction(0, 1), None, None)
    """
    written = value if isinstance(value, str) else repr(value)
    if isinstance(value, bool) or not (DECIMAL.fullmatch(written) or SCIENTIFIC.fullmatch(written)):
        return None
    delta = Fraction(written)
    return delta if delta == 0 or DELTA_MIN <= delta <= DELTA_MAX else None


NAME_LENGTH_MAX = 63
RENEWALS = tuple(window.value for window in Window if window is not Window.NEVER)
NOTHING = Fraction(1)  # stands for a budget with a problem, which is recorded


class BudgetSection(Section):
    """One budget as the file declares it."""

    epsilon: str | int | float
    renews: str | None = None

    @field_validator("epsilon", mode="before")
    @classmethod
    def _epsilon_is_exact(cls, value: Any) -> Any:
        if parse_epsilon(value) is None:
            raise ValueError(f'should be a positive decimal up to {EPSILON_MAX}, such as "1.0"')
        return value

    @field_validator("renews")
    @classmethod
    def _renewal_is_a_window(cls, value: str | None) -> str | None:
        return checked_renewal(value)


def is_budget_name(value: Any) -> bool:
    """Whether a value may be the name of a budget: a text that is no number.

    >>> is_budget_name("people"), is_budget_name("1.0"), is_budget_name("-1"), is_budget_name(2)
    (True, False, False, False)
    """
    if not isinstance(value, str) or not 1 <= len(value) <= NAME_LENGTH_MAX:
        return False
    return value.isprintable() and value == value.strip() and value[0].isalpha()


def checked_renewal(value: str | None) -> str | None:
    """How often a budget renews; ValueError if it is no window that ends."""
    if value is not None and value not in RENEWALS:
        raise ValueError(f"should be one of {', '.join(RENEWALS)}")
    return value


def read_budgets(values: Any, problems: Problems) -> dict[str, Funds]:
    """What tables may spend of each budget, by its name.

    Parameters
    ----------
    values : mapping
        The contents of `[budgets]`.
    problems : Problems
        Where problems are recorded.
    """
    if not isinstance(values, Mapping):
        problems.add(("budgets",), "should hold budgets, as [budgets.NAME]")
        return {}
    found = {}
    for name, value in values.items():
        if not is_budget_name(name):
            problems.add(("budgets", name), "should have a name that begins with a letter")
        section = problems.section(BudgetSection, value, ("budgets", name))
        epsilon = None if section is None else parse_epsilon(section.epsilon)
        if epsilon is not None:
            renews = Window.NEVER if section is None else window_of(section.renews)
            found[name] = Funds(epsilon, shared=name, renews=renews)
    return found


def window_of(renews: str | None) -> Window:
    """The window in which a budget may be spent; never ending if nothing is declared."""
    return Window.NEVER if renews is None else Window(renews)


def funds_of(  # noqa: PLR0913, PLR0917 - what the file says, and where to say what is wrong
    budget: str | int | float,  # noqa: PYI041 - what the file may hold
    renews: str | None,
    separate: str,
    budgets: Mapping[str, Funds],
    keys: tuple[str, ...],
    problems: Problems,
) -> Funds:
    """What a table may spend: of its own, or from a budget that it names.

    Parameters
    ----------
    budget : str, int or float
        An epsilon or a name.
    renews : str, optional
        How often a budget of its own renews.
    separate : str
        Why the table has a budget of its own beside another about the same units.
    budgets : mapping of str to Funds
        What tables may spend of each shared budget.
    keys : tuple of str
        Of the table in the file.
    problems : Problems
        Where problems are recorded.
    """
    own = parse_epsilon(budget)
    if own is not None:
        return Funds(own, separate=separate, renews=window_of(renews))
    if separate:
        problems.add((*keys, "separate_budget"), "is for a table with a budget of its own")
    if renews is not None:
        problems.add((*keys, "budget_renews"), "is for a table with a budget of its own")
    name = str(budget)
    if name not in budgets:
        known = f"; there is {listed(list(budgets))}" if budgets else ""
        problems.add((*keys, "budget"), f"names no budget of [budgets]{known}")
    return budgets.get(name, Funds(NOTHING, shared=name))


def check_same_people(
    tables: Iterable[tuple[Schema, TableLocation, Funds]], problems: Problems
) -> None:
    """Record a problem if tables share a budget without units, or add up unseen.

    They add up unseen if two are about the same unit, read from a common file or database, and do
    not share.
    """
    tables = list(tables)
    for schema, _, funds in tables:
        if funds.shared and schema.unit is None:
            problems.add(
                ("tables", schema.table, "unit"),
                "should name the column that says whom a row is about: a shared budget is theirs",
            )
    with_unit = [one for one in tables if one[0].unit is not None]
    for (first, at_first, of_first), (second, at_second, of_second) in combinations(with_unit, 2):
        places = [set(one.places) for one in (at_first, at_second)]
        is_same = (first.unit or "").casefold() == (second.unit or "").casefold()
        is_shared = of_first.shared and of_first.shared == of_second.shared
        if not is_same or places[0].isdisjoint(places[1]) or is_shared:
            continue
        if not (of_first.separate or of_second.separate):
            problems.add(
                ("tables", second.table, "budget"),
                f"is about the same {second.unit} and data as {first.table}, so their spending "
                'adds up. Let them share one, as [budgets.NAME] and budget = "NAME" in both, '
                'or say why not: separate_budget = "..."',
            )
