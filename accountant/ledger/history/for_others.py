"""The charges of one table for which other ledgers asked, and what these were told.

A holder of a federated table measures for the ledger of a coordinator. Each request has a name, the
`reference`, under the name of whoever pays. Asked again, it is not charged again: it is told what
it was told. Proof: proofs/federation.md.

Values only; the history (table_history.py) keeps them.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TypeAlias

from accountant.ledger.entries import Charge, Measured

Request: TypeAlias = tuple[str, str]  # the analyst who pays, and the reference


@dataclass(frozen=True, slots=True, eq=False)
class ForOthers:
    """Requests of other ledgers.

    Parameters
    ----------
    charges : mapping of (str, str) to int
        The number of the charge for each request.
    answers : mapping of int to Measured
        What was told, by the number of the charge.
    """

    charges: Mapping[Request, int] = field(default_factory=lambda: MappingProxyType({}))
    answers: Mapping[int, Measured] = field(default_factory=lambda: MappingProxyType({}))

    def charged(self, seq: int, charge: Charge) -> "ForOthers":
        """With a charge, if another ledger asked for it; ValueError if it did so before."""
        if not charge.reference:
            return self
        request = (charge.payer.analyst, charge.reference)
        if request in self.charges:
            raise ValueError("the request of another ledger is charged twice")
        return ForOthers(MappingProxyType({**self.charges, request: seq}), self.answers)

    def told(self, charge: Charge, body: Measured) -> "ForOthers":
        """With a measurement, if another ledger asked for it."""
        if not charge.reference:
            return self
        return ForOthers(self.charges, MappingProxyType({**self.answers, body.charge: body}))
