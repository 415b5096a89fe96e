"""Both wires of one engine, under TLS, and what every client of PostgreSQL is asked to do.

A program that is not on a machine is skipped, unless TACIT_TESTS_NEED_SERVERS=1 says that it must
be there. Packages of Python are in the extra `dev`.
"""

import csv
import datetime as dt
import random
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from urllib.parse import quote

import pytest

from accountant.gate.opening import open_table
from accountant.ledger.ledger import Ledger
from accountant.ledger.opening import open_ledger
from accountant.noise.lattice_noise import SystemNoise
from cube.axis import CategoryAxis, DateAxis, IntegerAxis
from cube.schema import Schema
from cube.target import AccuracyTarget
from planner.measuring.candidates import Strategy
from proxy.api.requests import LOCAL
from proxy.engine.engine import Engine
from proxy.identity.authenticate import LedgerAuthenticator
from proxy.sources.duckdb_source import DuckDbSource
from proxy.sources.location import SourceLocation
from proxy.tables.private_table import ServedTable
from proxy.wire.tls import TlsIdentity, endpoint_hash, server_context
from tests.support.certificates import LOOPBACK, Authority
from tests.support.identities import token_for
from tests.support.postgres_wire import postgres_serving
from tests.support.serving import serving
from tests.support.synthetic import CITIES

PEOPLE = Schema(
    table="people",
    axes=(
        IntegerAxis(name="age", low=0, high=99),
        CategoryAxis(name="city", values=("Oslo", "Paris", "Rome"), null=True),
        DateAxis(name="joined", low=dt.date(2025, 1, 1), high=dt.date(2025, 12, 31)),
    ),
    n_records_max=100_000,
)
N_ROWS = 3000
BY_CITY = "SELECT city, COUNT(*) AS n FROM people GROUP BY city ORDER BY n DESC"


@dataclass(frozen=True)
class Served:
    """The wires, the credential that opens them, and what was spent."""

    host: str
    port: int
    flight: str
    token: str
    authority: Path
    engine: Engine
    ledger: Ledger

    @property
    def uri(self) -> str:
        """The PostgreSQL wire as libpq writes it."""
        return f"postgresql://ann:{quote(self.token)}@{self.host}:{self.port}/tacit?{self.tls}"

    @property
    def tls(self) -> str:
        return f"sslmode=verify-full&sslrootcert={self.authority}"

    def sqlalchemy(self, driver: str) -> str:
        """The PostgreSQL wire for one of SQLAlchemy's drivers."""
        login = f"ann:{quote(self.token)}@{self.host}:{self.port}/tacit"
        return f"postgresql+{driver}://{login}"

    @property
    def spent(self) -> Fraction:
        """Epsilon, by the engine, whose ledger says the same."""
        (budget,) = self.engine.budgets(LOCAL)
        return budget.spent


def _rows(path: Path) -> Path:
    draw = random.Random(3)  # noqa: S311 - data for tests, not noise
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(axis.name for axis in PEOPLE.axes)
        for _ in range(N_ROWS):
            day = dt.date(2025, 1, 1) + dt.timedelta(days=draw.randrange(365))
            city = draw.choice(["Oslo", "Oslo", "Paris", "Rome", ""])
            writer.writerow((min(99, int(draw.gammavariate(6, 7))), city, day))
    return path


@pytest.fixture(scope="session")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("clients")
    authority = Authority()
    identity = authority.sign("localhost", alternatives=LOOPBACK)
    certificate, key = identity.written(folder, "server")
    root = folder / "authority.pem"
    root.write_bytes(authority.certificate)
    source = DuckDbSource(PEOPLE, SourceLocation(path=_rows(folder / "people.csv")))
    with open_ledger(folder / "people.ledger") as ledger:
        gate = open_table(ledger, PEOPLE, Fraction(50), source, SystemNoise())
        default = AccuracyTarget(half_width=30.0, confidence=0.95)
        table = ServedTable(PEOPLE, default, gate, Strategy.AUTO)
        engine = Engine({"people": table}, (CITIES,))
        authenticator = LedgerAuthenticator(ledger)
        token = token_for(ledger, "ann", "people")
        tls = TlsIdentity(identity.certificate, identity.key)
        with (
            postgres_serving(
                engine,
                authenticator,
                tls=server_context(certificate, key, None),
                endpoint_hash=endpoint_hash(identity.certificate),
            ) as postgres,
            serving(engine, tls=tls, authenticator=authenticator, public=(CITIES,)) as flight,
        ):
            _, _, port = postgres.rpartition(":")
            flight_port = flight.rpartition(":")[2]
            yield Served(
                "localhost", int(port), f"localhost:{flight_port}", token, root, engine, ledger
            )
