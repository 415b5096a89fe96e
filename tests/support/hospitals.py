"""Hospitals with patients, each behind a real server of its own, and a coordinator of them."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path

import grpc

from accountant.ledger.credentials import Role
from proxy.admin.ledger_admin import LimitChange, change_limit
from proxy.bootstrap import Service, build
from proxy.config.settings import load
from proxy.identity.authenticate import LedgerAuthenticator
from proxy.wire.server import RunningServer, start_server
from proxy.wire.tls import TlsIdentity
from tests.support.identities import token_for

COLUMNS = """budget = "{budget}"
n_records_max = 10000
half_width = 60
{more}
[tables.patients.columns.sex]
kind = "category"
levels = {sexes}
[tables.patients.columns.ward]
kind = "integer"
low = 0
high = 4
"""
COUNT = "SELECT COUNT(*) AS n FROM patients"
COORDINATOR = "coordinator"


def columns(*, budget: str = "10", more: str = "", sexes: str = '["f", "m"]') -> str:
    return COLUMNS.format(budget=budget, more=more, sexes=sexes)


@dataclass
class Hospital:
    """One holder: a folder with its data and its ledger, and the server on it, if it runs."""

    folder: Path
    name: str
    n_patients: int
    declared: str = field(default_factory=columns)
    tls: TlsIdentity | None = None
    port: int = 0

    def __post_init__(self) -> None:
        self.folder.mkdir()
        self._running: RunningServer | None = None
        self._service: Service | None = None
        self.admit(self.n_patients)
        self.declare(self.declared)

    @property
    def service(self) -> Service:
        assert self._service is not None
        return self._service

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def token_file(self) -> Path:
        return self.folder / "federation.token"

    def declare(self, declared: str) -> None:
        self.declared = declared
        text = f'[ledger]\npath = "{self.name}.ledger"\n[tables.patients]\nsource = "p.csv"\n'
        (self.folder / "tacit.toml").write_text(text + declared)

    def admit(self, n_patients: int) -> None:
        """Let the data be that of so many patients."""
        rows = [f"{'fm'[place % 2]},{place % 5},{place}" for place in range(n_patients)]
        (self.folder / "p.csv").write_text("\n".join(["sex,ward,who", *rows]) + "\n")

    def start(self) -> None:
        self._service = build(load(self.folder / "tacit.toml"))
        self._running = start_server(
            self.service.engine,
            self.address,
            authenticator=LedgerAuthenticator(self.service.ledger),
            tls=self.tls,
            features=self.service.features,
        )
        self.port = int(self._running.address.rpartition(":")[2])
        if not self.token_file.exists():
            self.grant()

    def stop(self) -> None:
        if self._running is not None:
            self._running.stop()
            self._running = None
        if self._service is not None:
            self._service.close()
            self._service = None

    def grant(self, role: Role = Role.FEDERATION, table: str = "patients") -> str:
        """A new token, which its file has from now on."""
        token = token_for(self.service.ledger, COORDINATOR, table, role=role)
        self.token_file.write_text(f"{token}\n")
        return token

    def limit(self, epsilon: str) -> None:
        """Let the coordinator spend no more than this."""
        change = LimitChange(subject=f"analyst:{COORDINATOR}", epsilon=epsilon, window="never")
        change_limit(self.service.ledger, "patients", change, by="a test")

    def channel(self) -> grpc.Channel:
        return grpc.insecure_channel(self.address)

    def spent(self) -> Fraction:
        (budget,) = self.service.budgets()
        return budget.spent


def coordinates(
    hospitals: Sequence[Hospital], *, options: str = "", declared: str | None = None
) -> str:
    """The configuration of a coordinator of some hospitals."""
    listed = ", ".join(
        f'{{name = "{one.name}", address = "{one.address}", '
        f'token_file = "{one.token_file}"{options}}}'
        for one in hospitals
    )
    text = f'[ledger]\npath = "coordinator.ledger"\n[tables.patients]\nholders = [{listed}]\n'
    return text + (columns() if declared is None else declared)


@contextmanager
def hospitals(
    folder: Path, declared: str | None = None, /, **sizes: int
) -> Iterator[list[Hospital]]:
    """Hospitals that run, each with so many patients."""
    with ExitStack() as stack:
        text = columns() if declared is None else declared
        found = [Hospital(folder / name, name, size, text) for name, size in sizes.items()]
        for one in found:
            stack.callback(one.stop)
            one.start()
        yield found
