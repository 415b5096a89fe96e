"""A table's budget and limits: which were in force when a charge was made, and what was left.

    charge = spent before and after: continues the charge before, within the table's budget, or
             within its allowance of that window if the budget renews
    limit  = in its window, and for one charge, of the analyst and of each of their groups

A limit for each analyst applies to those without a limit of their own. What an account spent is the
sum of what its charges added to the table's cost. Whether a charge covers its rows is in cost.py.
Proof: proofs/ledger.md, "Budgets, limits, noise"; proofs/gate.md, "Budgets that renew".
"""

from bisect import bisect_left
from collections.abc import Sequence
from fractions import Fraction
from typing import Final

from accountant.auditor.bodies import Charge, Limit, units_of
from accountant.auditor.windows import window_start
from accountant.auditor.wrong import Wrong

EVERYBODY: Final = ""  # the account on which all counts that a table spends


class Accounts:
    """The budget, limits and charges of one table.

    Parameters
    ----------
    seq : int
        The number of the entry that opened it.
    budget : Fraction
        In epsilon.
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
                f"charged on top of {charge.units_before} units, but {self.units_spent} were spent"
            )
        units = charge.units_after - charge.units_before
        if units < 0:
            raise Wrong("a charge that lowers what is spent")
        tables = (self, *sharing)
        self._check_budget(units, at, tables)
        for account in charge.accounts:
            for one in tables:
                one._check_limit(account, units, at, tables)  # noqa: SLF001 - of this class
        for account in (EVERYBODY, *charge.accounts):
            self._count(account, at, units)
        self._spent.append((seq, charge.units_after, at))

    def accept(self, seq: int, at: str, before: int, after: int) -> None:
        """Spend more, on nobody's account and beyond any budget, as closed rows have changed."""
        if before != self.units_spent:
            raise Wrong(f"accepted on top of {before} units, but {self.units_spent} were spent")
        if after < before:
            raise Wrong("accepted changes that lower what is spent")
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
                f"{spent} units are spent, and the table's budget{window} is {units_of(epsilon)}"
            )

    def _check_limit(self, account: str, units: int, at: str, tables: "Sequence[Accounts]") -> None:
        """Wrong if a charge to one of some tables is beyond this table's limit for all of them."""
        limit = self._limits.get(account)
        if limit is None and account.startswith("analyst:"):
            limit = self._limits.get("each_analyst")
        if limit is None or not units:
            return
        if limit.per_query is not None and units > units_of(limit.per_query):
            raise Wrong(f"a charge of {units} units, beyond the limit of {account} for one query")
        if limit.epsilon is not None:
            allowed = units_of(limit.epsilon)
            start = window_start(limit.window, at)
            spent = sum(one._spent_since(account, start) for one in tables)  # noqa: SLF001 - the same
            if spent + units > allowed:
                raise Wrong(
                    f"{account} spends {spent + units} units, and {allowed} is the limit "
                    f"(window: {limit.window})"
                )

    def _spent_since(self, account: str, start: str) -> int:
        times, sums = self._spent_by.get(account, ([], [0]))
        return sums[-1] - sums[bisect_left(times, start)]
