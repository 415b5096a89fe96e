"""What one table has spent and when: in all, and on the account of each analyst and group.

What is spent stays spent; here it can be asked what of it was spent since a moment, because limits
(limits.py) and budgets that renew count what was spent in a window of time. Values only. Proof:
proofs/gate.md, "Limits" and "Budgets that renew".
"""

from bisect import bisect_left, bisect_right
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from accountant.ledger.append_only import AppendOnly
from accountant.ledger.limits import Subject
from accountant.ledger.payments import Payment

Sums = AppendOnly[tuple[str, int]]
"""Times, in order, at which something was spent, and what had been spent after each."""


@dataclass(frozen=True, eq=False)
class Spending:
    """What was spent, in units of 2**-40 epsilon.

    Parameters
    ----------
    in_all : sequence of (str, int)
        Of the table, by whomever.
    by_account : mapping of Subject to sequence of (str, int)
    """

    in_all: Sums = field(default_factory=AppendOnly)
    by_account: Mapping[Subject, Sums] = field(default_factory=lambda: MappingProxyType({}))

    @property
    def units(self) -> int:
        """What was spent in all."""
        return self.in_all[-1][1] if self.in_all else 0

    def since(self, moment: str) -> int:
        """What was spent since a moment."""
        return _since(self.in_all, moment)

    def by(self, account: Subject, since: str) -> int:
        """The same on one account."""
        return _since(self.by_account.get(account, AppendOnly()), since)

    def after(self, payment: Payment) -> "Spending":
        """What was spent once a payment is made."""
        accounts = dict(self.by_account)
        for account in payment.charge.payer.subjects:
            before = accounts.get(account, AppendOnly())
            accounts[account] = _more(before, payment.at, payment.units)
        raised = self.raised(payment.at, payment.units)
        return replace(raised, by_account=MappingProxyType(accounts))

    def raised(self, at: str, units: int) -> "Spending":
        """What was spent once some more is, on nobody's account."""
        return replace(self, in_all=_more(self.in_all, at, units))

    def corrected(self, at: str) -> "Spending":
        """The same once the clock was corrected to `at`: nothing counts at a later time."""
        accounts = {who: none_later(sums, at) for who, sums in self.by_account.items()}
        return Spending(none_later(self.in_all, at), MappingProxyType(accounts))


def none_later(sums: Sums, at: str) -> Sums:
    """The same, with all that was spent at a later time counted at time `at`."""
    n_earlier = bisect_right(sums, at, key=lambda one: one[0])
    if n_earlier == len(sums):
        return sums
    later = ((at, units) for _, units in sums[n_earlier:])
    return AppendOnly([*sums[:n_earlier], *later])


def _since(sums: Sums, moment: str) -> int:
    if not sums or not moment:  # every charge is since the empty time
        return sums[-1][1] if sums else 0
    first = bisect_left(sums, moment, key=lambda one: one[0])
    return sums[-1][1] - (sums[first - 1][1] if first else 0)


def _more(sums: Sums, at: str, units: int) -> Sums:
    before = sums[-1][1] if sums else 0
    return sums.followed_by([(at, before + units)])
