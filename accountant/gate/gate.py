"""The gate: the one way to private data, in the order that makes it safe.

    price -> refuse -> durable charge -> the only read -> noise -> durable measurement -> return

A row that was measured before may be raised to a larger weight for the difference: its noise is
then found again, as the earlier value less the exact one, and refined.

Everything that may refuse comes before the charge and looks at public things alone: the plan, the
schema, the budget, what was charged before. Between the charge and the measurement a failure loses
time, not privacy and not budget: the charge waits, and is completed, once, without another charge.

Statistics that are no rows, a noisy distance or a choice among candidates, go the same way: priced
as rows that cost every cell no less, charged, then read. What has Gaussian noise is priced by the
table's account of it (`zcdp_account.py`), on top of what rows cost.

What reads is release.py, and nothing else; nothing else has exact values, or noise found again.
Proof: proofs/gate.md.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from accountant.cost.history_cost import Price
from accountant.gate.pricing import Pricing
from accountant.gate.release import Release
from accountant.gate.statistics import charged_statistic, terms_of
from accountant.ledger.entries import Charge, ChargedBlock, Measured, TakenOver
from accountant.ledger.ledger import Ledger
from accountant.ledger.limits import Payer
from accountant.ledger.payments import BindingLimit, Payment
from accountant.ledger.table_history import StalePlan, TableHistory
from accountant.noise.laplace import LatticeNoise, NoiseSource
from accountant.source import CellCounts, Source
from cube.gaussian import Asked
from cube.measurement import UNITS_PER_EPSILON, Measurement, PlannedMeasurement
from cube.schema import Schema

__all__ = ["Budget", "CellCounts", "Gate", "Price", "Source", "StalePlan"]


@dataclass(frozen=True, slots=True)
class Budget:
    """A table's budget, in epsilon."""

    limit: Fraction
    spent: Fraction
    n_measurements: int

    @property
    def left(self) -> Fraction:
        """What may still be spent."""
        return max(Fraction(0), self.limit - self.spent)


class Gate:
    """The only caller of a source, and the only spender of one table's budget. Thread-safe."""

    def __init__(self, ledger: Ledger, schema: Schema, source: Source, noise: NoiseSource) -> None:
        self.schema = schema
        self._ledger = ledger
        self._release = Release(schema, source, noise)
        self._turns: dict[int, int] = {}  # of charges that this process is to measure

    @property
    def history(self) -> TableHistory:
        """What the ledger says of the table, as far as this process has seen it."""
        return self._ledger.history(self.schema.table)

    def measurements(self) -> Sequence[Measurement]:
        """Everything that was measured, in the order of purchase; it only grows at its end."""
        return self.history.measurements

    def payments(self) -> Sequence[Payment]:
        """Everything that was paid for, in order; it only grows at its end."""
        return self.history.payments

    def refresh(self) -> None:
        """Take in what other processes have charged and measured; LedgerUnavailable if not."""
        self._ledger.refresh()

    def noise_for(self, planned: PlannedMeasurement) -> LatticeNoise:
        """The noise that a planned measurement would have.

        Raises
        ------
        TooLarge
            If it raises a measurement whose noise cannot be refined so far.
        """
        return self.history.noise_for(planned)

    def budget(self) -> Budget:
        """The budget now."""
        history = self.history
        spent = Fraction(history.units_spent, UNITS_PER_EPSILON)
        return Budget(history.budget, spent, len(history.measurements))

    def history_now(self) -> TableHistory:
        """The history, with this moment as that at which limits are looked at."""
        return replace(self.history, now=self._ledger.now())

    def price(self, plan: Sequence[PlannedMeasurement]) -> Price:
        """What `plan` would cost. Charges nothing.

        Raises
        ------
        TooLarge
            If a row could not be measured at its weight, or raised to it, at all.
        StalePlan
            If a measurement that is to be raised has been raised since.
        """
        return Pricing(self.schema, self.history).price(plan)

    def check(
        self, plan: Sequence[PlannedMeasurement], payer: Payer, *, epsilon_cap: Fraction | None
    ) -> None:
        """Refuse a plan as `measure` would.

        Raises
        ------
        BudgetExhausted, LimitReached, CostAboveCap, TooLarge, StalePlan
        """
        pricing = Pricing(self.schema, self.history_now())
        pricing.refuse(pricing.price(plan), payer, epsilon_cap)

    def allowances(self, payer: Payer) -> tuple[BindingLimit, ...]:
        """The limits that bind somebody now."""
        return self.history_now().allowances(payer)

    def measure(
        self,
        plan: Sequence[PlannedMeasurement],
        payer: Payer,
        *,
        epsilon_cap: Fraction | None,
    ) -> tuple[Measurement, ...]:
        """Buy the measurements of `plan`, one for each of its blocks, in its order.

        Raises
        ------
        BudgetExhausted, LimitReached, CostAboveCap, TooLarge, StalePlan
            Before anything is charged.
        LedgerUnavailable, SourceUnavailable
            If the ledger could not be written, or the data not be read; a charge made waits, and
            is completed later.
        """
        if not plan:
            return ()
        measured = self.complete(self.charge(plan, payer, epsilon_cap=epsilon_cap).seq)
        if measured is None:
            raise RuntimeError("a charge that another process is about to measure")
        return measured

    def charge(
        self,
        plan: Sequence[PlannedMeasurement],
        payer: Payer,
        *,
        epsilon_cap: Fraction | None,
        n_read: int | None = None,
        statistics: Sequence[Asked] = (),
    ) -> Payment:
        """Pay for a plan, and for statistics, on the newest history there is.

        With `n_read`, the number of entries that had been read when the plan was made, a plan that
        does not know what another process has done since is stale.

        Raises
        ------
        BudgetExhausted, LimitReached, CostAboveCap, TooLarge, StalePlan, LedgerUnavailable
        InvalidRequest
            If Gaussian noise is wanted on another delta than the table's.
        """

        def charged(history: TableHistory) -> Charge:
            if n_read not in (None, len(history.read)):
                raise StalePlan("another process has charged or measured meanwhile")
            return self._charged(history, plan, statistics, payer, epsilon_cap)

        seq = self._ledger.append(self.schema.table, charged)
        payment = next(one for one in reversed(self.payments()) if one.seq == seq)
        self._turns[payment.seq] = 0
        return payment

    def complete(self, seq: int) -> tuple[Measurement, ...] | None:
        """Measure what was charged, in the turn that this process has; what it gave.

        None if the turn has been used, or another process has taken it over: one draw is made in
        a turn, and only that of the latest turn is ever kept. Statistics are in the history then.

        Raises
        ------
        SourceUnavailable, LedgerUnavailable
            If the data could not be read, or the values not be kept; the charge goes on waiting.
        """
        turn = self._turns.pop(seq, None)
        charge = self.history.pending.get(seq)
        if charge is not None and turn is not None:
            values, released = self._release.noisy_values(charge, self.history.measurements)
            body = Measured(seq, values, turn, released)
            self._ledger.append(
                self.schema.table, lambda history: body if _is_turn(history, seq, turn) else None
            )
        history = self.history
        return history.measured_under(seq) or (() if history.told_under(seq) else None)

    def take_over(self, seq: int, turn: int) -> int | None:
        """Begin a new turn to measure a charge that waits; its number.

        None if it waits no more, or another turn than `turn` has begun meanwhile.

        Raises
        ------
        LedgerUnavailable
        """
        new = self._ledger.append(
            self.schema.table,
            lambda history: TakenOver(seq) if _is_turn(history, seq, turn) else None,
        )
        if new is not None:
            self._turns[seq] = new
        return new

    def complete_pending(self) -> int:
        """Measure everything that was charged and not measured; how many charges.

        Raises
        ------
        SourceUnavailable, LedgerUnavailable
            If the data could not be read, or the values not be kept; what waits goes on waiting.
        """
        history = self.history
        waiting = sorted(history.pending)
        for seq in waiting:
            if self.take_over(seq, history.turns.get(seq, 0)) is not None:
                self.complete(seq)
        return len(waiting)

    def _charged(
        self,
        history: TableHistory,
        plan: Sequence[PlannedMeasurement],
        statistics: Sequence[Asked],
        payer: Payer,
        epsilon_cap: Fraction | None,
    ) -> Charge:
        """The charge for a plan on a history, the same that it will be judged by."""
        pricing = Pricing(self.schema, history)
        price = pricing.price(plan, statistics)
        pricing.refuse(price, payer, epsilon_cap)
        blocks = tuple(
            ChargedBlock(planned.block, history.noise_for(planned), planned.raised_from)
            for planned in plan
        )
        charged = tuple(map(charged_statistic, statistics))
        terms = terms_of(history.gaussian, statistics)
        return Charge(payer, blocks, price.units_before, price.units_after, charged, terms)


def _is_turn(history: TableHistory, seq: int, turn: int) -> bool:
    """Whether a charge waits to be measured in this turn."""
    return seq in history.pending and history.turns.get(seq, 0) == turn
