"""The price of plans on one history, and whether it may be spent. Charges nothing.

The planner prices one plan after another, each a little longer than the last. So a row that was
checked is not checked again, and the cost of a plan starts from the cost of its beginning
(cost/history_cost.py). The gate prices what it charges by the same code.

Inputs are the plan, the schema and the history of charges: nothing private, and no noisy values
except those that decide whether an earlier answer can still be raised. Proof: proofs/gate.md,
"Decisions".
"""

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

from accountant.cost.history_cost import Price, price_of
from accountant.exact.counted_together import check_read
from accountant.exact.exact_answers import answer_bound
from accountant.gate.statistics import (
    check_fits,
    check_statistic,
    rows_costing,
    units_of_counts,
)
from accountant.gate.terms import account_with, on_terms
from accountant.ledger.budget import Renewal
from accountant.ledger.limits import Payer, Window
from accountant.ledger.table_history import TableHistory
from cube.encoding import fingerprint
from cube.measurement import UNITS_PER_EPSILON, PlannedMeasurement
from cube.refusals import BudgetExhausted, CostAboveCap, LimitReached
from cube.schema import Schema
from cube.shortfall import Shortfall
from cube.statistic import Asked


class Pricing:
    """Prices on one history of one table. Thread-safe.

    Parameters
    ----------
    schema : Schema
    history : TableHistory
        Its `now` is the time at which limits are checked.
    """

    def __init__(self, schema: Schema, history: TableHistory) -> None:
        self._schema = schema
        self._history = history
        self._checked: set[tuple[str, int, bool, int | None]] = set()

    def price(self, plan: Sequence[PlannedMeasurement], statistics: Sequence[Asked] = ()) -> Price:
        """What a plan, and statistics, would cost.

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
        account = account_with(history.gaussian, plan, statistics)
        added = history.raises.added(on_terms(plan, account.terms))
        price = price_of(history.cost, history.units_of_rows, [*added, *rows_costing(statistics)])
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
