"""The price of plans on one history, and whether it may be spent. Charges nothing.

The planner prices one plan after another, each a little longer than the last. So a row that was
checked is not checked again, and the cost of a plan starts from the cost of its beginning
(cost/history_cost.py). The gate prices what it charges by the same code.

Statistics, releases that are not rows, are checked and priced here, and written into a charge. A
noisy distance or a choice costs what rows would cost; counts of units have an account of their own
(`ledger/history/unit_counts.py`), and so has Gaussian noise: on the table's terms, or for the first
time on those asked for.

Inputs are the plan, the public schema and the history of charges: nothing private, and no noisy
values except those that decide whether an earlier answer can still be raised. Proof:
proofs/gate.md, "Decisions" and "Statistics"; proofs/gaussian_noise.md, "Why the order never
changes"; proofs/units.md, "Distinct units".
"""

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

from accountant.cost import GaussianAccount, Price, price_of
from accountant.exact import answer_bound, check_read, statistic_bound
from accountant.ledger import (
    ChargedChoice,
    ChargedDistance,
    ChargedGaussian,
    ChargedStatistic,
    ChargedUnitCount,
    Payer,
    Window,
)
from accountant.ledger.history import Renewal, TableHistory, UnitCounts
from accountant.noise import GaussianNoise, LatticeNoise, OnLattice, sensitivity_of
from cube.encoding import fingerprint
from cube.grid import arrays_of
from cube.measurement import UNITS_PER_EPSILON, GaussianTerms, PlannedMeasurement
from cube.query import QueryBlock, counting, shape_of
from cube.refusals import BudgetExhausted, CostAboveCap, InvalidRequest, LimitReached, Shortfall
from cube.schema import Schema
from cube.statistic import (
    Asked,
    Choice,
    Distance,
    PlannedGaussian,
    PlannedStatistic,
    PlannedUnitCount,
    UnitCount,
)


def check_fits(block: QueryBlock, schema: Schema) -> None:
    """Raise ValueError unless the block's arrays are over axes of the schema."""
    for axes, numbers in arrays_of([block]):
        if not schema.by_name.keys() >= set(axes) or shape_of(numbers) != schema.sizes(axes):
            raise ValueError(f"a block over {axes} does not match the schema of {schema.table}")


def check_statistic(asked: Asked, schema: Schema, known: UnitCounts) -> None:
    """Check a statistic before it is charged, on a table with these counts of units.

    Raises
    ------
    ValueError, TooLarge, StalePlan
    InvalidRequest
        If it is a choice, or of units with rows left out, and the table grows.
    """
    if isinstance(asked, PlannedUnitCount):
        if isinstance(asked.count, UnitCount) and asked.count.only_cut and schema.grows is not None:
            raise InvalidRequest(
                f"Units with rows left out cannot be counted in {schema.table}: which "
                "rows are left out changes as the table grows.",
                hint="Use COUNT(DISTINCT ..) without WAS_CUT: it counts the units that are "
                "present.",
            )
        check_fits(asked.count.block, schema)
        known.noise_for(asked).lattice_bound(answer_bound(asked.count.numbers, schema))
        return
    statistic = asked.statistic
    if isinstance(statistic, Choice):
        if (statistic.within is not None) != (schema.holders is not None):
            raise ValueError("a choice is made by one holder, and only of a federated table")
        if schema.grows is not None:
            raise InvalidRequest(
                "A choice among columns covers every row, so it cannot be made while "
                f"{schema.table} grows.",
                hint="Make the synthetic table with a method that counts pairs of columns.",
            )
        for view in statistic.views:
            check_fits(QueryBlock(counting(), view), schema)
        return
    check_fits(statistic.block, schema)
    check_read(statistic.block, schema)
    if isinstance(asked, PlannedGaussian):
        noise: OnLattice = GaussianNoise.for_rho(asked.rho, sensitivity_of(statistic))
    else:
        noise = LatticeNoise.for_weight(asked.weight)
    noise.lattice_bound(statistic_bound(statistic, schema))


def charged_statistic(asked: Asked, known: UnitCounts) -> ChargedStatistic:
    """A statistic with the noise that is paid for, on a table with these counts of units."""
    if isinstance(asked, PlannedUnitCount):
        return ChargedUnitCount(asked.count, known.noise_for(asked), asked.raised_from)
    if isinstance(asked, PlannedGaussian):
        noise = GaussianNoise.for_rho(asked.rho, sensitivity_of(asked.statistic))
        return ChargedGaussian(asked.statistic, noise)
    if isinstance(asked.statistic, Distance):
        return ChargedDistance(asked.statistic, LatticeNoise.for_weight(asked.weight))
    return ChargedChoice(asked.statistic, asked.weight)


def rows_costing(statistics: Sequence[Asked], known: UnitCounts) -> list[PlannedMeasurement]:
    """Rows with the same cost as distances with Laplace noise, choices, and counts at a holder."""
    found = [asked.costing for asked in statistics if isinstance(asked, PlannedStatistic)]
    return [*found, *known.costing(_counts_among(statistics))]


def units_of_counts(statistics: Sequence[Asked], known: UnitCounts) -> int:
    """The cost of counts of units, with those among some statistics added, in units."""
    return known.units + known.added(_counts_among(statistics))


def _counts_among(statistics: Sequence[Asked]) -> list[PlannedUnitCount]:
    return [asked for asked in statistics if isinstance(asked, PlannedUnitCount)]


def account_with(
    account: GaussianAccount, plan: Sequence[PlannedMeasurement], statistics: Sequence[Asked]
) -> tuple[list[PlannedMeasurement], GaussianAccount]:
    """The account of Gaussian noise once a plan and statistics are paid for.

    Rows add nothing to it but the terms: they are paid for cell by cell. So are statistics of one
    holder of a federated table: the rows that cost as much are the other part of the result.

    Raises
    ------
    InvalidRequest
        As `terms_of`.
    """
    terms = terms_of(account, plan, statistics)
    if terms is None:
        return [], account
    with_gaussian = (asked for asked in statistics if isinstance(asked, PlannedGaussian))
    return account.paid_for(((one.statistic.block, one.rho) for one in with_gaussian), terms)


def terms_of(
    account: GaussianAccount, plan: Sequence[PlannedMeasurement], statistics: Sequence[Asked]
) -> GaussianTerms | None:
    """The terms for Gaussian noise: the table's, if it has any. None if nothing asked has it.

    Raises
    ------
    InvalidRequest
        If the table has another delta.
    """
    wanted = {planned.terms for planned in plan if planned.terms is not None}
    wanted |= {asked.terms for asked in statistics if isinstance(asked, PlannedGaussian)}
    if not wanted:
        return None
    terms = account.terms or min(wanted, key=lambda one: one.order)
    if any(one.delta != terms.delta for one in wanted):
        raise InvalidRequest(
            "The table already accounts for its Gaussian noise with another delta.",
            hint=f"Ask with delta {float(terms.delta):g}.",
        )
    return terms


def on_terms(
    plan: Sequence[PlannedMeasurement], terms: GaussianTerms | None
) -> list[PlannedMeasurement]:
    """The same plan with its Gaussian rows on these terms."""
    return [replace(one, terms=terms) if one.is_gaussian else one for one in plan]


class Pricing:
    """Prices on one history of one table. Thread-safe.

    Parameters
    ----------
    schema : Schema
    history : TableHistory
        The table's history; limits are checked at its time `now`.
    """

    def __init__(self, schema: Schema, history: TableHistory) -> None:
        self._schema = schema
        self._history = history
        self._checked: set[tuple[str, int, bool, int | None]] = set()

    def price(self, plan: Sequence[PlannedMeasurement], statistics: Sequence[Asked] = ()) -> Price:
        """The cost of a plan and of statistics, before they are charged.

        Raises
        ------
        TooLarge
            If a row cannot be measured at its weight, or raised to it, or needs too many cells.
        StalePlan
            If a measurement that the plan raises has been raised since.
        InvalidRequest
            If Gaussian noise is planned at another delta than the table's.
        """
        history = self._history
        for planned in plan:
            self._check(planned)
        for asked in statistics:
            check_statistic(asked, self._schema, history.unit_counts)
        gaussian, account = account_with(history.gaussian, plan, statistics)
        added = history.raises.added(on_terms(plan, account.terms))
        costing = [*rows_costing(statistics, history.unit_counts), *gaussian]
        price = price_of(history.cost, history.units_of_rows, [*added, *costing])
        beside = account.units + units_of_counts(statistics, history.unit_counts)
        beside += history.generations.units
        return Price(history.units_spent, price.units_after + beside, price.exact)

    def refuse(self, price: Price, payer: Payer, epsilon_cap: Fraction | None) -> None:
        """Refuse a price that may not be spent.

        Raises
        ------
        BudgetExhausted, LimitReached, CostAboveCap
        """
        history = self._history
        units = price.units_after - price.units_before
        if units > history.units_left:
            left = Fraction(history.units_left, UNITS_PER_EPSILON)
            shortfall = self._shortfall(price, left)
            raise BudgetExhausted(replace(shortfall, renews_on=self._renews_on(units)))
        for allowance in history.allowances(payer):
            left_units = allowance.units_left
            if left_units is not None and units > left_units:
                shortfall = self._shortfall(price, Fraction(left_units, UNITS_PER_EPSILON))
                window = allowance.limit.window
                raise LimitReached(
                    replace(
                        shortfall,
                        account=str(allowance.account),
                        window="" if window is Window.NEVER else str(window),
                    )
                )
        if epsilon_cap is not None and price.epsilon > epsilon_cap:
            raise CostAboveCap(self._shortfall(price, epsilon_cap))

    def _renews_on(self, units: int) -> str:
        """The day on which the budget renews, if it could then be spent on this; empty if not."""
        renewal = Renewal.of(self._history)
        return "" if renewal is None or units > self._history.units_max else renewal.next_day

    def _shortfall(self, price: Price, left: Fraction) -> Shortfall:
        return Shortfall(table=self._schema.table, epsilon_needed=price.epsilon, epsilon_left=left)

    def _check(self, planned: PlannedMeasurement) -> None:
        """Raise unless a row can be measured at its weight; decided once per row and history."""
        name = (
            fingerprint(planned.block),
            planned.weight.units,
            planned.is_gaussian,
            planned.raised_from,
        )
        if name not in self._checked:
            check_fits(planned.block, self._schema)
            check_read(planned.block, self._schema)
            noise = self._history.raises.noise_for(planned)
            noise.lattice_bound(answer_bound(planned.block, self._schema))
            self._checked.add(name)
