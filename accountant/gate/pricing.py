"""The price of plans on one history, and whether it may be spent. Charges nothing.

The planner prices one plan after another, each a little longer than the last. So a row that was
checked is not checked again, and the cost of a plan starts from the cost of its beginning
(cost/history_cost.py). The gate prices what it charges by the same code.

Inputs are the plan, the schema and the history of charges: nothing private, and no noisy values
except those that decide whether an earlier answer can still be raised. Proof: proofs/gate.md,
"Decisions".
"""

from collections.abc import Sequence
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from typing import Final

from accountant.cost.history_cost import Price, price_of
from accountant.exact.exact_answers import answer_bound
from accountant.gate.statistics import account_with, check_fits, check_statistic, rows_costing
from accountant.ledger.limits import Payer, Window
from accountant.ledger.table_history import TableHistory
from cube.encoding import fingerprint
from cube.gaussian import Asked
from cube.measurement import UNITS_PER_EPSILON, PlannedMeasurement
from cube.refusals import BudgetExhausted, CostAboveCap, LimitReached
from cube.schema import Schema

_WIDER: Final = (
    "Ask for a wider half_width or a lower confidence; what the history can answer stays free."
)


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
        self._checked: set[tuple[str, int, int | None]] = set()

    def price(self, plan: Sequence[PlannedMeasurement], statistics: Sequence[Asked] = ()) -> Price:
        """What a plan, and statistics, would cost.

        Raises
        ------
        TooLarge
            If a row cannot be measured at its weight, or raised to it.
        StalePlan
            If a measurement that the plan raises has been raised since.
        """
        history = self._history
        for planned in plan:
            self._check(planned)
        for asked in statistics:
            check_statistic(asked, self._schema)
        added = [*history.added(plan), *rows_costing(statistics)]
        price = price_of(history.cost, history.units_of_rows, added)
        account = account_with(history.gaussian, statistics)
        return Price(history.units_spent, price.units_after + account.units, price.exact)

    def refuse(self, price: Price, payer: Payer, epsilon_cap: Fraction | None) -> None:
        """Refuse a price that may not be spent.

        Raises
        ------
        BudgetExhausted, LimitReached, CostAboveCap
        """
        history, table = self._history, self._schema.table
        units = price.units_after - price.units_before
        cost = f"This costs epsilon {_text(price.epsilon, ROUND_CEILING)}"
        if units and price.units_after > history.units_max:
            left = max(0, history.units_max - history.units_spent)
            raise BudgetExhausted(f"{cost}, and {table} has {_units_text(left)} left.", hint=_WIDER)
        for allowance in history.allowances(payer):
            left_units = allowance.units_left
            if left_units is not None and units > left_units:
                window = allowance.limit.window
                when = "" if window is Window.NEVER else f" this {window}"
                raise LimitReached(
                    f"{cost}, and {allowance.account} may spend {_units_text(left_units)} more "
                    f"on {table} with one query{when}.",
                    hint=_WIDER,
                )
        if epsilon_cap is not None and price.epsilon > epsilon_cap:
            raise CostAboveCap(
                f"{cost}, more than the cap of {_text(epsilon_cap, ROUND_FLOOR)}.",
                hint="Raise the epsilon option, or ask for a wider half_width.",
            )

    def _check(self, planned: PlannedMeasurement) -> None:
        """Raise unless a row can be measured at its weight; decided once per row and history."""
        name = (fingerprint(planned.block), planned.weight.units, planned.raised_from)
        if name not in self._checked:
            check_fits(planned.block, self._schema)
            noise = self._history.noise_for(planned)
            noise.lattice_bound(answer_bound(planned.block, self._schema))
            self._checked.add(name)


def _text(epsilon: Fraction, rounding: str) -> str:
    """Six digits of an epsilon; prices are rounded up, remaining budget is rounded down."""
    context = Context(prec=6, rounding=rounding)
    rounded = context.divide(Decimal(epsilon.numerator), Decimal(epsilon.denominator))
    return f"{rounded.normalize(context):f}"


def _units_text(units: int) -> str:
    """A remaining budget, rounded down."""
    return _text(Fraction(units, UNITS_PER_EPSILON), ROUND_FLOOR)
