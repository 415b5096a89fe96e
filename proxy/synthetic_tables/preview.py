"""What a synthetic table would cost, step by step. Plans only: nothing is charged or read."""

from dataclasses import dataclass, replace
from fractions import Fraction

from proxy.synthetic_tables.gaussian_spending import GaussianBudget
from proxy.synthetic_tables.make import check_delta, checked_axes, columns_of
from proxy.synthetic_tables.network_settings import check_score, settings_of
from proxy.synthetic_tables.pairwise_measurer import known_now
from proxy.synthetic_tables.request import Method, PlannedStep, SynthesisRequest
from proxy.tables.private_table import ServedTable
from synthesis.choice import GAUSSIAN, LAPLACE, NoiseCost, score_share
from synthesis.known import KnownEstimates
from synthesis.pairwise import TOTAL_SHARE, one_way_budgets, worth_scoring
from synthesis.strata import SCORE_SHARE, strata_of
from synthesis.tables import Column


def preview(table: ServedTable, request: SynthesisRequest) -> tuple[PlannedStep, ...]:
    """What each step would cost. Charges nothing.

    Raises
    ------
    UnknownName, TooLarge, InvalidTarget, InvalidRequest
    """
    columns = columns_of(checked_axes(table.info.schema, request))
    check_delta(table, request)
    check_score(columns, request)
    known = known_now(table, columns)
    steps = [PlannedStep(name="reading the history", epsilon=Fraction(0), n_tables=len(known))]
    if not request.epsilon:
        return tuple(steps)
    schema = table.info.schema
    left, cost = float(schema.per_row(request.epsilon)), LAPLACE
    price = float(schema.rows_per_unit_max)
    if request.delta is not None:
        bought = GaussianBudget.of(table, request.epsilon, request.delta)
        steps.append(_planned("opening Gaussian noise", float(bought.opening), 0))
        left, cost, price = float(bought.budget), GAUSSIAN, float(bought.epsilon_per_budget)
    if known.n_rows is None:  # until rows are counted, use the public bound
        known = replace(known, n_rows=float(table.info.schema.n_records_max))
        steps.append(_planned("counting rows", price * TOTAL_SHARE * left, 1))
        left -= TOTAL_SHARE * left
    if request.method is Method.PRIVBAYES:
        for_network = float(settings_of(request).network_share) * left
        steps.append(_planned("choosing the network", price * for_network, len(columns) - 1))
        steps.append(_planned("measuring tables", price * (left - for_network), len(columns)))
        return tuple(steps)
    strata = strata_of(columns, request.target)
    if strata:
        # Each class is planned like a table of its own. Rows are in one class, so one price pays
        columns = tuple(column for column in columns if column.name not in request.target)
        known = KnownEstimates(n_rows=(known.n_rows or 0.0) / len(strata))
    plan = _Plan(columns, known, cost, n_classes=max(1, len(strata)))
    return (*steps, *plan.steps(left, price))


@dataclass(frozen=True, slots=True)
class _Plan:
    """The purchases of the pairwise method for some rows, and for others like them."""

    columns: tuple[Column, ...]
    known: KnownEstimates
    cost: NoiseCost
    n_classes: int

    def steps(self, left: float, price: float) -> list[PlannedStep]:
        """What columns, scores and pairs cost, of a budget; `price` is the epsilon of a unit."""
        n_pairs = len(self.columns) * (len(self.columns) - 1) // 2
        if self.n_classes > 1:
            return self._steps_of_classes(left, price, n_pairs)
        budgets = one_way_budgets(self.columns, self.known, left, self.cost)
        steps = [_planned("measuring columns", price * sum(budgets.values()), len(budgets))]
        rest = left - sum(budgets.values())
        if not n_pairs or not worth_scoring(rest, left):
            return steps
        for_scores = score_share(n_pairs, self.known.n_rows or 0.0, rest, self.cost) * rest
        return [
            *steps,
            _planned("scoring pairs", price * for_scores, n_pairs),
            _planned("measuring pairs", price * (rest - for_scores), n_pairs),
        ]

    def _steps_of_classes(self, left: float, price: float, n_pairs: int) -> list[PlannedStep]:
        """The same for classes whose sizes are not known: the dearest may take all that is left."""
        n_columns = self.n_classes * len(self.columns)
        if not n_pairs:
            return [_planned("measuring columns", price * (1 - SCORE_SHARE) * left, n_columns)]
        rest = (1 - SCORE_SHARE) * left
        for_columns = sum(one_way_budgets(self.columns, self.known, rest, self.cost).values())
        n_pairs *= self.n_classes
        return [
            _planned("measuring columns", price * for_columns, n_columns),
            _planned("scoring pairs", price * SCORE_SHARE * left, n_pairs),
            _planned("measuring pairs", price * (rest - for_columns), n_pairs),
        ]


def _planned(name: str, epsilon: float, n_tables: int) -> PlannedStep:
    return PlannedStep(name=name, epsilon=Fraction(epsilon), n_tables=n_tables)
