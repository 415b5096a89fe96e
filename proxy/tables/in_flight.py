"""What is being bought on one table just now, and the queue of requests that lack something of it.

The queue of requests that lack something of one table: one leads, and buys for the others too.

Each payer has a queue. The request that leads plans a purchase for itself and for those that wait
behind it and have no cap of their own. They would otherwise plan one after the other, each on what
the one before had bought. Requests of different payers do not wait for each other. Nothing here
knows what a purchase is.

Between the decision to buy and the durable measurement lie two writes to a disk and a read of the
data. Other requests go on meanwhile, and must not buy the same again: here they see what is
promised, rows that will be known soon, at weights that are known already. Half-widths depend on
weights alone, so whether waiting is worthwhile is decided before there is a value.

A charge that is not completed (its process died, or the data could not be read) is completed by the
next request that needs to buy; until then nothing else is charged.
"""

import threading
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Final, TypeAlias, TypeVar

from accountant.gate import Asked, Gate, Told, n_come
from accountant.ledger import Payer
from accountant.ledger.history import Name, Payment, StalePlan, TableHistory, name_of
from cube.holders import Holders
from cube.measurement import UNITS_PER_EPSILON, GaussianTerms, Measurement, PlannedMeasurement
from cube.pace import checkpoint, note_paid, seconds_left, waiting
from cube.refusals import BudgetExhausted, LimitReached, Refused, SourceUnavailable
from cube.statistic import Asked as AskedStatistic
from inference import RowEstimates
from planner.measuring import PurchasePlan, meets
from planner.workload import Wanted
from proxy.monitoring import Stage, Watcher
from proxy.tables.parts import HolderCaps, Part, holder_of, parts_of

Item = TypeVar("Item")
Result = TypeVar("Result")

WAIT_SECONDS_MAX: Final = 60.0  # else a disk that hangs would hold every thread
N_COMPANIONS_MAX: Final = 32  # served together by one that leads


@dataclass(slots=True, eq=False)
class PendingRequest:
    """What one request wants of one table, how well that is known, and what it has cost so far.

    Parameters
    ----------
    cap : Fraction, optional
        The most that all of it may cost. What has a cap is bought alone.
    """

    wanted: tuple[Wanted, ...]
    payer: Payer
    cap: Fraction | None
    known: Sequence[RowEstimates] = ()
    epsilons: list[Fraction] = field(init=False)
    was_known: list[bool] = field(init=False)
    is_alone: bool = field(init=False)
    n_overtaken: int = 0
    leads: bool = False
    called: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        self.epsilons = [Fraction(0)] * len(self.wanted)
        self.was_known = [True] * len(self.wanted)
        self.is_alone = self.cap is not None

    @property
    def is_met(self) -> bool:
        """Whether all of it is known as well as it is wanted."""
        return all(
            meets(rows, one.target) for rows, one in zip(self.known, self.wanted, strict=True)
        )

    @property
    def left(self) -> Fraction | None:
        """What it may still cost."""
        return None if self.cap is None else self.cap - sum(self.epsilons, Fraction(0))


class PurchaseQueue:
    """The requests of one table that lack something, in a queue for each payer. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._queues: dict[Payer, list[PendingRequest]] = {}
        """The requests that wait, for each payer with a request that leads."""

    @property
    def n_waiting(self) -> int:
        """The number of requests that wait for one that leads, and have not joined it yet."""
        with self._lock:
            return sum(map(len, self._queues.values()))

    @property
    def is_led(self) -> bool:
        """Whether a request leads just now."""
        return bool(self._queues)

    def leads(self, need: PendingRequest) -> bool:
        """Wait until the request leads (True), or another has led for it (False).

        A request that leads must `pass_on`.

        Raises
        ------
        SourceUnavailable
            If that takes too long.
        """
        with self._lock:
            waiting_here = self._queues.get(need.payer)
            need.leads = waiting_here is None
            if waiting_here is None:
                self._queues[need.payer] = []
                return True
            need.called.clear()
            waiting_here.append(need)
        with waiting():
            is_called = need.called.wait(seconds_left(WAIT_SECONDS_MAX))
        if not is_called and self._has_left(need):
            checkpoint()  # its own time may be over
            raise too_long()
        return need.leads

    def companions(self, need: PendingRequest) -> list[PendingRequest]:
        """The waiting requests that one that leads may serve together with its own."""
        if need.is_alone:
            return []
        with self._lock:
            waiting_here = self._queues[need.payer]
            found = [one for one in waiting_here if not one.is_alone][:N_COMPANIONS_MAX]
            waiting_here[:] = [one for one in waiting_here if one not in found]
        return found

    def pass_on(self, need: PendingRequest) -> None:
        """Let the next request of the same payer lead, if one waits."""
        with self._lock:
            waiting_here = self._queues[need.payer]
            if waiting_here:
                following = waiting_here.pop(0)
                following.leads = True
                following.called.set()
            else:
                del self._queues[need.payer]

    def _has_left(self, need: PendingRequest) -> bool:
        """Remove a request that waits no longer; False if it was called at the last moment."""
        with self._lock:
            if need.called.is_set():
                return False
            # There is no queue left if its leader took this request along, and is done.
            waiting_here = self._queues.get(need.payer, [])
            waiting_here[:] = [one for one in waiting_here if one is not need]
            return True


def too_long() -> SourceUnavailable:
    """The refusal if what other requests measure does not come in time."""
    return SourceUnavailable(
        "This request waits for measurements of other requests, which have not come.",
        hint="Ask again later: paid measurements are not charged again.",
    )


PATIENCE_SECONDS: Final = 5.0  # with a charge of another process, before it is taken for dead
N_DOUBLINGS_MAX: Final = 6
GLANCE_SECONDS: Final = 0.02  # between looks at what another process is at
MOMENT_SECONDS: Final = 0.1  # in which another process mostly measures what it has charged
N_AT_HOLDERS_MAX: Final = 2**10  # threads that wait for holders, one for each call
ANSWER_SECONDS: Final = 3.0  # to measure and to answer, once it is charged; mostly far less


ChargeTurn: TypeAlias = tuple[int, int]  # the number of a charge, and of its turn to be measured


class Purchase:
    """One plan on its way to being measured.

    Parameters
    ----------
    beside : PromisedPurchases, optional
        What others were buying when it was made; None to buy it whatever they have done since.
    statistics : sequence of PlannedStatistic or PlannedGaussian
        To be asked beside what the plan says.
    """

    def __init__(
        self,
        plan: PurchasePlan,
        beside: "PromisedPurchases | None",
        statistics: Sequence[AskedStatistic] = (),
    ) -> None:
        self.plan = plan
        self.beside = beside
        self.statistics = (*plan.counts, *statistics)
        self.charges: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True, eq=False)
class PromisedPurchases:
    """What others are buying at one moment.

    Parameters
    ----------
    own : tuple of Purchase
        The purchases of this process.
    foreign : frozenset of int
        Numbers of charges that other processes have made.
    rows : tuple of PlannedMeasurement
        What all of it will measure.
    counts : frozenset of (str, int)
        The counts of units that all of it will measure.
    n_read : int
        How much was known of other processes.
    n_payments : int
        How many charges there were.
    """

    own: tuple[Purchase, ...]
    foreign: frozenset[int]
    rows: tuple[PlannedMeasurement, ...]
    counts: frozenset[Name]
    n_read: int
    n_payments: int


_NOTHING: Final = PurchasePlan((), ())  # what others wait for, where another ledger buys

StillServes: TypeAlias = Callable[[PromisedPurchases], bool]


def epsilon_of(payments: Iterable[Payment]) -> Fraction:
    """What payments added to a table's cost together."""
    return Fraction(sum(one.units for one in payments), UNITS_PER_EPSILON)


class Purchases:
    """The purchases under way on one table. Thread-safe."""

    def __init__(self, gate: Gate, watcher: Watcher, caps: HolderCaps | None = None) -> None:
        self._gate = gate
        self._caps = HolderCaps() if caps is None else caps
        self._watcher = watcher
        self._own: list[Purchase] = []
        self._failed: set[ChargeTurn] = set()
        self._first_seen: dict[ChargeTurn, float] = {}
        self._n_turns: Counter[int] = Counter()
        self._changed = threading.Condition()
        self._repairing = threading.Lock()
        # Threads are kept: to begin one takes longer than many calls.
        self._at_holders = ThreadPoolExecutor(N_AT_HOLDERS_MAX, thread_name_prefix="holder")

    def promises(self, own: Collection[Purchase] | None = None) -> PromisedPurchases:
        """What is paid for, or about to be, and not measured yet; of this process, only `own`.

        To be looked at before the history is, and one's own before that of others: what is
        measured in between is then in both, and is waited for without need; the other way round it
        would be in neither, and bought again.
        """
        with self._changed:
            own = tuple(one for one in self._own if own is None or one in own)
        history = self._gate.history
        foreign = {
            seq: charge
            for seq, charge in history.pending.items()
            if seq in history.read and not self._is_held_up(seq, history)
        }
        rows = (
            *(planned for one in own for planned in one.plan.planned),
            *(one for charge in foreign.values() for one in history.raises.planned(charge)),
        )
        counts = (
            *(planned.count for one in own for planned in one.plan.counts),
            *(one.count for charge in foreign.values() for one in charge.unit_counts),
        )
        return PromisedPurchases(
            own,
            frozenset(foreign),
            rows,
            frozenset(map(name_of, counts)),
            n_read=len(history.read),
            n_payments=len(history.payments),
        )

    def _is_held_up(self, seq: int, history: TableHistory) -> bool:
        """Whether a charge waits for a holder that has just failed to measure it."""
        turn = (seq, history.turns.get(seq, 0))
        return self._gate.schema.holders is not None and turn in self._failed

    def are_kept(self, promises: PromisedPurchases) -> bool:
        """Whether what was promised has come or will, and nothing else, since somebody looked."""
        with self._changed:
            own = tuple(self._own)
        history = self._gate.history
        paid = {payment.seq for payment in history.payments[promises.n_payments :]}
        ended = [one for one in promises.own if one not in own]
        return (
            set(own) <= set(promises.own)
            and paid <= {seq for one in promises.own for seq in one.charges}
            and len(history.read) == promises.n_read + n_come(history, promises.foreign)
            and all(one.charges for one in ended)  # none was refused, or overtaken
            and not any(history.pending.keys() & one.charges for one in ended)
        )

    def begin(
        self,
        plan: PurchasePlan,
        beside: PromisedPurchases | None,
        statistics: Sequence[AskedStatistic] = (),
    ) -> Purchase:
        """Promise a plan, inside a turn; `carry_out` must follow."""
        purchase = Purchase(plan, beside, statistics)
        with self._changed:
            self._own.append(purchase)
        return purchase

    def carry_out(
        self,
        purchase: Purchase,
        payer: Payer,
        *,
        epsilon_cap: Fraction | None,
        still_serves: StillServes | None = None,
    ) -> tuple[Payment, ...]:
        """Charge a plan and measure it; the payments, of a federated table one for each holder.

        If others have charged since it was made, it is charged as it is if it `still_serves`, which
        is asked what is promised by then.

        Raises
        ------
        BudgetExhausted, LimitReached, CostAboveCap, TooLarge, TooSlow, StalePlan
            Before anything is charged; of a federated table, what other holders have measured
            until then is kept.
        LedgerUnavailable, SourceUnavailable
            A charge made waits.
        """
        try:
            with self._watcher.purchase():
                return self._carried_out(purchase, payer, epsilon_cap, still_serves)
        finally:
            with self._changed:
                self._own.remove(purchase)
                self._changed.notify_all()

    def _carried_out(
        self,
        purchase: Purchase,
        payer: Payer,
        epsilon_cap: Fraction | None,
        still_serves: StillServes | None,
    ) -> tuple[Payment, ...]:
        """Charge for the rows of each holder, and have all of it measured."""
        parts = [Part(tuple(purchase.plan.planned), purchase.statistics)]
        if self._gate.schema.holders is not None:
            parts = parts_of(purchase.plan.planned, purchase.statistics, self._gate.schema)
            self._foresee(parts, payer)
        payments, refusal = self._charged(purchase, parts, payer, epsilon_cap, still_serves)
        purchase.charges |= {one.seq for one in payments}
        if payments:
            note_paid()
            with self._watcher.stage(Stage.MEASURE):
                self._measure_all([one.seq for one in payments])
        if refusal is not None:
            raise refusal
        return tuple(payments)

    def _foresee(self, parts: Sequence[Part], payer: Payer) -> None:
        """Have each holder refuse its part before any is charged; ask all of them at once.

        Raises
        ------
        StalePlan
            If a holder has less left than was thought, or has measured meanwhile what waited for
            it: a plan with less of it may do.
        """

        def ask(part: Part) -> Refused | StalePlan | None:
            try:
                if part.level is not None and self._complete_of(part.level):
                    return StalePlan("what a holder was charged for before is measured only now")
                self._gate.foresee(part.planned, part.statistics, payer)
            except (Refused, StalePlan) as refusal:
                return refusal
            return None

        refusals = self._at_once(ask, parts)
        news = False
        for part, refusal in zip(parts, refusals, strict=True):
            if isinstance(refusal, BudgetExhausted | LimitReached) and part.level is not None:
                left = refusal.shortfall.epsilon_left or Fraction(0)
                is_gaussian = any(one.is_gaussian for one in part.planned)
                news |= self._caps.note(part.level, left, is_gaussian=is_gaussian)
        found = [one for one in refusals if one is not None]
        if found and news:
            raise StalePlan("a holder has less left than was planned with") from found[0]
        if found:
            raise found[0]

    def _measure_all(self, charges: Sequence[int]) -> None:
        """Measure what was charged, each holder's rows at the same time."""
        self._at_once(self._measure, charges)

    def _at_once(self, call: Callable[[Item], Result], items: Sequence[Item]) -> list[Result]:
        """What a call gives for each item, all at the same time: each waits for a holder."""
        if len(items) == 1:
            return [call(items[0])]
        with waiting(is_first=True):
            asked = [self._at_holders.submit(call, one) for one in items]
            wait(asked)
        return [one.result() for one in asked]

    def _measure(self, seq: int) -> None:
        if self._completed(seq, 0) is None:
            self._await_others(seq)

    def measure_for(self, asked: Asked, payer: Payer, terms: GaussianTerms | None = None) -> Told:
        """Charge what another ledger asks for, once, and measure it; what that ledger is told.

        The `terms` are as for `Gate.charge_for`.

        Raises
        ------
        BudgetExhausted, LimitReached, TooLarge, TooSlow, InvalidRequest
            Before anything is charged.
        LedgerUnavailable, SourceUnavailable
            A charge made waits, for the same request.
        """
        purchase = Purchase(_NOTHING, None)
        with self._changed:
            self._own.append(purchase)
        try:
            with self._watcher.purchase():
                checkpoint(ANSWER_SECONDS)
                with self._watcher.stage(Stage.CHARGE), waiting(is_first=True):
                    seq = self._gate.charge_for(asked, payer, terms)
                purchase.charges |= {seq}
                note_paid()
                with self._watcher.stage(Stage.MEASURE):
                    turn = self._gate.history.turns.get(seq, 0)
                    if self._completed(seq, turn) is None:
                        purchase.charges -= {seq}  # it is not this request that is at it
                        self._await_others(seq)
        finally:
            with self._changed:
                self._own.remove(purchase)
                self._changed.notify_all()
        told = self._gate.told(seq)
        if told is None:
            raise SourceUnavailable(
                f"The data of {self._gate.schema.table} was replaced before it was measured.",
                hint="The coordinator's owner accepts it with `tacit table renew`.",
            )
        return told

    def _complete_of(self, level: int) -> bool:
        """Complete what a holder was charged for before, so that nothing is bought of it twice.

        Whether there was anything.

        Raises
        ------
        SourceUnavailable
            If it does not measure it.
        """
        holders, at_work = Holders.of(self._gate.schema), self._at_work()
        history, found = self._gate.history, False
        for seq, charge in history.pending.items():
            if seq in at_work or holders is None or holder_of(charge, holders) != level:
                continue
            found = True
            new = self._gate.take_over(seq, history.turns.get(seq, 0))
            try:
                if new is not None:
                    self._completed(seq, new)
            except Refused:
                if seq in self._gate.history.pending:
                    raise  # else the holder has refused it for good
        return found

    def _at_work(self) -> set[int]:
        """The charges that this process is measuring."""
        with self._changed:
            return {seq for one in self._own for seq in one.charges}

    def _charged(
        self,
        purchase: Purchase,
        parts: Sequence[Part],
        payer: Payer,
        epsilon_cap: Fraction | None,
        still_serves: StillServes | None,
    ) -> tuple[list[Payment], Refused | StalePlan | None]:
        """What was charged for parts, and why the others were not; raises as `carry_out`."""
        while True:
            checkpoint(ANSWER_SECONDS)
            beside = purchase.beside
            with self._watcher.stage(Stage.CHARGE), waiting(is_first=True):
                payments, refusal = self._gate.charge_each(
                    [(part.planned, part.statistics) for part in parts],
                    payer,
                    epsilon_cap=epsilon_cap,
                    n_read=None if beside is None else beside.n_read,
                    awaited=() if beside is None else beside.foreign,
                )
            if payments or not isinstance(refusal, StalePlan):
                return payments, refusal
            if still_serves is None or not self._is_promised_anew(purchase, still_serves):
                raise refusal

    def _is_promised_anew(self, purchase: Purchase, still_serves: StillServes) -> bool:
        """Whether a plan that others overtook is to be charged beside what they did."""
        before = purchase.beside
        if before is None:
            return False
        now = self.promises(before.own)
        if not still_serves(now):
            return False
        purchase.beside = now
        return True

    def complete_overdue(self) -> None:
        """Measure what was charged and is not being measured.

        Raises
        ------
        LedgerUnavailable, SourceUnavailable
            Waiting requests go on waiting, and so must every request that needs to buy something.
        """
        if not self._overdue():
            return
        with self._repairing:  # one does it for all
            for seq, turn in self._overdue():
                new = self._gate.take_over(seq, turn)
                if new is None:
                    continue
                try:
                    self._completed(seq, new)
                except Refused:
                    if self._gate.schema.holders is None:
                        raise  # else the others go on without this holder

    def wait_a_moment(self) -> None:
        """Let other processes measure what they have just charged.

        A plan beside it may turn out to need it, and is then made in vain. What has not come in a
        moment is planned beside: its process may be dead.
        """
        end = time.monotonic() + MOMENT_SECONDS  # others may go on charging
        while self._is_fresh() and time.monotonic() < end:
            checkpoint()
            with self._watcher.stage(Stage.WAIT), waiting():
                time.sleep(GLANCE_SECONDS)
            self._gate.refresh()

    def _is_fresh(self) -> bool:
        """Whether another process has charged something a moment ago, and not measured it."""
        self._overdue()  # notes when each was first seen
        history = self._gate.history
        since = time.monotonic() - MOMENT_SECONDS
        with self._changed:
            at_work = {seq for one in self._own for seq in one.charges}
            return any(
                seen > since and seq not in at_work and seq in history.read
                for (seq, _), seen in self._first_seen.items()
            )

    def wait(self, promises: PromisedPurchases) -> None:
        """Until all of it is measured or given up; or until some of it is overdue.

        Raises
        ------
        SourceUnavailable
            If that takes too long.
        """
        end = time.monotonic() + WAIT_SECONDS_MAX
        with self._watcher.stage(Stage.WAIT), waiting():
            with self._changed:
                is_over = self._changed.wait_for(
                    lambda: not set(promises.own) & set(self._own), seconds_left(WAIT_SECONDS_MAX)
                )
            if not is_over:
                checkpoint()
                raise too_long()
            while promises.foreign & self._gate.history.pending.keys() and not self._overdue():
                checkpoint()
                self._glance(end)

    def _completed(self, seq: int, turn: int) -> tuple[Measurement, ...] | None:
        """Measure in a turn of this process; a turn that fails is free for others."""
        try:
            return self._gate.complete(seq)
        except BaseException:
            with self._changed:
                self._failed.add((seq, turn))
            raise

    def _await_others(self, seq: int) -> None:
        """Until another process has measured what it took over from this one."""
        end = time.monotonic() + WAIT_SECONDS_MAX
        while seq in self._gate.history.pending:
            self._glance(end)
            self.complete_overdue()

    def _glance(self, end: float) -> None:
        """Look at other processes again, after a little while."""
        if time.monotonic() > end:
            raise too_long()
        time.sleep(GLANCE_SECONDS)
        self._gate.refresh()

    def _overdue(self) -> list[ChargeTurn]:
        """Turns in which a measurement should have come by now.

        Each turn of a charge is given twice the time of the one before: a read that takes longer
        than the first patience is then finished by somebody.
        """
        history = self._gate.history
        turns = {(seq, history.turns.get(seq, 0)) for seq in history.pending}
        now = time.monotonic()
        with self._changed:
            self._n_turns.update(seq for seq, _ in turns - self._first_seen.keys())
            self._first_seen = {turn: self._first_seen.get(turn, now) for turn in turns}
            self._failed &= turns
            at_work = {seq for one in self._own for seq in one.charges}
            return sorted(
                turn
                for turn in turns
                if turn in self._failed
                or (
                    turn[0] not in at_work
                    and now - self._first_seen[turn] > self._patience(turn[0])
                )
            )

    def _patience(self, seq: int) -> float:
        return PATIENCE_SECONDS * 2.0 ** min(self._n_turns[seq] - 1, N_DOUBLINGS_MAX)
