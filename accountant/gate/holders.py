"""The rows of a federated table, which its holders have: what each is asked, and what it tells.

The gate of a coordinator charges its own ledger first, as for any table, and the charge is of rows
of one holder. Then it asks the holder's gate, which charges its own ledger and measures. The name
of a request is a digest of the charge, so what is asked again after a failure has the same name,
and the holder tells the same again.

A holder's reply is checked against the charge before anything is recorded: as many values as rows,
each within its range. What a hostile holder tells is wrong, and nothing else.

Proof: proofs/federation.md.
"""

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from accountant.gate.asked import Asked, AskedRows, AskedStatistic, Raised, RemoteGates, Told
from accountant.ledger import (
    Charge,
    ChargedBlock,
    ChargedChoice,
    ChargedDistance,
    ChargedGaussian,
    ChargedStatistic,
    ChargedUnitCount,
    HolderReceipt,
    Measured,
    write_charge,
)
from accountant.ledger.history import ReleasedStatistics, TableHistory
from cube.encoding import canonical_json
from cube.holders import Holders
from cube.refusals import BudgetExhausted, LimitReached, SourceUnavailable
from cube.schema import Schema
from cube.statistic import Distance

REFERENCE_DIGITS: Final = 40


@dataclass(frozen=True, slots=True, eq=False)
class HeldRows:
    """The gates of the holders of one table.

    Parameters
    ----------
    schema : Schema
        Of the federated table.
    gates : RemoteGates
    ledger_name : callable
        The digest of the first entry of the coordinator's ledger.
    """

    schema: Schema
    gates: RemoteGates
    ledger_name: Callable[[], str]
    holders: Holders

    def check(self, charge: Charge, history: TableHistory) -> None:
        """Find out whether the holder would charge for this; raises as `RemoteGates.check`."""
        level, asked = self._asked(0, charge, history)
        try:
            self.gates.check(level, asked)
        except (BudgetExhausted, LimitReached) as refusal:
            raise self._of_holder(refusal, level) from refusal

    def _of_holder(
        self, refusal: BudgetExhausted | LimitReached, level: int
    ) -> BudgetExhausted | LimitReached:
        """The refusal of a holder, with its name."""
        name = self.schema.by_name[self.holders.axis].levels[level]
        table = f"{self.schema.table} at {name}"
        return type(refusal)(replace(refusal.shortfall, table=table))

    def measured(self, seq: int, turn: int, charge: Charge, history: TableHistory) -> Measured:
        """The measurement of a charge, by the holder of its rows.

        Raises
        ------
        Refused, SourceUnavailable
            As `RemoteGates.measure`.
        """
        level, asked = self._asked(seq, charge, history)
        try:
            told = self.gates.measure(level, asked)
        except (BudgetExhausted, LimitReached) as refusal:
            raise self._of_holder(refusal, level) from refusal
        if not _fits(told, charge):
            raise self.nonsense(level)
        try:
            receipt = HolderReceipt(told.entry, told.head_entry, told.head)
        except ValueError:
            raise self.nonsense(level) from None
        return Measured(seq, told.values, turn, told.released, receipt)

    def nonsense(self, level: int) -> SourceUnavailable:
        """The refusal of a reply that does not fit what was asked."""
        name = self.schema.by_name[self.holders.axis].levels[level]
        return SourceUnavailable(
            f"The holder {name} of {self.schema.table} answered something else than was asked.",
            hint="Its owner should look at its log. What it charged is answered again, free, once "
            "it answers well.",
        )

    def _asked(self, seq: int, charge: Charge, history: TableHistory) -> tuple[int, Asked]:
        """The holder of a charge, and the charge as a request."""
        levels, rows = set(), []
        for one in charge.blocks:
            level, block = self.holders.at_holder(one.block)
            levels.add(level)
            charged = ChargedBlock(block, one.noise)
            raised = self._raised(one.raised_from, history.paid_by, history)
            rows.append(AskedRows(charged, raised))
        statistics = []
        for statistic in charge.statistics:
            level, held = self._statistic_at(statistic, history)
            levels.add(level)
            statistics.append(held)
        if len(levels) != 1:
            raise ValueError("a charge must be for the rows of one holder")
        level = levels.pop()
        reference = self._reference(seq, charge)
        asked = Asked(reference, self.gates.generation(level), tuple(rows), tuple(statistics))
        return level, asked

    def _statistic_at(
        self, charged: ChargedStatistic, history: TableHistory
    ) -> tuple[int, AskedStatistic]:
        if isinstance(charged, ChargedDistance):
            level, distance = self.holders.distance_at(charged.distance)
            return level, AskedStatistic(ChargedDistance(distance, charged.noise))
        if isinstance(charged, ChargedChoice):
            level, choice = self.holders.choice_at(charged.choice)
            return level, AskedStatistic(ChargedChoice(choice, charged.weight))
        if isinstance(charged, ChargedGaussian) and isinstance(charged.statistic, Distance):
            level, distance = self.holders.distance_at(charged.statistic)
            return level, AskedStatistic(ChargedGaussian(distance, charged.noise))
        if isinstance(charged, ChargedUnitCount):
            level, block = self.holders.at_holder(charged.count.block)
            held = ChargedUnitCount(replace(charged.count, block=block), charged.noise)
            paid_by = history.unit_counts.paid_by
            return level, AskedStatistic(held, self._raised(charged.raised_from, paid_by, history))
        raise ValueError("only rows, distances, choices and counts of units are asked of a holder")

    def _raised(
        self, place: int | None, paid_by: Sequence[int], history: TableHistory
    ) -> Raised | None:
        """What a raise is called at the holder."""
        if place is None:
            return None
        seq = paid_by[place]
        first = place
        while first and paid_by[first - 1] == seq:
            first -= 1
        payment = next(one for one in reversed(history.payments) if one.seq == seq)
        return Raised(self._reference(seq, payment.charge), place - first)

    def _reference(self, seq: int, charge: Charge) -> str:
        """The name of a charge: no other charge of this or another ledger has it."""
        named = [self.ledger_name(), self.schema.table, seq, write_charge(charge)]
        return hashlib.sha256(canonical_json(named).encode()).hexdigest()[:REFERENCE_DIGITS]


def _fits(told: Told, charge: Charge) -> bool:
    """Whether a reply has a value for each row, and a number for each statistic."""
    if [len(values) for values in told.values] != [one.block.n_rows for one in charge.blocks]:
        return False
    try:
        ReleasedStatistics(0, charge.statistics, told.released)
    except ValueError:
        return False
    return True
