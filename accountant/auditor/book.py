"""The book of one table: its budget and limits, its purchases, and all that its entries record.

Which budget and limits were in force when a charge was made, and what was left:

    charge = spent before and after: continues the charge before, within the table's budget, or
             within its allowance of that window if the budget renews
    limit  = in its window, and for one charge, of the analyst and of each of their groups

A limit for each analyst applies to those without a limit of their own. The spending of an account
is the sum of the increases of the table's cost by its charges. Proof: proofs/ledger.md, "Budgets,
limits, noise"; proofs/gate.md, "Budgets that renew".

Of the rows of each charge there is one measurement. A charge that was taken over is measured in its
latest turn, so no server can choose between draws. Finer noise for a row that was measured before
(a raise) is on the same lattice, smaller, and made once: see proofs/refinement.md. A raise with
Gaussian noise is another value of the row, with noise of its own: only what the two cost together
is limited.

Gaussian noise is in noise.py, counts of units in statistics.py, and whether charges cover their
rows in costs/history.py; here they are combined, up to any entry.
"""

from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Final

from accountant.auditor.bodies import (
    Accepted,
    Advanced,
    Body,
    Bought,
    Budget,
    Charge,
    GivenUp,
    Joined,
    Limit,
    Measured,
    Opened,
    Pinned,
    TakenOver,
    units_of,
)
from accountant.auditor.costs import (
    ONE_ROW,
    ColumnCost,
    Finding,
    Paid,
    Row,
    UnitRows,
    column_costs,
    follow,
    follow_levels,
)
from accountant.auditor.fields import Wrong, window_start
from accountant.auditor.generations import Begun, Generations, all_columns
from accountant.auditor.growth import ChangedLevels, Readable
from accountant.auditor.noise import (
    UNCLAMPED_MAX,
    GaussianAccount,
    Noise,
    Price,
    RowNoise,
    Terms,
    check_gaussian,
    check_noise,
    check_row_noise,
    price_per_square,
    refined_by,
)
from accountant.auditor.rows import LevelArray, Share
from accountant.auditor.statistics import Choice, Distance, Gaussian, OfUnits, UnitCounts
from accountant.auditor.verdict import Renewal, TableVerdict
from accountant.ledger.entries import Entry
from cube.measurement import (
    PRECISION_UNIT_BITS,
    PRECISION_UNITS_MAX,
    RHO_UNIT_BITS,
    UNITS_PER_EPSILON,
)


@dataclass(frozen=True, slots=True)
class Measurement:
    """A block that was measured; with Gaussian noise, at a precision in all of its values."""

    seq: int
    bought: Bought
    may_be_clamped: bool
    precision_units: int = 0


class Purchases:
    """The charges and measurements of one table.

    Parameters
    ----------
    unit : UnitRows
        The most rows of one unit: what a row costs counts this many times.
    holders : str
        The axis of the holders of a federated table.

    Attributes
    ----------
    pending : dict of int to Charge
        Charges without a measurement, by their numbers.
    measurements : list of Measurement
        Measurements of the present generation, in the order of purchase; raises name their places.
    earlier : list of Measurement
        Measurements of all earlier generations.
    completed : list of int
        The numbers of the measurement entries, ascending.
    unit_counts : UnitCounts
        The counts of units, which are no rows.
    """

    def __init__(self, unit: UnitRows = ONE_ROW, holders: str = "") -> None:
        self._unit = unit
        self.pending: dict[int, Charge] = {}
        self.measurements: list[Measurement] = []
        self.earlier: list[Measurement] = []
        self.completed: list[int] = []
        at = unit.at_level
        at_holder = unit.n_rows if at is None or at.column != holders else at.n_rows
        self.unit_counts = UnitCounts(unit.n_rows, holders, at_holder)
        self._raised: set[int] = set()
        self._asked: set[tuple[str, str]] = set()  # by other ledgers
        self._turns: dict[int, int] = {}
        self._n_levels: dict[str, int] = {}

    def charge(self, seq: int, charge: Charge) -> tuple[Row, ...]:
        """The rows paid for, with the weights that were added; Wrong if they are not valid."""
        if not (charge.bought or charge.statistics):
            raise Wrong("the charge pays for nothing")
        if charge.reference:
            request = (charge.analyst, charge.reference)
            if request in self._asked:
                raise Wrong("the request of another ledger was charged twice")
            self._asked.add(request)
        rows = [self._row(bought, charge.terms) for bought in charge.bought]
        for statistic in charge.statistics:
            for array in statistic.arrays:
                self._check_levels(array)
            if isinstance(statistic, Gaussian):
                rows += self._of_holder(statistic, charge.terms)
            elif not isinstance(statistic, OfUnits):
                rows.append(self._cost_of(statistic))
        counts = [one for one in charge.statistics if isinstance(one, OfUnits)]
        if counts:
            at_holders = self.unit_counts.charge(seq, counts)
            rows += [Row(share, self._price(units)) for share, units in at_holders]
        self.pending[seq] = charge
        return tuple(rows)

    def drop(self, is_of: Callable[[Share], bool]) -> None:
        """Forget measurements of rows that have changed, and give up charges that wait for them."""
        for place, one in enumerate(self.measurements):
            if is_of(one.bought.block.share):
                self._raised.add(place)  # nothing is raised from it any more
        self.pending = {
            seq: charge
            for seq, charge in self.pending.items()
            if not charge.statistics and not any(is_of(one.block.share) for one in charge.bought)
        }

    def begin_anew(self) -> None:
        """Go on with other data: nothing is raised from before, and what waits is given up."""
        self.earlier += self.measurements
        self.measurements, self._raised, self.pending, self._turns = [], set(), {}, {}
        self.unit_counts.begin_anew()

    def take_over(self, seq: int, body: TakenOver) -> None:
        """Begin a new turn to measure a charge; Wrong if the charge is not pending."""
        if body.charge not in self.pending:
            raise Wrong(f"{body.charge} was taken over, but it is not a pending charge")
        self._turns[body.charge] = seq

    def give_up(self, body: GivenUp) -> None:
        """Forget a charge that waits; Wrong if it does not."""
        if self.pending.pop(body.charge, None) is None:
            raise Wrong(f"{body.charge} was given up, but it is not a pending charge")
        self._turns.pop(body.charge, None)

    def measure(self, seq: int, body: Measured) -> None:
        """Apply the measurement of one charge; Wrong if it does not fit the charge."""
        charge = self.pending.get(body.charge)
        if charge is None:
            raise Wrong(f"the measurement belongs to {body.charge}, which is not a pending charge")
        if body.turn != self._turns.pop(body.charge, 0):
            raise Wrong("the measurement was made in a turn that was taken over")
        if [len(values) for values in body.values] != [one.block.n_rows for one in charge.bought]:
            raise Wrong("the measurement must have exactly one value for each charged row")
        self._measure_statistics(charge, body)
        del self.pending[body.charge]
        self.completed.append(seq)
        for bought, values in zip(charge.bought, body.values, strict=True):
            may_be_clamped = any(abs(value) > UNCLAMPED_MAX for value in values)
            precision = self._precision(bought)
            self.measurements.append(Measurement(seq, bought, may_be_clamped, precision))

    def _measure_statistics(self, charge: Charge, body: Measured) -> None:
        """Apply the released numbers of a charge's statistics."""
        if len(body.released) != sum(one.n_released for one in charge.statistics):
            raise Wrong(
                "the measurement must have exactly one number for each statistic, or for "
                "each row of it"
            )
        place = 0
        for statistic in charge.statistics:
            numbers = body.released[place : place + statistic.n_released]
            place += statistic.n_released
            if isinstance(statistic, OfUnits):
                self.unit_counts.measure(statistic, numbers)
            else:
                for number in numbers:
                    statistic.check(number)

    def _row(self, bought: Bought, terms: Terms | None) -> Row:
        for array in bought.block.share.arrays:
            self._check_levels(array)
        earlier = self._raised_measurement(bought)
        noise = bought.noise
        if isinstance(noise, RowNoise):
            return Row(bought.block.share, self._price_of_another(bought, noise, terms))
        check_noise(noise)
        if earlier is None:
            return Row(bought.block.share, self._price(noise.weight_units))
        before = earlier.bought.noise
        if not isinstance(before, Noise):
            raise Wrong("a measurement was raised with noise of another kind")
        added = refined_by(noise, before, may_be_clamped=earlier.may_be_clamped)
        return Row(bought.block.share, self._price(added))

    def rho_units(self, charge: Charge) -> int:
        """The rho of a charge's statistics that is not paid for cell by cell."""
        gaussian = (one for one in charge.statistics if isinstance(one, Gaussian))
        shared = self.unit_counts.share_of_holder
        return sum(one.noise.rho_units for one in gaussian if shared(one.block) is None)

    def _of_holder(self, statistic: Gaussian, terms: Terms | None) -> list[Row]:
        """What a statistic with Gaussian noise costs each row of the one holder it is about."""
        check_gaussian(statistic.noise, statistic.sensitivity)
        share = self.unit_counts.share_of_holder(statistic.block)
        if share is None or terms is None:
            return []
        units = statistic.noise.rho_units << (PRECISION_UNIT_BITS - RHO_UNIT_BITS)
        is_all = self._unit.at_level is None
        times = self._unit.n_rows**2 if is_all else self.unit_counts.rows_at_holder
        return [Row(share, price_per_square(RowNoise(units, statistic.noise.scale), terms, times))]

    def _cost_of(self, statistic: Distance | Choice) -> Row:
        """The cost of a statistic for each cell, as a row."""
        if isinstance(statistic, Distance):
            check_noise(statistic.noise)
        return Row(statistic.share, self._price(statistic.weight_units))

    def _price(self, weight_units: int) -> Price:
        """The cost of a weight at a cell."""
        return Price(self._unit.times * weight_units)

    def _price_of_another(self, bought: Bought, noise: RowNoise, terms: Terms | None) -> Price:
        """The price of a value with Gaussian noise, the first of its row or a further one."""
        check_row_noise(noise)
        if self._precision(bought) > PRECISION_UNITS_MAX:
            raise Wrong(
                f"a measurement was raised to a precision of {self._precision(bought)} "
                f"units, more than {PRECISION_UNITS_MAX}"
            )
        if terms is None:
            raise Wrong("the charge for Gaussian noise has no terms")
        return price_per_square(noise, terms, self._unit.times_squared(bought.block))

    def _precision(self, bought: Bought) -> int:
        """The precision of the row so far, with this value of it; 0 for Laplace noise."""
        if not isinstance(bought.noise, RowNoise):
            return 0
        place = bought.raised_from
        before = 0 if place is None else self.measurements[place].precision_units
        return before + bought.noise.precision_units

    def _raised_measurement(self, bought: Bought) -> Measurement | None:
        place = bought.raised_from
        if place is None:
            return None
        if place >= len(self.measurements):
            raise Wrong("a measurement that does not exist was raised")
        if place in self._raised:
            raise Wrong("a measurement was raised twice")
        earlier = self.measurements[place]
        if earlier.bought.block is not bought.block:
            raise Wrong("a measurement was raised as if it had other rows")
        if type(earlier.bought.noise) is not type(bought.noise):
            raise Wrong("a measurement was raised with noise of another kind")
        self._raised.add(place)
        return earlier

    def _check_levels(self, array: LevelArray) -> None:
        for axis, n_levels in zip(array.axes, array.shape, strict=True):
            if self._n_levels.setdefault(axis, n_levels) != n_levels:
                raise Wrong(
                    f"{axis} has {n_levels} levels here, but had {self._n_levels[axis]} in "
                    "an earlier entry"
                )


EVERYBODY: Final = ""  # the account on which all counts that a table spends


class Accounts:
    """The budget, limits and charges of one table.

    Parameters
    ----------
    seq : int
        The number of the entry that opened it.
    budget : Fraction
        The total epsilon that may be spent.
    renews : str
        The window in which it may be spent.
    """

    def __init__(self, seq: int, budget: Fraction, renews: str = "never") -> None:
        self._budgets = [(seq, budget, renews)]  # each with the entry from which it applies
        self._spent = [(seq, 0, "")]  # the sum after an entry, and the entry's time
        self._corrected: list[tuple[int, str]] = []  # clocks: by which entry, to which time
        self._limits: dict[str, Limit] = {}
        self._spent_by: dict[str, tuple[list[str], list[int]]] = {}

    @property
    def units_spent(self) -> int:
        """The units spent so far."""
        return self._spent[-1][1]

    def budget_after(self, seq: int) -> tuple[Fraction, str]:
        """The budget in force after an entry, and its window."""
        _, budget, renews = self._budgets[bisect_left(self._budgets, (seq + 1,)) - 1]
        return budget, renews

    def spent_after(self, seq: int) -> int:
        """The units that were spent after an entry."""
        return self._spent[bisect_left(self._spent, (seq + 1,)) - 1][1]

    def spent_since(self, moment: str, seq: int) -> int:
        """The part of them that counts as spent since a moment."""
        part, before = 0, 0
        for entry, spent, at in self._spent[: bisect_left(self._spent, (seq + 1,))]:
            corrected = [to for place, to in self._corrected if entry < place <= seq]
            part += spent - before if min([at, *corrected]) >= moment else 0
            before = spent
        return part

    def set_budget(self, seq: int, budget: Fraction, renews: str) -> None:
        """Set the owner's new budget; what is spent stays spent, whatever the budget is."""
        self._budgets.append((seq, budget, renews))

    def set_limit(self, limit: Limit) -> None:
        """Set the owner's new limit for a subject, in place of the old one."""
        self._limits.pop(limit.subject, None)
        if limit.epsilon is not None or limit.per_query is not None:
            self._limits[limit.subject] = limit

    def charge(self, seq: int, at: str, charge: Charge, sharing: "Sequence[Accounts]" = ()) -> None:
        """Apply a charge; Wrong if it starts from another sum, or exceeds a budget or a limit.

        `sharing` are the other tables that spend from the same budget: what they have spent counts
        towards it and towards limits, and their limits apply, too.
        """
        if charge.units_before != self.units_spent:
            raise Wrong(
                f"the charge starts from {charge.units_before} spent units, but "
                f"{self.units_spent} were spent"
            )
        units = charge.units_after - charge.units_before
        if units < 0:
            raise Wrong("the charge lowers the spent total")
        tables = (self, *sharing)
        self._check_budget(units, at, tables)
        for account in charge.accounts:
            for one in tables:
                one._check_limit(account, units, at, tables)  # noqa: SLF001 - of this class
        for account in (EVERYBODY, *charge.accounts):
            self._count(account, at, units)
        self._spent.append((seq, charge.units_after, at))

    def accept(self, seq: int, at: str, before: int, after: int) -> None:
        """Add to the spending because closed rows changed: for no account, even beyond a budget."""
        if before != self.units_spent:
            raise Wrong(
                f"the accepted changes start from {before} spent units, but "
                f"{self.units_spent} were spent"
            )
        if after < before:
            raise Wrong("the accepted changes lower the spent total")
        self._count(EVERYBODY, at, after - before)
        self._spent.append((seq, after, at))

    def correct_clock(self, seq: int, at: str) -> None:
        """Count charges with a later time at time `at`, as the clock was corrected."""
        self._corrected.append((seq, at))
        for times, _ in self._spent_by.values():
            times[:] = [min(one, at) for one in times]

    def _count(self, account: str, at: str, units: int) -> None:
        """Count what an account spends at a moment."""
        times, sums = self._spent_by.setdefault(account, ([], [0]))
        times.append(at)
        sums.append(sums[-1] + units)

    def _check_budget(self, units: int, at: str, tables: "Sequence[Accounts]") -> None:
        """Wrong if a charge is beyond the budget, or beyond what it allows in its window."""
        _, epsilon, renews = self._budgets[-1]
        start = window_start(renews, at)
        spent = units + sum(one._spent_since(EVERYBODY, start) for one in tables)  # noqa: SLF001 - of this class
        if units and spent > units_of(epsilon):
            window = "" if renews == "never" else f" of one {renews}"
            raise Wrong(
                f"{spent} units are spent, more than the table's budget{window} of "
                f"{units_of(epsilon)}"
            )

    def _check_limit(self, account: str, units: int, at: str, tables: "Sequence[Accounts]") -> None:
        """Wrong if a charge to one of some tables is beyond this table's limit for all of them."""
        limit = self._limits.get(account)
        if limit is None and account.startswith("analyst:"):
            limit = self._limits.get("each_analyst")
        if limit is None or not units:
            return
        if limit.per_query is not None and units > units_of(limit.per_query):
            raise Wrong(f"the charge of {units} units exceeds the limit of {account} for one query")
        if limit.epsilon is not None:
            allowed = units_of(limit.epsilon)
            start = window_start(limit.window, at)
            spent = sum(one._spent_since(account, start) for one in tables)  # noqa: SLF001 - the same
            if spent + units > allowed:
                raise Wrong(
                    f"{account} spends {spent + units} units, more than the limit of "
                    f"{allowed} (window: {limit.window})"
                )

    def _spent_since(self, account: str, start: str) -> int:
        times, sums = self._spent_by.get(account, ([], [0]))
        return sums[-1] - sums[bisect_left(times, start)]


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
        self._purchases = Purchases(self._unit, opened.holders)
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
                raise Wrong("the table was opened twice")
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
            case TakenOver() | Measured() | GivenUp():
                self._complete(entry.seq, body)

    @property
    def data_fingerprints(self) -> Sequence[str]:
        """The data of each generation."""
        return self._generations.data

    def _pin(self, body: Pinned) -> None:
        """Note that the rows read from the data are recorded, which happens once only."""
        if self._is_pinned:
            raise Wrong("the fingerprint of the table's rows was recorded twice")
        self._is_pinned = True
        self._generations.pin(body.rows_fingerprint)

    def _join(self, body: Joined) -> None:
        """Spend from a shared budget from now on."""
        if self.shared_budget:
            raise Wrong("the table leaves the shared budget in which its spending counts")
        self.shared_budget = body.shared_budget

    def _complete(self, seq: int, body: TakenOver | Measured | GivenUp) -> None:
        """Go on with a charge that waits."""
        match body:
            case TakenOver():
                self._purchases.take_over(seq, body)
            case Measured():
                self._purchases.measure(seq, body)
            case GivenUp():
                self._purchases.give_up(body)
                self._n_given_up.append(seq)

    def _grow(self, entry: Entry, body: Advanced | Accepted | Begun) -> None:
        """Make more of the table readable, or go on with other rows."""
        if isinstance(body, Begun):
            self._begin(entry, body)
        elif self._readable is None:
            raise Wrong("the entry names periods, but the table does not grow")
        elif isinstance(body, Advanced):
            self._readable.advance(body)
        else:
            self._accept(entry, body, self._readable)

    def _accept(self, entry: Entry, body: Accepted, readable: Readable) -> None:
        """Go on with other rows at some levels; unsettled ones keep what their dearest has cost."""
        readable.unsettle(body.periods)
        seq = entry.seq
        self._accounts.accept(seq, entry.at, body.units_before, body.units_after)
        self._purchases.unit_counts.forget()
        changed = ChangedLevels.of(readable.axis, readable.n_all, body.periods)
        unsettled = ChangedLevels.of(readable.axis, readable.n_all, readable.unsettled)
        rows = [row for one in self._paid for row in one.rows]
        inside = unsettled.inside(rows)
        if self._unit.at_level is not None and any(row.price.power > 1 for row in inside):
            raise Wrong(
                "rows measured with Gaussian noise changed, and the bounds on a unit's "
                "rows are by level: their cost is not defined"
            )
        lost = Paid(seq, inside, self._unit.times * body.weight_units)
        of_cells = replace(self._unit, at_level=None)
        before = [(self._unit, self._paid), (of_cells, [lost])]
        self._paid_before += [_Stretch(0, *one) for one in before]
        flat = Price(self._unit.times * body.weight_units)
        units = body.units_after - self._gaussian.units - self._purchases.unit_counts.units
        self._paid = [Paid(seq, unsettled.outside(rows, flat), units)]
        n_before = len(self._purchases.pending)
        self._purchases.drop(changed.are_of)
        self._n_given_up += [seq] * (n_before - len(self._purchases.pending))

    def _begin(self, entry: Entry, body: Begun) -> None:
        """Go on with other data, and with all that is spent."""
        if self._readable is not None:
            raise Wrong("a table that grows cannot begin a generation")
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
            self._gaussian.charge(seq, body.terms, self._purchases.rho_units(body))
        units = body.units_after - self._gaussian.units - self._purchases.unit_counts.units
        units -= self._generations.units
        if units < (self._paid[-1].units if self._paid else 0):
            raise Wrong("the charge does not cover its Gaussian noise or its counts of units")
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
                    f"the rows cost {found.cost} units of 2**-40 epsilon up to this entry, "
                    f"but only {charged} were charged"
                )
        return None

    def verdict(self, table: str, n_entries: int, at: str, *, has_columns: bool) -> TableVerdict:
        """The verdict on the table after its first entries; `at` is the time of the last one."""
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
        """The spending that counts towards a budget that renews, and the spending in a year."""
        starts = window_start(renews, at), f"{int(at[:4]) - 1:04}{at[4:]}"
        units = (self._accounts.spent_since(one, n_entries) for one in starts)
        return Renewal(renews, *(Fraction(one, UNITS_PER_EPSILON) for one in units))

    def _columns(self, n_entries: int) -> tuple[ColumnCost, ...]:
        """The cost along each column after the first entries, once they were added up."""
        spent = self._accounts.spent_after(n_entries)
        each = []
        for found in self._findings.values():
            costs = () if found.bound is None else column_costs(found.bound, spent)
            each.append((found, [self._unit.along(cost, spent) for cost in costs]))
        return all_columns(each)

    def notes(self, table: str) -> list[str]:
        """Points on which the audit could not decide."""
        found, notes = self._findings.values(), []
        if is_open := sorted(seq for one in found for seq in one.open):
            notes.append(
                f"{table}: it is undecided whether {len(is_open)} charges (the first "
                f"in entry {is_open[0]}) cover their rows"
            )
        if not all(one.exact for one in found):
            notes.append(
                f"{table}: the cost of its rows is a proved upper bound; the true cost may be lower"
            )
        return notes


@dataclass(frozen=True, slots=True)
class _Stretch:
    """The rows paid for in a stretch of one generation that is added up by itself."""

    generation: int
    unit: UnitRows
    paid: list[Paid]


def _followed(paid: Sequence[Paid], unit: UnitRows, watch: Callable[[int], None]) -> Finding:
    """The cost of rows for a unit."""
    if unit.at_level is None:
        return follow(paid, watch)
    return follow_levels(paid, unit, watch)
