"""One private table as it is served: everything that others may ask of it.

The rooms below keep the locks: `table_state.py` the history's, `in_flight.py` and `purchasing.py`
those of purchases. A caller gets values: a snapshot to plan on, or what it wanted, known well
enough. No exact count comes this far: a gate hands out noisy values only.
"""

from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from fractions import Fraction
from functools import partial
from types import MappingProxyType

from accountant.gate import Asked as AskedByOther
from accountant.gate import EndedGeneration, Gate, Told
from accountant.ledger import Payer
from accountant.ledger.history import BindingLimit
from cube.measurement import UNITS_PER_EPSILON, PlannedMeasurement
from cube.refusals import Refused
from cube.schema import Schema
from cube.statistic import Asked
from cube.target import AccuracyTarget, SumTarget
from inference import EstimatorMemory, History, NoisePlaces, RowEstimates
from planner.measuring import LAPLACE, GaussianOffer, NoiseKind, Strategy
from planner.sql import listed
from planner.workload import Wanted
from proxy.api import CUT_SHARE, BudgetStatus, LimitStatus, TableInfo
from proxy.config import DEFAULT_MEMORY, MemoryLimits, Sharing
from proxy.monitoring import UNWATCHED, Watcher
from proxy.tables.acquisition import Acquired, Acquisition
from proxy.tables.empty_history import DefaultWidths, EmptyHistory
from proxy.tables.extent import Extent
from proxy.tables.in_flight import Purchases
from proxy.tables.parts import HolderCaps
from proxy.tables.purchasing import Added, DirectPurchases, Purchasing
from proxy.tables.snapshot import TableSnapshot
from proxy.tables.table_state import MetBefore, TableState


class ServedTable:
    """A private table that is served. Thread-safe.

    Parameters
    ----------
    default : AccuracyTarget
        Of counts in a request that names none.
    strategy : Strategy
        How measurements are chosen.
    sums : mapping
        The declared targets for sums of measures, by their names.
    gaussian : GaussianOffer, optional
        The owner's offer of Gaussian noise. Where analysts do not see each other's history, it is
        for synthetic tables alone: what SQL costs would tell whether others have begun with it.
    default_cost : Fraction, optional
        The most that a statement without a target may cost.
    cut_share_max : float
        The most that a bound found for a statement may leave out, of its rows or its sum.
    sharing : Sharing
        Whether analysts are shown what others have asked.
    holders_public : bool
        Whether the axis of the holders of a federated table is a column of SQL.
    before : ServedTable, optional
        The same table as it was served before it grew, or was renewed.
    """

    def __init__(  # noqa: PLR0913 - all that its owner has said about it
        self,
        schema: Schema,
        default: AccuracyTarget,
        gate: Gate,
        strategy: Strategy = Strategy.AUTO,
        watcher: Watcher = UNWATCHED,
        *,
        sums: Mapping[str, SumTarget] = MappingProxyType({}),
        gaussian: GaussianOffer | None = None,
        default_cost: Fraction | None = None,
        cut_share_max: float = CUT_SHARE,
        sharing: Sharing = Sharing.SHARED,
        holders_public: bool = False,
        memory: MemoryLimits = DEFAULT_MEMORY,
        before: "ServedTable | None" = None,
    ) -> None:
        self.extent = extent = Extent.of(schema, gate.history)
        visible = extent.schema.visible(holders_public=holders_public)
        self.info = TableInfo(
            visible, default, sums, default_cost=default_cost, cut_share_max=cut_share_max
        )
        is_private = sharing is Sharing.PRIVATE
        fresh = EmptyHistory(self.info, extent, gate, strategy)
        self.empty_history = fresh if is_private else None
        self.default_widths = DefaultWidths(fresh)
        self.delta = None if gaussian is None else gaussian.delta
        self.first_terms = None if gaussian is None else gaussian.first_terms
        self.memory = memory
        self.gate = gate
        self.watcher = watcher
        offer = None if is_private else gaussian
        caps = HolderCaps()
        self._state = TableState(
            extent,
            gate,
            strategy,
            watcher,
            offer,
            memory=EstimatorMemory(memory.estimator),
            caps=caps,
        )
        self.purchasing: Purchasing = (
            Purchasing(gate, self._state, Purchases(gate, watcher, caps), watcher)
            if before is None or before.extent.generation < extent.generation
            else replace(before.purchasing, state=self._state)  # what is being bought goes on
        )
        self.counted_as = self.info.schema
        """Its schema, under the name that the ledger has; of all generations the same."""
        self._served = partial(
            ServedTable,
            default=default,
            strategy=strategy,
            watcher=watcher,
            sums=sums,
            gaussian=gaussian,
            default_cost=default_cost,
            cut_share_max=cut_share_max,
            sharing=sharing,
            holders_public=holders_public,
            memory=memory,
        )
        self._acquisition = Acquisition(self.purchasing)
        self._direct = DirectPurchases(self.purchasing)

    @property
    def is_current(self) -> bool:
        """Whether this is what is readable of the table, of its present generation."""
        return self.extent.is_of(self.gate.history)

    @property
    def is_federated(self) -> bool:
        """Whether several holders have its rows, and measure them themselves."""
        return self.extent.holders is not None

    def grown(self) -> "ServedTable":
        """The table as it is served now that more of it is readable, or that it was renewed."""
        return self._served(schema=self.extent.whole_schema, gate=self.gate, before=self)

    def earlier(self, place: int, name: str) -> "ServedTable":
        """An earlier generation, by its place among them, as a table with a name of its own."""
        gate = EndedGeneration(self.gate, place, name)
        served = self._served(schema=gate.schema, gate=gate)
        served.counted_as = self.counted_as
        return served

    @property
    def position(self) -> tuple[int, str]:
        """How far its ledger was read."""
        return self.gate.position

    @property
    def history(self) -> History:
        """What was measured so far; to be looked at only."""
        return self._state.history

    @property
    def noises(self) -> NoisePlaces:
        """Every measurement, of rows and of units; to be looked at only."""
        return self._state.noises

    @property
    def met_before(self) -> MetBefore:
        """What met the targets that depend on answers."""
        return self._state.met_before

    def recalled(self, wanted: Sequence[Wanted]) -> list[RowEstimates] | None:
        """What the history says, if all of it was asked since anything was measured.

        It takes no lock, so a dashboard that asks again does not wait.
        """
        return self._state.recalled(wanted)

    def look(self, wanted: Sequence[Wanted]) -> list[RowEstimates]:
        """The history's estimates of every block's rows, all at one moment."""
        return self._state.look(wanted)

    def snapshot(self) -> TableSnapshot:
        """The table as it is now: to plan on, or for a long look."""
        return self._state.snapshot()

    def price(self, wanted: Sequence[Wanted]) -> Fraction:
        """What it would cost now to know blocks as well as they are wanted."""
        snapshot = self.snapshot()
        plan = snapshot.plan(wanted, snapshot.estimates(wanted))
        return snapshot.price(plan.planned, plan.counts).epsilon

    def acquire(
        self, wanted: Sequence[Wanted], payer: Payer, epsilon_cap: Fraction | None
    ) -> Acquired:
        """What is wanted, known as well as it is wanted: from the history, or bought.

        Raises
        ------
        BudgetExhausted, LimitReached, CostAboveCap, TooLarge, InvalidTarget
            Before anything is charged.
        LedgerUnavailable, SourceUnavailable
            A charge already made waits, and is completed for the next request.
        """
        return self._acquisition.acquire(wanted, payer, epsilon_cap)

    def check(
        self, plan: Sequence[PlannedMeasurement], payer: Payer, *, epsilon_cap: Fraction | None
    ) -> None:
        """Refuse a plan as `buy_plan` would: BudgetExhausted, LimitReached, CostAboveCap."""
        self.gate.check(self.extent.kept(plan), payer, epsilon_cap=epsilon_cap)

    def refusals(self, plan: Sequence[PlannedMeasurement], payer: Payer) -> list[Refused | None]:
        """How each holder of a federated table would refuse its part of a plan, if it would.

        All are asked at the same time, and nothing is charged. Empty for any other table.
        """
        holders = self.extent.holders
        if holders is None:
            return []
        parts: dict[int, list[PlannedMeasurement]] = {}
        for one in self.extent.split(plan):
            parts.setdefault(holders.at_holder(one.block)[0], []).append(one)

        def ask(level: int) -> Refused | None:
            try:
                kept = self.extent.kept(parts.get(level, ()))
                self.gate.foresee(kept, (), payer)
            except Refused as refusal:
                return refusal
            return None

        with ThreadPoolExecutor(holders.n_holders, thread_name_prefix="holder") as pool:
            return list(pool.map(ask, range(holders.n_holders)))

    def price_of_tables(self, added: Added) -> Fraction:
        """What `buy_tables` would cost now. Charges nothing."""
        return self._direct.price_of_tables(added)

    def buy_tables(
        self,
        added: Added,
        payer: Payer,
        *,
        epsilon_cap: Fraction | None,
        kind: NoiseKind = LAPLACE,
        levels: Collection[int] | None = None,
    ) -> Fraction:
        """Raise the counts of some partitions, each by a weight; what that cost.

        Of a federated table, those of the holders with these levels; of all by default.

        Raises as `acquire` does, but for InvalidTarget.
        """
        return self._direct.buy_tables(added, payer, epsilon_cap, kind, levels)

    def ask_statistics(
        self, statistics: Sequence[Asked], payer: Payer, *, epsilon_cap: Fraction | None
    ) -> tuple[tuple[float, ...], Fraction]:
        """The released values of statistics (distances, counts, choices), and what they cost.

        Raises as `acquire` does, but for InvalidTarget.
        """
        return self._direct.ask_statistics(statistics, payer, epsilon_cap)

    def buy_plan(
        self,
        plan: Sequence[PlannedMeasurement],
        n_measurements: int,
        payer: Payer,
        *,
        epsilon_cap: Fraction | None,
    ) -> Fraction:
        """Measure a plan made for a history of `n_measurements`; what that cost.

        Raises as `acquire` does, but for InvalidTarget; and StalePlan, if the history has grown.
        """
        return self._direct.buy_plan(plan, n_measurements, payer, epsilon_cap)

    def price_for(self, asked: AskedByOther, payer: Payer) -> Fraction:
        """What it would cost to measure what another ledger asks for; raises as `measure_for`."""
        return self.gate.price_for(asked, payer, self.first_terms).epsilon

    def measure_for(self, asked: AskedByOther, payer: Payer) -> Told:
        """Charge what another ledger asks for, once, and measure it; what that ledger is told.

        Raises
        ------
        BudgetExhausted, LimitReached, TooLarge, InvalidRequest
            Before anything is charged.
        LedgerUnavailable, SourceUnavailable
            A charge already made waits for the same request.
        """
        return self.purchasing.in_flight.measure_for(asked, payer, self.first_terms)

    def able_holders(self) -> list[bool]:
        """For each holder of a federated table, whether it can be asked and has anything left."""
        return [bool(left) for left in self.gate.left_at_holders()]

    def named_holders(self, levels: Collection[int]) -> str:
        """Some holders of a federated table; how many of all, where SQL does not name them."""
        axis = self.extent.holders
        if axis is None:
            raise TypeError(f"{self.info.schema.table} has no holders")
        if axis.axis not in self.info.schema.by_name:
            return f"{len(levels)} of {axis.n_holders}"
        names = self.extent.schema.by_name[axis.axis].levels
        return listed([str(names[level]) for level in sorted(levels)])

    def left(self, payer: Payer) -> Fraction:
        """What a payer may still spend: the least that the budget and the payer's limits leave."""
        left = self.gate.budget().left
        for one in self.gate.allowances(payer):
            if one.limit.epsilon is not None and one.units_left is not None:
                left = min(left, Fraction(one.units_left, UNITS_PER_EPSILON))
        return left

    def budget(self, payer: Payer | None = None) -> BudgetStatus:
        """What was spent and what is left; with the limits that bind a payer."""
        budget = self.gate.budget()
        binding = () if payer is None else self.gate.allowances(payer)
        return BudgetStatus(
            table=self.info.schema.table,
            limit=budget.limit,
            spent=budget.spent,
            n_measurements=budget.n_measurements,
            renewal=budget.renewal,
            limits=tuple(_limit_status(one) for one in binding),
        )


def _limit_status(binding: BindingLimit) -> LimitStatus:
    limit = binding.limit
    return LimitStatus(
        subject=str(limit.subject),
        window=limit.window.value,
        limit=limit.epsilon,
        spent=Fraction(binding.units_spent, UNITS_PER_EPSILON),
        per_query=limit.per_query,
    )
