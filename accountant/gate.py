"""The gate: the one way to private data, in the order that makes it safe.

    price -> refuse -> durable charge -> the only read -> noise -> durable measurement -> return

A row that was measured before may be raised to a larger weight for the difference: its noise is
then found again, as the earlier value less the exact one, and refined.

Everything that may refuse comes before the charge and looks at public things alone: the plan, the
schema, the budget, what was charged before. Between the charge and the measurement a failure loses
time, not privacy and not budget: the charge waits, and is completed, once, without another charge.

Exact values, and noise found again, are locals of `_read_and_add_noise` and of what it calls, and
of nothing else.
Proof: proofs/gate.md.
"""

import hashlib
import hmac
import threading
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction

from accountant.contraction import answer_bound, exact_answers
from accountant.cost import Price, price_of
from accountant.entries import BudgetSet, Charge, ChargedBlock, Measured, TableOpened
from accountant.ledger import Ledger
from accountant.noise import LatticeNoise, NoiseSource
from accountant.replay import StalePlan, TableHistory
from accountant.source import CellCounts, Source
from cube.block import QueryBlock
from cube.encoding import canonical_json, fingerprint
from cube.grid import arrays_of
from cube.measurement import UNITS_PER_EPSILON, Measurement, PlannedMeasurement
from cube.query import Scope
from cube.refusals import (
    BudgetExhausted,
    CostAboveCap,
    DataChanged,
    LedgerMismatch,
    SourceUnavailable,
)
from cube.schema import Schema

__all__ = ["Budget", "CellCounts", "Gate", "Price", "Source", "StalePlan", "open_table"]


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


def open_table(
    ledger: Ledger, schema: Schema, budget: Fraction, source: Source, noise: NoiseSource
) -> "Gate":
    """The gate of one table, its history replayed from the ledger.

    Raises
    ------
    LedgerMismatch
        If the ledger knows the table by another schema.
        Also if it knows this data under another name, whose budget would then be spent twice.
    DataChanged
        If it knows the table with other data.
    """
    opened = ledger.history(schema.table).opened
    seen = TableOpened(_schema_digest(schema), source.fingerprint(ledger.key), budget)
    if opened is None:
        _check_new_data(schema.table, ledger.openings(), seen)
        ledger.append(schema.table, seen)
    else:
        _check_same_table(schema.table, opened, seen)
        if ledger.history(schema.table).budget != budget:
            ledger.append(schema.table, BudgetSet(budget))
    gate = Gate(ledger, schema, source, noise)
    with suppress(SourceUnavailable, RuntimeError):  # what waits goes on; history still answers
        gate.complete_pending()
    return gate


class Gate:
    """The only caller of a source, and the only spender of one table's budget. Thread-safe."""

    def __init__(self, ledger: Ledger, schema: Schema, source: Source, noise: NoiseSource) -> None:
        self.schema = schema
        self._ledger = ledger
        self._source = source
        self._noise = noise
        self._mutex = threading.RLock()

    @property
    def _history(self) -> TableHistory:
        return self._ledger.history(self.schema.table)

    def measurements(self) -> Sequence[Measurement]:
        """Everything that was measured, in the order of purchase; it only grows at its end."""
        return self._history.measurements

    def charges(self) -> tuple[Charge, ...]:
        """Everything that was paid for, in order; it only grows at its end."""
        return self._history.charges

    def noise_for(self, planned: PlannedMeasurement) -> LatticeNoise:
        """The noise that a planned measurement would have.

        Raises
        ------
        TooLarge
            If it raises a measurement whose noise cannot be refined so far.
        """
        return self._history.noise_for(planned)

    def budget(self) -> Budget:
        """The budget now."""
        history = self._history
        spent = Fraction(history.units_spent, UNITS_PER_EPSILON)
        return Budget(history.budget, spent, len(history.measurements))

    def price(self, plan: Sequence[PlannedMeasurement]) -> Price:
        """What `plan` would cost. Reads no data and charges nothing.

        Raises
        ------
        TooLarge
            If a row could not be measured at its weight, or raised to it, at all.
        StalePlan
            If a measurement that is to be raised has been raised since.
        """
        history = self._history
        for planned in plan:
            _check_fits(planned.block, self.schema)
            noise = history.noise_for(planned)
            noise.lattice_bound(answer_bound(planned.block, self.schema))
        return price_of(history.cost, history.units_spent, history.added(plan))

    def check(self, plan: Sequence[PlannedMeasurement], *, epsilon_cap: Fraction | None) -> None:
        """Refuse a plan as `measure` would; reads no data and charges nothing.

        Raises
        ------
        BudgetExhausted, CostAboveCap, TooLarge, StalePlan
        """
        self._refuse(self.price(plan), epsilon_cap)

    def measure(
        self,
        plan: Sequence[PlannedMeasurement],
        *,
        analyst: str,
        epsilon_cap: Fraction | None,
    ) -> tuple[Measurement, ...]:
        """Buy the measurements of `plan`, one for each of its blocks, in its order.

        Charges that still wait for their measurement are completed first, and serve this plan
        where it asks for the same block at the same weight: nothing is paid twice.

        Raises
        ------
        BudgetExhausted, CostAboveCap, TooLarge, StalePlan
            Before anything is charged.
        SourceUnavailable
            If the data could not be read; a charge made is completed later.
        """
        with self._mutex:
            waiting = deque(self._complete_pending())
            served: list[Measurement | None] = [_taken(waiting, planned) for planned in plan]
            missing = [
                planned for planned, found in zip(plan, served, strict=True) if found is None
            ]
            bought = iter(self._bought(missing, analyst, epsilon_cap) if missing else ())
            return tuple(next(bought) if found is None else found for found in served)

    def complete_pending(self) -> int:
        """Measure what was charged and not measured, under the same charge; how many blocks.

        Raises
        ------
        SourceUnavailable
            If the data could not be read; what waits goes on waiting.
        """
        with self._mutex:
            return len(self._complete_pending())

    def _bought(
        self, plan: Sequence[PlannedMeasurement], analyst: str, epsilon_cap: Fraction | None
    ) -> tuple[Measurement, ...]:
        price = self.price(plan)
        self._refuse(price, epsilon_cap)
        noise_for = self._history.noise_for
        blocks = tuple(
            ChargedBlock(planned.block, noise_for(planned), planned.raised_from) for planned in plan
        )
        charge = Charge(analyst, blocks, price.units_before, price.units_after)
        seq = self._ledger.append(self.schema.table, charge)  # durable; reading is safe from here
        return self._completed(seq, charge)

    def _refuse(self, price: Price, epsilon_cap: Fraction | None) -> None:
        if price.units_after > self._history.units_max:
            left = self.budget().left
            raise BudgetExhausted(
                f"This costs epsilon {_text(price.epsilon, ROUND_CEILING)}, and "
                f"{self.schema.table} has {_text(left, ROUND_FLOOR)} left.",
                hint="Ask for a wider half_width or a lower confidence; what the history can "
                "answer stays free.",
            )
        if epsilon_cap is not None and price.epsilon > epsilon_cap:
            raise CostAboveCap(
                f"This costs epsilon {_text(price.epsilon, ROUND_CEILING)}, more than the cap of "
                f"{_text(epsilon_cap, ROUND_FLOOR)}.",
                hint="Raise the epsilon option, or ask for a wider half_width.",
            )

    def _complete_pending(self) -> list[Measurement]:
        completed: list[Measurement] = []
        for seq, charge in sorted(self._history.pending.items()):
            completed.extend(self._completed(seq, charge))
        return completed

    def _completed(self, seq: int, charge: Charge) -> tuple[Measurement, ...]:
        values = self._noisy_values(charge)
        self._ledger.append(self.schema.table, Measured(seq, values))
        return self._history.measurements[-len(charge.blocks) :]

    def _noisy_values(self, charge: Charge) -> tuple[tuple[int, ...], ...]:
        """Read and add noise; on failure, raise where no traceback reaches an exact value."""
        values: tuple[tuple[int, ...], ...] | None = None
        is_broken = True
        with suppress(Exception):
            values = self._read_and_add_noise(charge)
            is_broken = False
        if is_broken:
            raise RuntimeError("a measurement failed after its charge, which goes on waiting")
        if values is None:
            raise SourceUnavailable(
                f"The data of {self.schema.table} cannot be read just now.",
                hint="Ask again later: a charge already made is completed then, not made again.",
            )
        return values

    def _read_and_add_noise(self, charge: Charge) -> tuple[tuple[int, ...], ...] | None:
        """The noisy values of a charge, in lattice steps; None if the source could not be read.

        The one function whose locals are exact values and noise.
        """
        known = self._history.measurements
        counts: dict[Scope, CellCounts] = {}
        for scope in {charged.block.scope for charged in charge.blocks}:
            try:
                counts[scope] = self._source.measure(scope)
            except Exception:  # noqa: BLE001 - a source may fail in any way, and none may be shown
                return None
        values = []
        for charged in charge.blocks:
            block, noise = charged.block, charged.noise
            exact = exact_answers(block, counts[block.scope], self.schema)
            if charged.raised_from is None:
                drawn = self._noise.discrete_laplace(noise, len(exact))
            else:
                earlier = known[charged.raised_from]
                found = LatticeNoise.of(earlier).found_in(earlier.lattice_values, exact)
                drawn = self._noise.refined_laplace(LatticeNoise.of(earlier), noise, found)
            values.append(noise.on_lattice(exact, drawn, answer_bound(block, self.schema)))
        return tuple(values)


def _taken(waiting: deque[Measurement], planned: PlannedMeasurement) -> Measurement | None:
    """Take from `waiting` the measurement that was planned: block, weight and what it raises."""
    wanted = (fingerprint(planned.block), planned.weight, planned.raised_from)
    for found in waiting:
        if (fingerprint(found.block), found.weight, found.supersedes) == wanted:
            waiting.remove(found)
            return found
    return None


def _check_fits(block: QueryBlock, schema: Schema) -> None:
    """Raise ValueError unless the block's arrays are over axes of the schema."""
    for axes, values in arrays_of([block]):
        if not schema.by_name.keys() >= set(axes) or values.shape != schema.sizes(axes):
            raise ValueError(f"a block over {axes} does not fit the schema of {schema.table}")


def _check_same_table(table: str, opened: TableOpened, seen: TableOpened) -> None:
    forgetting = "A new ledger would forget what was already spent on this data."
    if opened.schema_digest != seen.schema_digest:
        raise LedgerMismatch(
            f"The ledger knows {table} with other columns, levels or neighbours.",
            hint=f"Restore the declaration it began with. {forgetting}",
        )
    if not hmac.compare_digest(opened.data_fingerprint, seen.data_fingerprint):
        raise DataChanged(
            f"The data of {table} is not the data its ledger began with.",
            hint="Restore that data; changed data is a new table, with a ledger and a budget "
            f"of its own. {forgetting}",
        )


def _check_new_data(table: str, openings: Mapping[str, TableOpened], seen: TableOpened) -> None:
    """Refuse a second budget for data that already has one, whatever it is called now."""
    for known, opened in openings.items():
        if hmac.compare_digest(opened.data_fingerprint, seen.data_fingerprint):
            raise LedgerMismatch(
                f"The ledger knows the data of {table} as {known}.",
                hint=f"Call it {known}: under a second name it would be given a second budget.",
            )


def _schema_digest(schema: Schema) -> str:
    """A name for what the coefficients of a row mean: the table, its axes, its neighbours.

    The order of the columns and the public cap on records change no meaning, and are left out.
    """
    axes = sorted(ascii(axis) for axis in schema.axes)  # a frozen axis's repr is its declaration
    text = canonical_json([schema.table, axes, schema.neighbours.value])
    return hashlib.sha256(text.encode()).hexdigest()


def _text(epsilon: Fraction, rounding: str) -> str:
    """Six digits of an epsilon: a price rounded up, what is left rounded down."""
    context = Context(prec=6, rounding=rounding)
    rounded = context.divide(Decimal(epsilon.numerator), Decimal(epsilon.denominator))
    return f"{rounded.normalize(context):f}"
