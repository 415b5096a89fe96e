"""The book of one table: everything that its entries record, up to any of them.

Budgets and limits are in accounts.py, rows and noise in purchases.py, Gaussian noise in
gaussian.py, counts of units in unit_counts.py, and the cost of rows in cost.py; here they are
combined.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from accountant.auditor.accounts import Accounts
from accountant.auditor.bodies import (
    Accepted,
    Advanced,
    Body,
    Budget,
    Charge,
    Joined,
    Limit,
    Measured,
    Opened,
    Pinned,
    TakenOver,
)
from accountant.auditor.by_level import follow_levels
from accountant.auditor.changes import ChangedLevels
from accountant.auditor.columns import ColumnCost, column_costs
from accountant.auditor.cost import Finding, Paid, follow
from accountant.auditor.gaussian import GaussianAccount
from accountant.auditor.generations import Begun, Generations, all_columns
from accountant.auditor.growth import Readable
from accountant.auditor.prices import Price
from accountant.auditor.purchases import Purchases
from accountant.auditor.unit_rows import UnitRows
from accountant.auditor.verdict import Renewal, TableVerdict
from accountant.auditor.windows import window_start
from accountant.auditor.wrong import Wrong
from accountant.ledger.entries import Entry
from cube.measurement import UNITS_PER_EPSILON


class Book:
    """The state of one table after the entries read so far.

    Parameters
    ----------
    opened_by : int
        The number of the entry that opened it.
    opened : Opened
    """

    def __init__(self, opened_by: int, opened: Opened) -> None:
        self.opened_by = opened_by
        self._accounts = Accounts(opened_by, opened.budget, opened.renews)
        self._unit = UnitRows(opened.rows_per_unit, opened.rows_at_level)
        self._purchases = Purchases(self._unit)
        self._gaussian = GaussianAccount(opened.rows_per_unit)
        self._paid: list[Paid] = []  # since rows changed last
        self._paid_before: list[_Stretch] = []  # until then, and what was lost
        self._n_given_up: list[int] = []  # the numbers of entries that gave up a pending charge
        self._charged: list[int] = []  # the numbers of the charges
        self._findings: dict[int, Finding] = {}  # of each generation with purchases
        self._generations = Generations(opened_by, opened.data_fingerprint, opened.rows_fingerprint)
        self._is_pinned = opened.is_pinned
        self.shared_budget = opened.shared_budget
        self._readable = Readable(opened.grows, opened.grows_levels) if opened.grows else None

    def take(self, entry: Entry, body: Body, sharing: "Sequence[Book]" = ()) -> None:
        """Apply an entry about the table; Wrong if it cannot follow those before it.

        `sharing` are the books of the other tables that spend from its budget.
        """
        match body:
            case Opened():
                raise Wrong("a table opened twice")
            case Pinned():
                self._pin(body)
            case Budget():
                self._accounts.set_budget(entry.seq, body.budget, body.renews)
            case Joined():
                self._join(body)
            case Advanced() | Accepted() | Begun():
                self._grow(entry, body)
            case Limit():
                self._accounts.set_limit(body)
            case Charge():
                accounts = [one._accounts for one in sharing]  # noqa: SLF001 - of this class
                self._accounts.charge(entry.seq, entry.at, body, accounts)
                self._charge(entry.seq, body)
            case TakenOver():
                self._purchases.take_over(entry.seq, body)
            case Measured():
                self._purchases.measure(entry.seq, body)

    @property
    def data_fingerprints(self) -> Sequence[str]:
        """The data of each generation."""
        return self._generations.data

    def _pin(self, body: Pinned) -> None:
        """Note that the rows read from the data are recorded, which happens once only."""
        if self._is_pinned:
            raise Wrong("what is read from a table's data is recorded twice")
        self._is_pinned = True
        self._generations.pin(body.rows_fingerprint)

    def _join(self, body: Joined) -> None:
        """Spend from a shared budget from now on."""
        if self.shared_budget:
            raise Wrong("a table that leaves a shared budget, where its spending counts")
        self.shared_budget = body.shared_budget

    def _grow(self, entry: Entry, body: Advanced | Accepted | Begun) -> None:
        """Make more of the table readable, or go on with other rows."""
        if isinstance(body, Begun):
            self._begin(entry, body)
        elif self._readable is None:
            raise Wrong("periods of a table that does not grow")
        elif isinstance(body, Advanced):
            self._readable.advance(body)
        else:
            self._accept(entry, body, self._readable)

    def _accept(self, entry: Entry, body: Accepted, readable: Readable) -> None:
        """Go on with other rows at some levels, which keep what their dearest cell has cost."""
        readable.check_closed(body.periods)
        seq = entry.seq
        self._accounts.accept(seq, entry.at, body.units_before, body.units_after)
        self._purchases.unit_counts.forget()
        changed = ChangedLevels.of(readable.axis, readable.n_all, body.periods)
        rows = [row for one in self._paid for row in one.rows]
        inside = changed.inside(rows)
        if self._unit.at_level is not None and any(row.price.power > 1 for row in inside):
            raise Wrong("changes under Gaussian noise, of units bounded by level")
        lost = Paid(seq, inside, self._unit.times * body.weight_units)
        of_cells = replace(self._unit, at_level=None)
        before = [(self._unit, self._paid), (of_cells, [lost])]
        self._paid_before += [_Stretch(0, *one) for one in before]
        flat = Price(self._unit.times * body.weight_units)
        units = body.units_after - self._gaussian.units - self._purchases.unit_counts.units
        self._paid = [Paid(seq, changed.outside(rows, flat), units)]
        n_before = len(self._purchases.pending)
        self._purchases.drop(changed.are_of)
        self._n_given_up += [seq] * (n_before - len(self._purchases.pending))

    def _begin(self, entry: Entry, body: Begun) -> None:
        """Go on with other data, and with all that is spent."""
        if self._readable is not None:
            raise Wrong("a generation of a table that grows")
        seq = entry.seq
        self._accounts.accept(seq, entry.at, body.units_before, body.units_before)
        self._paid_before.append(_Stretch(self._generations.present, self._unit, self._paid))
        self._generations.begin(seq, body, self._paid[-1].units if self._paid else 0)
        self._paid = []
        self._n_given_up += [seq] * len(self._purchases.pending)
        self._purchases.begin_anew()

    def correct_clock(self, entry: Entry) -> None:
        """Count all charges so far at the entry's time or earlier, as the clock was corrected."""
        self._accounts.correct_clock(entry.seq, entry.at)

    def _charge(self, seq: int, body: Charge) -> None:
        """Apply a charge; for rows is what was paid, without Gaussian noise and counts of units."""
        if self._readable is not None:
            self._readable.check(body)
        rows = self._purchases.charge(seq, body)
        self._charged.append(seq)
        if body.terms is not None:
            self._gaussian.charge(seq, body.terms, body.rho_units)
        units = body.units_after - self._gaussian.units - self._purchases.unit_counts.units
        units -= self._generations.units
        if units < (self._paid[-1].units if self._paid else 0):
            raise Wrong("a charge that does not pay for its Gaussian noise or counts of units")
        self._paid.append(Paid(seq, rows, units))

    def add_up(self, n_entries: int, watch: Callable[[int], None]) -> tuple[int, str] | None:
        """Add up the cost of the rows of the first entries.

        Returns
        -------
        (int, str) or None
            The first entry that charges too little, and by how much.
        """
        self._findings = {}
        present = _Stretch(self._generations.present, self._unit, self._paid)
        for stretch in (*self._paid_before, present):
            paid = [one for one in stretch.paid if one.seq <= n_entries]
            if not paid:
                continue
            found = self._findings[stretch.generation] = _followed(paid, stretch.unit, watch)
            if found.unpaid is not None:
                charged = next(one.units for one in paid if one.seq == found.unpaid)
                return found.unpaid, (
                    f"the rows cost {found.cost} units of 2**-40 epsilon until here, and {charged} "
                    "were charged for them"
                )
        return None

    def verdict(self, table: str, n_entries: int, at: str, *, has_columns: bool) -> TableVerdict:
        """The verdict on the table, after the first entries, of which the last has time `at`."""
        every = (*self._purchases.earlier, *self._purchases.measurements)
        measured = [one for one in every if one.seq <= n_entries]
        n_given_up = sum(seq <= n_entries for seq in self._n_given_up)
        n_charges = sum(seq <= n_entries for seq in self._charged) - n_given_up
        delta, gaussian_units = self._gaussian.after(n_entries)
        of_counts = self._purchases.unit_counts.units_after(n_entries)
        findings = self._findings.values()
        recomputed = sum(one.units for one in findings) + gaussian_units + of_counts
        budget, renews = self._accounts.budget_after(n_entries)
        return TableVerdict(
            table=table,
            budget=budget,
            renewal=None if renews == "never" else self._renewal(renews, n_entries, at),
            spent=Fraction(self._accounts.spent_after(n_entries), UNITS_PER_EPSILON),
            recomputed=Fraction(recomputed, UNITS_PER_EPSILON),
            gaussian=Fraction(gaussian_units, UNITS_PER_EPSILON),
            unit_counts=Fraction(of_counts, UNITS_PER_EPSILON),
            delta=delta,
            exact=all(one.exact for one in findings),
            n_measurements=len(measured),
            n_pending=n_charges - sum(seq <= n_entries for seq in self._purchases.completed),
            n_raised=sum(one.bought.raised_from is not None for one in measured),
            columns=self._columns(n_entries) if has_columns else None,
            shared_budget=self.shared_budget,
            n_generations=self._generations.after(n_entries),
        )

    def _renewal(self, renews: str, n_entries: int, at: str) -> Renewal:
        """What counts towards a budget that renews, and what was spent in a year."""
        starts = window_start(renews, at), f"{int(at[:4]) - 1:04}{at[4:]}"
        units = (self._accounts.spent_since(one, n_entries) for one in starts)
        return Renewal(renews, *(Fraction(one, UNITS_PER_EPSILON) for one in units))

    def _columns(self, n_entries: int) -> tuple[ColumnCost, ...]:
        """What each column has cost after the first entries, once they were added up."""
        spent = self._accounts.spent_after(n_entries)
        each = []
        for found in self._findings.values():
            costs = () if found.bound is None else column_costs(found.bound, spent)
            each.append((found, [self._unit.along(cost, spent) for cost in costs]))
        return all_columns(each)

    def notes(self, table: str) -> list[str]:
        """What could be shown neither right nor wrong."""
        found, notes = self._findings.values(), []
        if is_open := sorted(seq for one in found for seq in one.open):
            notes.append(
                f"{table}: {len(is_open)} charges, the first in entry {is_open[0]}, were "
                "neither shown to cover their rows nor shown not to"
            )
        if not all(one.exact for one in found):
            notes.append(
                f"{table}: the cost of its rows is a proved bound; no cell is known to cost as much"
            )
        return notes


@dataclass(frozen=True, slots=True)
class _Stretch:
    """What was paid for in a stretch of one generation that is added up by itself."""

    generation: int
    unit: UnitRows
    paid: list[Paid]


def _followed(paid: Sequence[Paid], unit: UnitRows, watch: Callable[[int], None]) -> Finding:
    """The cost of rows for a unit."""
    if unit.at_level is None:
        return follow(paid, watch)
    return follow_levels(paid, unit, watch)
