"""The history of one table, computed from its ledger entries.

A `TableHistory` is an immutable value; an entry leads to the next one or is refused. The gate, the
opening of a ledger and every other process that has it open use `after`, so that what was charged
while serving is the same as what is read back. Proof: proofs/gate.md, "The history".

A table that grows is readable up to its horizon, a number of levels of one axis, which moves
forward only. Levels that became readable together are a period, whose rows are known by a keyed
digest: rows of a period that read otherwise later are noticed before anything is measured. Proof:
proofs/growth.md.

A report on a table's budget gives its spending at one moment, and when the budget renews. A budget
that renews bounds the increase of the tables' cost in one window. The guarantee over more time is
the sum, so the sum is reported with every such budget. Proof: proofs/gate.md, "Budgets that renew".

Nothing here does input or output.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import product
from types import MappingProxyType
from typing import Self

from accountant.cost import CostState, GaussianAccount
from accountant.ledger.entries import (
    BudgetJoined,
    BudgetSet,
    Charge,
    DataPinned,
    Generations,
    GivenUp,
    HorizonAdvanced,
    LimitSet,
    Measured,
    Period,
    RuleBody,
    Served,
    SimpleBody,
    TableDeclared,
    TableOpened,
    TakenOver,
)
from accountant.ledger.history.payments import (
    BindingLimit,
    ForOthers,
    Payment,
    ReleasedStatistics,
    Spending,
    checked_budget,
    units_of,
)
from accountant.ledger.history.raises import Raises
from accountant.ledger.history.unit_counts import UnitCounts, planned_counts
from accountant.ledger.limits import Limit, Payer, Subject, SubjectKind, Window
from accountant.ledger.values import AppendOnly, GrowingSet, successor
from cube.horizon import reach
from cube.measurement import UNITS_PER_EPSILON, Measurement, PlannedMeasurement
from cube.query import QueryBlock
from cube.statistic import Choice, GaussianStatistic, OfUnits, UnitCount


@dataclass(frozen=True, slots=True)
class Growth:
    """How far a table has grown.

    Parameters
    ----------
    axis : str
        The axis along which it grows.
    n_levels : int
        The number of levels of the axis.
    horizon : int
        The number of its levels, from the first, that are readable.
    periods : tuple of Period
        The closed periods, in order; together they are all readable levels.
    dropped : tuple of int
        Places of measurements of rows that have changed since, ascending.
    n_accepted : int
        How often changed rows were accepted.
    unsettled : tuple of (int, int)
        Levels, from the first to before the second, at which a unit may have had other rows: those
        that ever changed, and all that were not readable when rows first changed.
    """

    axis: str
    n_levels: int
    horizon: int = 0
    periods: tuple[Period, ...] = ()
    dropped: tuple[int, ...] = ()
    n_accepted: int = 0
    unsettled: tuple[tuple[int, int], ...] = ()

    def advanced(self, body: HorizonAdvanced) -> Self:
        """The growth after the horizon moved on; ValueError if that leaves a gap, or goes back."""
        at = self.horizon
        for period in body.periods:
            if period.start != at:
                raise ValueError("each period must begin where the one before ends")
            at = period.end
        if at > self.n_levels:
            raise ValueError("a period ends after the last level")
        return replace(self, horizon=at, periods=(*self.periods, *body.periods))

    def accepted(self, periods: Sequence[Period], dropped: Iterable[int]) -> Self:
        """The growth once some periods have other rows; ValueError if they are no periods of it."""
        new = {(one.start, one.end): one for one in periods}
        known = {(one.start, one.end) for one in self.periods}
        if len(new) < len(periods) or not new.keys() <= known:
            raise ValueError("the changes name a period that was never closed, or one period twice")
        kept = tuple(new.get((one.start, one.end), one) for one in self.periods)
        return replace(
            self,
            periods=kept,
            dropped=tuple(sorted({*self.dropped, *dropped})),
            n_accepted=self.n_accepted + 1,
            unsettled=self.unsettled_with(periods),
        )

    def unsettled_with(self, periods: Sequence[Period]) -> tuple[tuple[int, int], ...]:
        """The unsettled levels once the rows of some periods have changed."""
        spans = {*self.unsettled, *((one.start, one.end) for one in periods)}
        return tuple(sorted({*spans, (self.horizon, self.n_levels)}))

    def check_within(
        self,
        rows: Iterable[QueryBlock],
        statistics: Iterable[GaussianStatistic | Choice | OfUnits],
    ) -> None:
        """Raise ValueError if something touches a level beyond the horizon, as any choice does."""
        blocks = list(rows)
        for statistic in statistics:
            if isinstance(statistic, Choice):
                raise ValueError(  # noqa: TRY004 - a wrong value
                    "a choice covers every row, so it cannot be made on a table that grows"
                )
            if isinstance(statistic, UnitCount) and statistic.only_cut:
                raise ValueError(
                    "units with rows left out cannot be counted on a table that grows, "
                    "since they change"
                )
            blocks.append(statistic.block)
        for block in blocks:
            reached = reach(block, self.axis)
            if (self.n_levels if reached is None else reached) > self.horizon:
                raise ValueError("the rows reach beyond the horizon")


@dataclass(frozen=True, eq=False)
class TableHistory:
    """Everything that the ledger records of one table.

    Parameters
    ----------
    opened : TableOpened, optional
        The opening of the table; None before it.
    rows_fingerprint : str, optional
        The identity of the rows read; None in an older ledger that was not opened since.
    declaration : str, optional
        The latest public declaration, as JSON text.
    budget : Fraction
        The budget of the table, in epsilon; of all tables that share it.
    renews : Window
        The window in which it may be spent, and after which it is there anew.
    shared_budget : str
        The name of the budget that it shares with others; empty for a budget of its own.
    sharing : tuple of TableHistory
        The other tables that spend from a shared budget, as they are now; limits count them, too.
    limits : mapping of Subject to Limit
        The limits in force.
    measurements : sequence of Measurement
        In the order in which they became durable.
    paid_by : sequence of int
        For each measurement, the number of its charge.
    pending : mapping of int to Charge
        Charges without a measurement, by sequence number.
    turns : mapping of int to int
        For pending charges that were taken over, their latest turn.
    spending : Spending
        What was spent, when, and by whom.
    cost : CostState
        The cost of every cell, computed from the rows of every charge.
    gaussian : GaussianAccount
        All Gaussian noise that is not paid for cell by cell, and the terms of all of it; its cost
        is part of `units_spent`, but not of the cost of any cell.
    unit_counts : UnitCounts
        All counts of units, which cost beside both.
    superseded : GrowingSet
        Places of measurements from which a later one was raised.
    payments : sequence of Payment
        Every charge, measured or pending, in order.
    released : sequence of ReleasedStatistics
        Released statistics, in order.
    served : sequence of Served
        Tallies of answers, for reports.
    now : str
        The time of the latest entry; while an entry is being made, its time.
    read : GrowingSet
        Numbers of the entries that this process has read, but not made itself.
    growth : Growth, optional
        How far it has grown, if it grows.
    paid : sequence of PlannedMeasurement
        For a table that grows, the rows whose cost is `cost`.
    generations : Generations
        Of a table that is renewed. What is measured, pending, released and superseded, and `cost`,
        are of the present one alone.
    earlier : tuple of TableHistory
        The history of each earlier generation at its end.
    for_others : ForOthers
        The charges for which other ledgers asked, of every generation.
    """

    opened: TableOpened | None = None
    rows_fingerprint: str | None = None
    declaration: str | None = None
    budget: Fraction = Fraction(0)
    renews: Window = Window.NEVER
    shared_budget: str = ""
    sharing: "tuple[TableHistory, ...]" = ()
    limits: Mapping[Subject, Limit] = field(default_factory=lambda: MappingProxyType({}))
    measurements: AppendOnly[Measurement] = field(default_factory=AppendOnly)
    paid_by: AppendOnly[int] = field(default_factory=AppendOnly)
    pending: Mapping[int, Charge] = field(default_factory=lambda: MappingProxyType({}))
    turns: Mapping[int, int] = field(default_factory=lambda: MappingProxyType({}))
    spending: Spending = field(default_factory=Spending)
    cost: CostState = field(default_factory=CostState)
    gaussian: GaussianAccount = field(default_factory=GaussianAccount)
    unit_counts: UnitCounts = field(default_factory=UnitCounts)
    superseded: GrowingSet = field(default_factory=GrowingSet)
    payments: AppendOnly[Payment] = field(default_factory=AppendOnly)
    released: AppendOnly[ReleasedStatistics] = field(default_factory=AppendOnly)
    served: AppendOnly[Served] = field(default_factory=AppendOnly)
    now: str = ""
    read: GrowingSet = field(default_factory=GrowingSet)
    growth: Growth | None = None
    paid: AppendOnly[PlannedMeasurement] = field(default_factory=AppendOnly)
    generations: Generations = field(default_factory=Generations)
    earlier: "tuple[TableHistory, ...]" = ()
    for_others: ForOthers = field(default_factory=ForOthers)

    @property
    def units_max(self) -> int:
        """The budget in whole units, rounded down."""
        return units_of(self.budget)

    @property
    def units_spent(self) -> int:
        """The table's cost as it was charged, in units of 2**-40 epsilon."""
        return self.spending.units

    @property
    def units_used(self) -> int:
        """The spending that counts towards the budget at `now`: the spending in its window."""
        return self.units_used_since(self.renews.start(self.now))

    def units_used_since(self, moment: str) -> int:
        """The spending since a moment, by this table and by the tables that share its budget."""
        return sum(one.spending.since(moment) for one in (self, *self.sharing))

    @property
    def units_left(self) -> int:
        """The rest of the budget; 0 if the owner lowered the budget below the spending."""
        return max(0, self.units_max - self.units_used)

    @property
    def units_of_rows(self) -> int:
        """The charges for rows of this generation, and for statistics priced as rows."""
        beside = self.gaussian.units + self.unit_counts.units + self.generations.units
        return self.units_spent - beside

    def after(self, seq: int, at: str, body: SimpleBody) -> "TableHistory":
        """The history after entry number `seq`, made at `at`, with content `body`.

        Raises
        ------
        ValueError
            If the entry cannot follow this history.
        """
        if (self.opened is None) != isinstance(body, TableOpened):
            raise ValueError("a table must be opened once, before any other entry about it")
        history = successor(self, now=at)
        match body:
            case Charge():
                return history._charged(seq, body)  # noqa: SLF001 - of this class
            case TakenOver():
                return history._taken_over(seq, body)  # noqa: SLF001 - the same
            case Measured():
                return history._measured(body)  # noqa: SLF001 - the same
            case GivenUp():
                return history._given_up(body)  # noqa: SLF001 - the same
            case Served():
                return successor(history, served=history.served.followed_by([body]))
            case _:
                return history._ruled(body)  # noqa: SLF001 - the same

    def without_charges(self) -> "TableHistory":
        """The same table with its present declaration and budget, and nothing bought."""
        rows_per_unit, by = self.cost.rows_per_unit, self.cost.by
        return TableHistory(
            opened=self.opened,
            declaration=self.declaration,
            budget=self.budget,
            renews=self.renews,
            now=self.now,
            cost=CostState(rows_per_unit=rows_per_unit, by=by),
            gaussian=GaussianAccount(rows_per_unit=rows_per_unit, holders=self.gaussian.holders),
            unit_counts=replace(self.unit_counts.begun_anew(), units=0),
            growth=self.growth,
        )

    def at_corrected(self, at: str) -> "TableHistory":
        """The history after a clock was corrected: no charge counts at a later time than `at`."""
        generations, spending = self.generations.corrected(at), self.spending.corrected(at)
        return successor(self, now=at, spending=spending, generations=generations)

    def spent_by(self, account: Subject, since: str = "") -> int:
        """The spending of an analyst or a group since a moment, in units."""
        return sum(one.spending.by(account, since) for one in (self, *self.sharing))

    @property
    def accounts(self) -> tuple[Subject, ...]:
        """Every analyst and group that has paid for something, here or where budgets are shared."""
        found = {who for one in (self, *self.sharing) for who in one.spending.by_account}
        return tuple(sorted(found))

    def allowances(self, payer: Payer) -> tuple[BindingLimit, ...]:
        """The limits that apply to a payer at the moment `now`: on any table of the budget."""
        bound = []
        for account, table in product(payer.subjects, (self, *self.sharing)):
            limit = table.limits.get(account)
            if limit is None and account.kind is SubjectKind.ANALYST:
                limit = table.limits.get(Subject(SubjectKind.EACH_ANALYST))
            if limit is not None:
                units = self.spent_by(account, limit.window.start(self.now))
                bound.append(BindingLimit(limit, account, units))
        return tuple(bound)

    def measured_under(self, seq: int) -> tuple[Measurement, ...]:
        """The measurements of a charge; none while it is pending."""
        place = len(self.paid_by)
        found: list[Measurement] = []
        while place and (not found or self.paid_by[place - 1] == seq):
            place -= 1
            if self.paid_by[place] == seq:
                found.append(self.measurements[place])
        return tuple(reversed(found))

    def released_under(self, seq: int) -> ReleasedStatistics | None:
        """The statistics of a charge, once they are released."""
        return next((one for one in reversed(self.released) if one.charge == seq), None)

    def check_cost(self) -> None:
        """Raise ValueError if the rows cost more than was charged for them."""
        found = self.cost.table_cost()
        if found.exact and found.units > self.units_of_rows:
            raise ValueError(
                f"the rows cost {found.units} units, but only {self.units_of_rows} were charged"
            )

    @property
    def raises(self) -> Raises:
        """The measurements that may be raised."""
        return Raises(self.measurements, self.superseded)

    def _ruled(self, body: RuleBody) -> "TableHistory":
        match body:
            case TableOpened():
                return self._opened(body)
            case DataPinned():
                return self._pinned(body)
            case BudgetJoined():
                return self._joined(body)
            case HorizonAdvanced():
                return self._advanced(body)
            case LimitSet():
                return self._limited(body.limit)
            case _:
                return self._declared(body)

    def _opened(self, body: TableOpened) -> "TableHistory":
        return successor(
            self,
            opened=body,
            budget=checked_budget(body.budget),
            renews=body.renews,
            shared_budget=body.shared_budget,
            rows_fingerprint=body.rows_fingerprint,
            generations=self.generations.followed_by(body.data_fingerprint, self.now, 0, 0),
            cost=CostState(rows_per_unit=body.rows_per_unit, by=body.rows_per_unit_by),
            gaussian=GaussianAccount(rows_per_unit=body.rows_per_unit, holders=body.holders),
            unit_counts=UnitCounts.of(body),
            growth=Growth(body.grows, body.grows_levels) if body.grows else None,
        )

    def _declared(self, body: TableDeclared | BudgetSet) -> "TableHistory":
        if isinstance(body, TableDeclared):
            return successor(self, declaration=body.declaration)
        return successor(self, budget=checked_budget(body.budget), renews=body.renews)

    def _joined(self, body: BudgetJoined) -> "TableHistory":
        if self.shared_budget:
            raise ValueError("the table leaves the shared budget in which its spending counts")
        return successor(self, shared_budget=body.shared_budget)

    def _advanced(self, body: HorizonAdvanced) -> "TableHistory":
        if self.growth is None:
            raise ValueError("the entry moves a horizon, but the table does not grow")
        return successor(self, growth=self.growth.advanced(body))

    def _pinned(self, body: DataPinned) -> "TableHistory":
        if self.growth is not None:
            raise ValueError("the rows of a table that grows must be recorded by period")
        if self.rows_fingerprint is not None:
            raise ValueError("the fingerprint of a table's rows must be recorded only once")
        return successor(self, rows_fingerprint=body.rows_fingerprint)

    def _limited(self, limit: Limit) -> "TableHistory":
        limits = {subject: one for subject, one in self.limits.items() if subject != limit.subject}
        if not limit.is_empty:
            limits[limit.subject] = limit
        return successor(self, limits=MappingProxyType(limits))

    def _charged(self, seq: int, charge: Charge) -> "TableHistory":
        if not (charge.blocks or charge.statistics):
            raise ValueError("the charge pays for nothing")
        if charge.units_before != self.units_spent:
            raise ValueError(
                f"the charge starts from {charge.units_before} spent units, but "
                f"{self.units_spent} were spent"
            )
        if self.growth is not None:
            self.growth.check_within(
                (one.block for one in charge.blocks), (one.statistic for one in charge.statistics)
            )
        payment = Payment(seq, self.now, charge)
        self._check_payment(payment)
        raises = self.raises
        counts = self.unit_counts.costing(planned_counts(charge))
        added = [*raises.added(raises.planned(charge)), *charge.costing, *counts]
        gaussian = self.gaussian
        if charge.terms is not None:
            at_holders, gaussian = gaussian.paid_for(charge.rhos, charge.terms)
            added += at_holders
        waiting = tuple(self.pending.values())
        unit_counts, statistics = self.unit_counts.charged(charge, waiting)
        beside = gaussian.units + unit_counts.units + self.generations.units
        if charge.units_after - beside < self.units_of_rows:
            raise ValueError("the charge does not cover its Gaussian noise or its counts of units")
        blocks = tuple(raises.checked(charged, waiting) for charged in charge.blocks)
        checked = replace(charge, blocks=blocks, statistics=statistics)
        return successor(
            self,
            for_others=self.for_others.charged(seq, checked),
            pending=MappingProxyType({**self.pending, seq: checked}),
            payments=self.payments.followed_by([replace(payment, charge=checked)]),
            spending=self.spending.after(payment),
            cost=self.cost.charged(added),
            paid=self.paid.followed_by(added if self.growth is not None else ()),
            gaussian=gaussian,
            unit_counts=unit_counts,
        )

    def _check_payment(self, payment: Payment) -> None:
        if payment.units < 0:
            raise ValueError("the charge lowers the spent total")
        if payment.units > self.units_left:
            raise ValueError("the charge exceeds the table's budget")
        for allowance in self.allowances(payment.charge.payer):
            left = allowance.units_left
            if left is not None and payment.units > left:
                raise ValueError(f"the charge exceeds the limit of {allowance.limit.subject}")

    def _taken_over(self, seq: int, body: TakenOver) -> "TableHistory":
        if body.charge not in self.pending:
            raise ValueError(f"{body.charge} was taken over, but it is not a pending charge")
        return successor(self, turns=MappingProxyType({**self.turns, body.charge: seq}))

    def _measured(self, body: Measured) -> "TableHistory":
        charge = self.pending.get(body.charge)
        if charge is None:
            raise ValueError(
                f"the measurement belongs to {body.charge}, which is not a pending charge"
            )
        if body.turn != self.turns.get(body.charge, 0):
            raise ValueError("the measurement was made in a turn that was taken over")
        if len(body.lattice_values) != len(charge.blocks):
            raise ValueError("the measurement does not match the charged rows")
        statistics = ReleasedStatistics(body.charge, charge.statistics, body.released)
        new = tuple(
            self.raises.measured(charged, values)
            for charged, values in zip(charge.blocks, body.lattice_values, strict=True)
        )
        waiting = {seq: other for seq, other in self.pending.items() if seq != body.charge}
        return successor(
            self,
            for_others=self.for_others.told(charge, body),
            measurements=self.measurements.followed_by(new),
            paid_by=self.paid_by.followed_by([body.charge] * len(new)),
            unit_counts=self.unit_counts.measured(body.charge, statistics.unit_counts),
            released=self.released.followed_by([statistics] if charge.statistics else []),
            pending=MappingProxyType(waiting),
            turns=MappingProxyType(
                {seq: turn for seq, turn in self.turns.items() if seq in waiting}
            ),
            superseded=self.superseded.joined_by(
                found.supersedes for found in new if found.supersedes is not None
            ),
        )

    def _given_up(self, body: GivenUp) -> "TableHistory":
        if body.charge not in self.pending:
            raise ValueError(f"{body.charge} was given up, but it is not a pending charge")
        waiting = {seq: other for seq, other in self.pending.items() if seq != body.charge}
        turns = {seq: turn for seq, turn in self.turns.items() if seq in waiting}
        return successor(self, pending=MappingProxyType(waiting), turns=MappingProxyType(turns))


@dataclass(frozen=True, slots=True)
class Renewal:
    """A budget that renews, at one moment; epsilons are of all tables that share it.

    Parameters
    ----------
    window : Window
    next_at : str
        When it renews next, as UTC text.
    spent_in_year, spent_in_all : Fraction, optional
        What was spent in the last twelve months, and since the first entry; None for a reader who
        may not learn it.
    """

    window: Window
    next_at: str
    spent_in_year: Fraction | None
    spent_in_all: Fraction | None

    @property
    def next_day(self) -> str:
        """The day on which it renews next, at midnight UTC."""
        return self.next_at[: len("2027-01-01")]

    @property
    def without_sums(self) -> "Renewal":
        """The same for a reader who may not learn what was spent: what the owner declared."""
        return replace(self, spent_in_year=None, spent_in_all=None)

    @classmethod
    def of(cls, history: TableHistory) -> Self | None:
        """The report on a history at the moment `now`; None if its budget does not renew."""
        if history.renews is Window.NEVER:
            return None
        now = history.now
        a_year_ago = f"{int(now[:4]) - 1:04}{now[4:]}"  # sorts rightly on a 29th of February, too
        return cls(
            history.renews,
            history.renews.end(now),
            Fraction(history.units_used_since(a_year_ago), UNITS_PER_EPSILON),
            Fraction(history.units_used_since(""), UNITS_PER_EPSILON),
        )


@dataclass(frozen=True, slots=True)
class Budget:
    """A table's budget, in epsilon. What tables that share it have spent counts, too.

    If it renews, `spent` is what was spent in the present window, and `renewal` tells the rest.
    """

    limit: Fraction
    spent: Fraction
    n_measurements: int
    renewal: Renewal | None = None

    @property
    def left(self) -> Fraction:
        """The epsilon that may still be spent."""
        return max(Fraction(0), self.limit - self.spent)

    @classmethod
    def of(cls, history: TableHistory) -> Self:
        """The budget at the moment `now` of a history."""
        spent = Fraction(history.units_used, UNITS_PER_EPSILON)
        return cls(history.budget, spent, len(history.measurements), Renewal.of(history))
