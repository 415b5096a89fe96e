"""The gate: the only way to private data, in the order that makes it safe.

    price -> refuse -> durable charge -> the only read -> noise -> durable measurement -> return

A row that was measured before may be raised to a larger weight for the difference: Laplace noise
is then recovered, as the earlier value less the exact one, and refined; with Gaussian noise, an
independent value is drawn and averaged with the earlier one.

All refusals come before the charge and depend on public things alone: the plan, the schema, the
budget, earlier charges. Between the charge and the measurement a failure loses time, not privacy
and not budget: the charge is pending, and is completed once, without another charge.

Statistics that are not rows (a noisy distance, a choice among candidates) go the same way: priced
as rows that cost every cell no less, charged, then read; counts of units at a price of their own.
Gaussian noise is priced on the terms of the table's account of it (`zcdp_account.py`): of rows cell
by cell, of statistics on top of that.

What is read is compared with the ledger first (known_rows.py). Only release.py reads; nothing else
has exact values or recovered noise. Proof: proofs/gate.md.
"""

from collections.abc import Collection, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import cache, partial
from typing import Final

from accountant.cost import Price
from accountant.gate.asked import Asked as AskedByOther
from accountant.gate.asked import PlannedForOther, RemoteGates, Told, planned_for
from accountant.gate.holders import HeldRows
from accountant.gate.known_rows import ClosedPeriods, Snapshot
from accountant.gate.pricing import Pricing, charged_statistic, terms_of
from accountant.gate.release import Release
from accountant.ledger import (
    Charge,
    ChargedBlock,
    GivenUp,
    HorizonAdvanced,
    Ledger,
    Measured,
    Payer,
    Period,
    TakenOver,
    Window,
)
from accountant.ledger.history import (
    BindingLimit,
    Budget,
    Payment,
    StalePlan,
    TableHistory,
    acceptance,
)
from accountant.noise import NoiseSource
from accountant.source import CellCounts, GrowingSource, ReadRows, Source, WatchedSource
from cube.holders import Holders
from cube.measurement import (
    UNITS_PER_EPSILON,
    GaussianTerms,
    Measurement,
    PlannedMeasurement,
)
from cube.refusals import InvalidRequest, Refused, SourceUnavailable
from cube.runtime import cached_property
from cube.schema import Schema
from cube.statistic import Asked

STATE_DIGITS: Final = 16  # of the ledger's first digest, in the name of a state

__all__ = ["CellCounts", "Gate", "Price", "Source", "StalePlan"]


class Gate:
    """The only caller of a source, and the only spender of one table's budget. Thread-safe."""

    def __init__(
        self,
        ledger: Ledger,
        schema: Schema,
        source: Source | GrowingSource | RemoteGates,
        noise: NoiseSource,
        rows_fingerprint: str | None = None,
    ) -> None:
        self.schema = schema
        self._held = _held_rows(ledger, schema, source)
        self._ledger = ledger
        self._release = Release(schema, noise)
        self._source = _checked(ledger, schema, source, rows_fingerprint)
        self._turns: dict[int, int] = {}  # of charges that this process will measure

    @property
    def history(self) -> TableHistory:
        """The table's history in the ledger, as far as this process has read it."""
        return self._ledger.history(self.schema.table)

    @property
    def position(self) -> tuple[int, str]:
        """The number of the ledger's entries that this process has read, and the last's digest."""
        return self._ledger.position

    @cached_property
    def _ledger_name(self) -> str:
        """The digest of the ledger's first entry: no other ledger has it."""
        return next(self._ledger.entries()).digest

    @property
    def state(self) -> str:
        """The generation of the table's data, as other ledgers name it in what they ask for."""
        return self._state_of(self.history)

    def _state_of(self, history: TableHistory) -> str:
        growth = history.growth
        number = history.generations.number if growth is None else 1 + growth.n_accepted
        return f"{self._ledger_name[:STATE_DIGITS]}:{number}"

    def measurements(self) -> Sequence[Measurement]:
        """All measurements, in the order of purchase; the sequence only grows at its end."""
        return self.history.measurements

    def payments(self) -> Sequence[Payment]:
        """All payments, in order; the sequence only grows at its end."""
        return self.history.payments

    def refresh(self) -> None:
        """Read what other processes have charged and measured; LedgerUnavailable if that fails."""
        self._ledger.refresh()

    def budget(self) -> Budget:
        """The present budget."""
        history = self.history
        # The moment matters to a budget that renews alone; this is asked for by every answer.
        return Budget.of(history if history.renews is Window.NEVER else self.history_now())

    def history_now(self) -> TableHistory:
        """The history, with the present moment as the time at which spending is counted."""
        return self._ledger.history_now(self.schema.table)

    def price(self, plan: Sequence[PlannedMeasurement]) -> Price:
        """The price of `plan`. Charges nothing.

        Raises
        ------
        TooLarge
            If a row cannot be measured at its weight, or raised to it.
        StalePlan
            If a measurement that the plan raises has been raised since.
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
        """The limits that apply to a payer now."""
        history = self.history
        if not any(one.limits for one in (history, *history.sharing)):
            return ()  # whatever the moment is; this is asked for by every answer
        return self.history_now().allowances(payer)

    def measure(
        self,
        plan: Sequence[PlannedMeasurement],
        payer: Payer,
        *,
        epsilon_cap: Fraction | None,
    ) -> tuple[Measurement, ...]:
        """Buy the measurements of `plan`, one for each of its blocks, in the plan's order.

        Raises
        ------
        BudgetExhausted, LimitReached, CostAboveCap, TooLarge, StalePlan
            Before anything is charged.
        LedgerUnavailable, SourceUnavailable
            If the ledger could not be written, or the data could not be read; a charge that was
            made is pending, and is completed later.
        """
        if not plan:
            return ()
        measured = self.complete(self.charge(plan, payer, epsilon_cap=epsilon_cap).seq)
        if measured is None:
            raise RuntimeError("another process is already measuring this charge")
        return measured

    def charge(  # noqa: PLR0913 - the plan, its payer, and what the decision rests on
        self,
        plan: Sequence[PlannedMeasurement],
        payer: Payer,
        *,
        epsilon_cap: Fraction | None,
        n_read: int | None = None,
        awaited: Collection[int] = (),
        statistics: Sequence[Asked] = (),
    ) -> Payment:
        """Pay for a plan, and for statistics, on the latest history.

        With `n_read`, the number of entries that had been read when the plan was made, a plan made
        before another process wrote anything is stale; but for the measurements of charges that
        were `awaited`, whose weights the plan took into account. A holder of a federated table is
        asked first whether it would refuse.

        Raises
        ------
        BudgetExhausted, LimitReached, CostAboveCap, TooLarge, StalePlan, LedgerUnavailable
        SourceUnavailable
            If the rows are not there that the ledger is about, or cannot be read now.
        InvalidRequest
            If Gaussian noise is requested at another delta than the table's.
        """
        self.foresee(plan, statistics, payer)
        payments, refusal = self.charge_each(
            [(plan, statistics)], payer, epsilon_cap=epsilon_cap, n_read=n_read, awaited=awaited
        )
        if refusal is not None:
            raise refusal
        return payments[0]

    def charge_each(
        self,
        parts: Sequence[tuple[Sequence[PlannedMeasurement], Sequence[Asked]]],
        payer: Payer,
        *,
        epsilon_cap: Fraction | None,
        n_read: int | None = None,
        awaited: Collection[int] = (),
    ) -> tuple[list[Payment], Refused | StalePlan | None]:
        """Pay for the parts of a plan, those of each holder, in one write; why it ended early.

        Each part, of rows and statistics, is decided on the latest history and the parts before it;
        after one that is refused there is none. Holders were asked before (`foresee`). The rest is
        as for `charge`.

        Raises
        ------
        LedgerUnavailable, SourceUnavailable
            Before anything is charged.
        """
        paid: list[Charge] = []
        refusals: list[Refused | StalePlan] = []

        def decided(
            plan: Sequence[PlannedMeasurement], statistics: Sequence[Asked], history: TableHistory
        ) -> Charge:
            is_first = n_read is not None and not paid
            if is_first and len(history.read) != (n_read or 0) + n_come(history, awaited):
                raise StalePlan("another process has charged or measured in the meantime")
            if isinstance(self._source, Snapshot):
                self._source.rows(history)  # or it would be charged for rows that are not there
            cap = epsilon_cap
            if cap is not None and paid:
                units = paid[-1].units_after - paid[0].units_before
                cap -= Fraction(units, UNITS_PER_EPSILON)
            return self._charged(history, plan, statistics, payer, cap)

        def charged(
            plan: Sequence[PlannedMeasurement], statistics: Sequence[Asked], history: TableHistory
        ) -> Charge | None:
            if refusals:
                return None
            try:
                paid.append(decided(plan, statistics, history))
            except (Refused, StalePlan) as refusal:
                refusals.append(refusal)
                return None
            return paid[-1]

        rows = self._rows(self.history)
        if isinstance(rows, WatchedSource):
            rows.look()
        builds = [partial(charged, *part) for part in parts]
        written = self._ledger.append_each(self.schema.table, builds)
        payments = [self._payment(seq) for seq in written if seq is not None]
        self._turns.update((one.seq, 0) for one in payments)
        return payments, next(iter(refusals), None)

    def foresee(
        self, plan: Sequence[PlannedMeasurement], statistics: Sequence[Asked], payer: Payer
    ) -> None:
        """Have the holder of a plan's rows refuse before anything is charged, if it would.

        Raises
        ------
        BudgetExhausted, LimitReached, TooLarge, StalePlan, InvalidRequest
        SourceUnavailable
            If the holder cannot be asked.
        """
        if self._held is not None:
            known = self.history_now()
            self._rows(known)  # of a table that grows, what the holders have is compared
            units = known.units_spent  # what it adds is decided when it is charged
            self._held.check(_charge_of(known, plan, statistics, payer, units, units), known)

    def left_at_holders(self) -> list[Fraction | None]:
        """What each holder of a federated table leaves this ledger; None where it cannot be asked.

        Empty for any other table.
        """
        return [] if self._held is None else self._held.gates.left()

    def complete(self, seq: int) -> tuple[Measurement, ...] | None:
        """Measure what was charged, in this process's turn, and return the measurements.

        None if the turn has been used, or another process has taken it over: one draw is made in
        a turn, and only the draw of the latest turn is ever kept. Statistics are in the history
        then.

        Raises
        ------
        SourceUnavailable, LedgerUnavailable
            If the data could not be read, or the values could not be stored; the charge stays
            pending.
        """
        turn = self._turns.pop(seq, None)
        known = self.history
        charge = known.pending.get(seq)
        if charge is not None and turn is not None:
            try:
                body = self._measured(seq, turn, charge, known)
            except SourceUnavailable:
                if self._held is not None:
                    self._turns[seq] = turn  # nothing was drawn here: it is asked again in it
                raise
            self._ledger.append(
                self.schema.table, lambda history: body if _is_turn(history, seq, turn) else None
            )
        history = self.history
        return history.measured_under(seq) or (() if history.released_under(seq) else None)

    def charge_for(
        self, asked: AskedByOther, payer: Payer, terms: GaussianTerms | None = None
    ) -> int:
        """Pay for what another ledger asks for, once; the number of the charge.

        The `terms` are for the table's first Gaussian noise; None if its owner offers no delta.

        Raises
        ------
        BudgetExhausted, LimitReached, TooLarge, LedgerUnavailable
        SourceUnavailable
            Also if it was agreed on another `state`.
        InvalidRequest
            If it is no request for this table, or has the name of another request.
        """
        request = payer.analyst, asked.reference
        _ = self._ledger_name  # it is read here, and not where entries are decided

        def charged(history: TableHistory) -> Charge | None:
            if history.for_others.charges.get(request) is not None:
                return None
            if isinstance(self._source, Snapshot):
                self._source.rows(history)
            return self._charged_for(history, asked, payer, terms)

        rows = self._rows(self.history)
        if isinstance(rows, WatchedSource):
            rows.look()
        try:
            seq = self._ledger.append(self.schema.table, charged)
        except StalePlan as error:
            raise SourceUnavailable(
                "The row is just being raised for somebody else.", hint="Ask again in a moment."
            ) from error
        if seq is not None:
            self._turns[seq] = 0
            return seq
        seq = self.history.for_others.charges.get(request)
        if seq is None:
            raise RuntimeError("a request that was charged is not in the history")
        if not asked.is_for(self._payment(seq).charge):
            raise InvalidRequest(
                "Something else was asked for under the name of this request.",
                hint="A coordinator whose ledger was replaced needs a token of its own.",
            )
        return seq

    def price_for(
        self, asked: AskedByOther, payer: Payer, terms: GaussianTerms | None = None
    ) -> Price:
        """What a request of another ledger would cost now; raises as `charge_for`."""
        return self._priced_for(self.history_now(), asked, payer, terms)[0]

    def _payment(self, seq: int) -> Payment:
        return next(one for one in reversed(self.payments()) if one.seq == seq)

    def told(self, seq: int) -> Told | None:
        """What another ledger is told of its charge; None while it is pending."""
        found = self.history.for_others.answers.get(seq)
        if found is None:
            return None
        payment = self._payment(seq)
        return Told(found.lattice_values, found.released, seq, *self.position, payment.units)

    def advance(self, horizon: int, by: str) -> bool:
        """Make more of a growing table readable; whether this did.

        Parameters
        ----------
        horizon : int
            How many levels of its axis are readable from now on; nothing is done if they are. Of a
            federated table, no more than at each of its holders.
        by : str
            Who asked for it; recorded in the ledger.

        Raises
        ------
        SourceUnavailable, LedgerUnavailable
            If the data could not be read, or rows that were readable have changed; or if the ledger
            could not be written.
        """
        growth = self.history.growth
        source = self._source
        if growth is None or not isinstance(source, ClosedPeriods) or horizon <= growth.horizon:
            return False
        horizon = source.within_reach(horizon)
        if horizon <= growth.horizon:
            return False
        body = HorizonAdvanced(source.read_on(growth, horizon), by)
        seq = self._ledger.append(
            self.schema.table, lambda history: body if history.growth == growth else None
        )
        return seq is not None

    def accept_changes(self, start: int, end: int, by: str) -> tuple[Period, ...]:
        """Take the rows of some closed periods as they are now; the periods, as they are now.

        Which ones is the owner's decision, not the data's: all that touch these levels. Nothing is
        done if all rows are what they were.

        Parameters
        ----------
        start, end : int
            Levels of the axis along which the table grows, from the first to before the second.
        by : str
            Who asked for it; recorded in the ledger.

        Raises
        ------
        ValueError
            If rows of other periods have changed, too; or what was bought cannot be set apart.
        SourceUnavailable, LedgerUnavailable
            If the data cannot be read, or the ledger cannot be written.
        """
        growth, source = self.history.growth, self._source
        if growth is None or not isinstance(source, ClosedPeriods):
            raise ValueError("the table does not grow")
        found = source.found(growth)
        changed = [one for one in found if one not in growth.periods]
        named = tuple(one for one in found if one.start < end and start < one.end)
        if not set(changed) <= set(named):
            raise ValueError("rows of other periods have changed too")
        if not changed:
            return ()
        seq = self._ledger.append(
            self.schema.table,
            lambda history: acceptance(history, named, by) if history.growth == growth else None,
        )
        return () if seq is None else named

    def prepare(self) -> None:
        """Read a growing table's rows now, not when something is first bought.

        Raises
        ------
        SourceUnavailable
            If they cannot be read, or have changed.
        """
        self._rows(self.history)

    @property
    def lacks_rows(self) -> bool:
        """Whether a new generation has begun whose rows were not read yet."""
        source = self._source
        return isinstance(source, Snapshot) and not source.is_of(self.history)

    def read_from(self, source: Source | RemoteGates) -> None:
        """Measure from another snapshot; nothing, unless it is of the present generation."""
        if not isinstance(self._source, Snapshot):
            raise TypeError("a table that grows reads its own rows")
        self._source.replace(source, self.history)
        if self._held is not None and isinstance(source, RemoteGates):
            self._held = replace(self._held, gates=source)

    def changed_periods(self) -> tuple[Period, ...]:
        """Periods of a growing table whose rows are not what they were; for its owner alone."""
        return self._source.changed if isinstance(self._source, ClosedPeriods) else ()

    def take_over(self, seq: int, turn: int) -> int | None:
        """Begin a new turn to measure a pending charge; the number of the turn.

        None if the charge is no longer pending, or another turn than `turn` has begun meanwhile. A
        turn of this process in which a holder could not be asked goes on.

        Raises
        ------
        LedgerUnavailable, SourceUnavailable
            If it could not be measured here: then another process had better try.
        """
        self._rows(self.history)
        if self._held is not None and self._turns.get(seq) == turn:
            return turn
        new = self._ledger.append(
            self.schema.table,
            lambda history: TakenOver(seq) if _is_turn(history, seq, turn) else None,
        )
        if new is not None:
            self._turns[seq] = new
        return new

    def complete_pending(self) -> int:
        """Measure every pending charge; the number of charges measured.

        Raises
        ------
        SourceUnavailable, LedgerUnavailable
            If the data could not be read, or the values could not be stored; charges stay pending.
        """
        history = self.history
        waiting = sorted(history.pending)
        for seq in waiting:
            if self.take_over(seq, history.turns.get(seq, 0)) is None:
                continue
            try:
                self.complete(seq)
            except Refused:
                if seq in self.history.pending:
                    raise  # else its holder has refused it for good: nothing is left to be done
        return len(waiting)

    def _rows(self, history: TableHistory) -> Source | ReadRows | RemoteGates:
        """The rows that a history covers; for a growing table, up to the history's horizon.

        Raises
        ------
        SourceUnavailable
            If these rows cannot be read now.
        """
        source, growth = self._source, history.growth
        if not isinstance(source, ClosedPeriods):
            return source.rows(history)
        if growth is None:
            raise RuntimeError("a table that grows must be opened as such a table")
        return source.rows(growth)

    def _measured(self, seq: int, turn: int, charge: Charge, known: TableHistory) -> Measured:
        """The measurement of a charge, by the one read of it, or by the holder of its rows."""
        rows = self._rows(known)
        if self._held is None and not isinstance(rows, RemoteGates):
            values, released = self._release.noisy_values(rows, charge, known)
            return Measured(seq, values, turn, released)
        if self._held is None:
            raise RuntimeError("the rows of holders are not measured here")
        try:
            return self._held.measured(seq, turn, charge, known)
        except SourceUnavailable:
            raise
        except Refused:  # the holder has charged nothing: it is not waited for
            self._ledger.append(
                self.schema.table,
                lambda history: GivenUp(seq) if _is_turn(history, seq, turn) else None,
            )
            raise

    def _priced_for(
        self,
        history: TableHistory,
        asked: AskedByOther,
        payer: Payer,
        terms: GaussianTerms | None,
    ) -> tuple[Price, PlannedForOther]:
        """The price of a request of another ledger, and what to charge; or its refusal."""
        if self._held is not None:
            raise InvalidRequest(
                f"{self.schema.table} is a federated table: its holders measure it.",
                hint="Ask its holders.",
            )
        if asked.generation != self._state_of(history):
            raise SourceUnavailable(
                f"The data of {self.schema.table} was replaced since the coordinator agreed on it.",
                hint="The coordinator's owner accepts it with `tacit table renew`.",
            )
        found = planned_for(asked, payer.analyst, history, self.schema, terms)
        pricing = Pricing(self.schema, history)
        price = pricing.price(found.plan, found.asked)
        pricing.refuse(price, payer, None)
        return price, found

    def _charged_for(
        self,
        history: TableHistory,
        asked: AskedByOther,
        payer: Payer,
        terms: GaussianTerms | None,
    ) -> Charge:
        price, found = self._priced_for(history, asked, payer, terms)
        return Charge(
            payer,
            found.rows,
            price.units_before,
            price.units_after,
            found.statistics,
            terms_of(history.gaussian, found.plan, found.asked),
            reference=asked.reference,
        )

    def _charged(
        self,
        history: TableHistory,
        plan: Sequence[PlannedMeasurement],
        statistics: Sequence[Asked],
        payer: Payer,
        epsilon_cap: Fraction | None,
    ) -> Charge:
        """The charge for a plan on a history, computed as replay and auditor check it."""
        pricing = Pricing(self.schema, history)
        price = pricing.price(plan, statistics)
        pricing.refuse(price, payer, epsilon_cap)
        return _charge_of(history, plan, statistics, payer, price.units_before, price.units_after)


def _charge_of(  # noqa: PLR0913, PLR0917 - all that a charge consists of
    history: TableHistory,
    plan: Sequence[PlannedMeasurement],
    statistics: Sequence[Asked],
    payer: Payer,
    units_before: int,
    units_after: int,
) -> Charge:
    """The charge for a plan, with the noise that it gets on a history."""
    blocks = tuple(
        ChargedBlock(planned.block, history.raises.noise_for(planned), planned.raised_from)
        for planned in plan
    )
    charged = tuple(charged_statistic(one, history.unit_counts) for one in statistics)
    terms = terms_of(history.gaussian, plan, statistics)
    return Charge(payer, blocks, units_before, units_after, charged, terms)


def _held_rows(
    ledger: Ledger, schema: Schema, source: Source | GrowingSource | RemoteGates
) -> HeldRows | None:
    """The rows of a federated table; TypeError if only one of schema and source is of one."""
    holders = Holders.of(schema)
    if (holders is None) == isinstance(source, RemoteGates):
        raise TypeError(
            f"the schema and the source of {schema.table} disagree on whether holders have it"
        )
    if holders is None or not isinstance(source, RemoteGates):
        return None
    # Every request has the ledger's name in its own: it is read from the file once.
    return HeldRows(schema, source, cache(lambda: next(ledger.entries()).digest), holders)


def _checked(
    ledger: Ledger,
    schema: Schema,
    source: Source | GrowingSource | RemoteGates,
    rows_fingerprint: str | None,
) -> Snapshot | ClosedPeriods:
    """A source whose rows are compared with the ledger; TypeError if only one of them grows."""
    if isinstance(source, GrowingSource) and schema.grows is not None:
        return ClosedPeriods(schema.table, schema.by_name[schema.grows], source, ledger.key)
    if isinstance(source, GrowingSource) or schema.grows is not None:
        raise TypeError(
            f"the schema and the source of {schema.table} disagree on whether the table grows"
        )
    return Snapshot(schema.table, source, ledger.key, rows_fingerprint)


def n_come(history: TableHistory, awaited: Collection[int]) -> int:
    """How many of some charges were measured."""
    come = (seq for seq in awaited if seq not in history.pending)
    return sum(bool(history.measured_under(seq) or history.released_under(seq)) for seq in come)


def _is_turn(history: TableHistory, seq: int, turn: int) -> bool:
    """Whether a charge is pending and this is its turn."""
    return seq in history.pending and history.turns.get(seq, 0) == turn
