"""A federated table behind a whole engine: its holders' gates are in this process, or fail."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from accountant.gate import Asked, Funds, Gate, Told, open_table, renew_table
from accountant.ledger import Ledger, Payer, open_ledger
from accountant.noise import NoiseSource, SystemNoise
from cube.axis import CategoryAxis
from cube.measurement import GaussianTerms
from cube.refusals import SourceUnavailable
from cube.schema import Schema
from planner.measuring import GaussianOffer
from proxy.engine.engine import Engine
from proxy.monitoring import UNWATCHED
from proxy.synthetic_tables import SyntheticStore
from proxy.tables import ServedTable
from proxy.tables.in_flight import Purchases
from tests.support.fakes import KnownTable
from tests.support.square_tables import BUDGET, DEFAULT, records_of, schema_of

COORDINATOR = Payer("coordinator")


@dataclass
class HoldersHere:
    """The gates of holders, asked as a server would; each request is carried as its text."""

    gates: Sequence[Gate]
    names: Sequence[str]
    down: set[int] = field(default_factory=set)
    told: list[Told] = field(default_factory=list)
    change: Callable[[Told], Told] = field(default=lambda told: told)
    payer: Payer = COORDINATOR
    before: Callable[[int], None] = field(default=lambda _level: None)
    offers: Sequence[GaussianOffer | None] = ()

    def __post_init__(self) -> None:
        self._purchases = [Purchases(gate, UNWATCHED) for gate in self.gates]

    def fingerprint(self, key: bytes, like: str = "") -> str:  # noqa: ARG002 - of the port
        return "+".join(self.names)

    def rows_fingerprint(self, key: bytes, like: str = "") -> str:  # noqa: ARG002 - of the port
        states = [self.generation(level) for level in range(len(self.gates))]
        return ";".join(f"{name}={state}" for name, state in zip(self.names, states, strict=True))

    def generation(self, level: int) -> str:
        return self.gates[level].state

    def left(self) -> list[Fraction | None]:
        return [
            None if level in self.down else gate.budget().left
            for level, gate in enumerate(self.gates)
        ]

    def check(self, level: int, asked: Asked) -> None:
        self._reach(level)
        self.gates[level].price_for(Asked.read(asked.text), self.payer, self._terms(level))

    def measure(self, level: int, asked: Asked) -> Told:
        self._reach(level)
        self.before(level)
        read = Asked.read(asked.text)
        told = self._purchases[level].measure_for(read, self.payer, self._terms(level))
        self.told.append(told)
        return self.change(Told.read(told.text))

    def _terms(self, level: int) -> GaussianTerms | None:
        offer = self.offers[level] if self.offers else None
        return None if offer is None else offer.first_terms

    def _reach(self, level: int) -> None:
        if level in self.down:
            raise SourceUnavailable(f"The holder {self.names[level]} cannot be reached.")


@dataclass
class Federation:
    """A coordinator's engine and ledger, and its holders."""

    engine: Engine
    ledger: Ledger
    holders: HoldersHere
    ledgers: Sequence[Ledger]
    table: ServedTable

    def spent(self) -> list[Fraction]:
        """What each holder's table has spent."""
        return [gate.budget().spent for gate in self.holders.gates]


def federated_schema(sizes: Mapping[str, int], names: Sequence[str]) -> Schema:
    """The schema of a federated table of text columns."""
    plain = schema_of(sizes)
    holder = CategoryAxis(name="holder", values=tuple(names))
    return replace(plain, axes=(*plain.axes, holder), holders="holder")


@contextmanager
def federated_engine(  # noqa: PLR0913 - what the holders have, and what is declared
    folder: Path,
    sizes: Mapping[str, int],
    counts: Mapping[str, NDArray[np.int64]],
    noise: NoiseSource | None = None,
    *,
    budgets: Sequence[Fraction] = (),
    budget: Fraction = BUDGET,
    holders_public: bool = False,
    renewed: bool = False,
    overlap: bool = False,
    rows_per_unit: int = 1,
    offer: GaussianOffer | None = None,
    offers: Sequence[GaussianOffer | None] = (),
    store: SyntheticStore | None = None,
) -> Iterator[Federation]:
    """A coordinator of holders with given counts, each with a ledger of its own in `folder`.

    Gaussian noise is offered as in `offer`; by holders with `offers`, as in one of these.
    """
    schema, own = federated_schema(sizes, list(counts)), schema_of(sizes)
    if rows_per_unit > 1:
        schema, own = (
            replace(one, unit="person", rows_per_unit_max=rows_per_unit) for one in (schema, own)
        )
    schema = schema.with_overlap() if overlap else schema
    drawn = SystemNoise() if noise is None else noise
    with ExitStack() as stack:
        ledgers, gates = [], []
        for place, (name, of_holder) in enumerate(counts.items()):
            ledger = stack.enter_context(open_ledger(folder / f"{name}.ledger"))
            source = KnownTable(own, records_of(of_holder))
            funds = budgets[place] if budgets else BUDGET
            gates.append(open_table(ledger, own, funds, source, drawn))
            ledgers.append(ledger)
        of_each = tuple(offers) or (offer,) * len(gates)
        holders = HoldersHere(gates, list(counts), offers=of_each)
        ledger = stack.enter_context(open_ledger(folder / "coordinator.ledger"))
        if renewed:
            assert renew_table(ledger, schema, Funds(budget), holders, "owner")
        gate = open_table(ledger, schema, budget, holders, drawn)
        table = ServedTable(schema, DEFAULT, gate, gaussian=offer, holders_public=holders_public)
        yield Federation(Engine({"rows": table}, store=store), ledger, holders, ledgers, table)
