"""Wires the world: settings in, a running engine out. The only place that knows every part."""

from accountant.gate import Gate, open_table
from accountant.ledger import Ledger
from accountant.noise import SystemNoise
from proxy.config import Settings, TableSettings
from proxy.engine import Engine
from proxy.public_tables import PublicTable
from proxy.served_table import ServedTable
from proxy.sources.duckdb_source import DuckDbSource
from proxy.sources.public_file import load_public_tables


class Service:
    """An engine, the public tables beside it, and what it holds open."""

    def __init__(self, engine: Engine, ledger: Ledger, public: tuple[PublicTable, ...]) -> None:
        self.engine = engine
        self.public = public
        self._ledger = ledger

    def close(self) -> None:
        """Release the ledger; nothing is lost by not calling it."""
        self._ledger.close()


def build(settings: Settings) -> Service:
    """Open the ledger and every table, and complete what a crash left unfinished.

    Raises
    ------
    CannotStart
        With what is wrong and what to do: configuration, ledger or data.
    """
    public = load_public_tables(settings.public)
    ledger = Ledger(settings.ledger_path)
    try:
        tables = {
            table.schema.table: ServedTable(
                table.schema, table.default, _open_gate(table, ledger), table.strategy
            )
            for table in settings.tables
        }
        return Service(Engine(tables, public), ledger, public)
    except BaseException:
        ledger.close()
        raise


def _open_gate(table: TableSettings, ledger: Ledger) -> Gate:
    source = DuckDbSource(table.schema, table.location)
    return open_table(ledger, table.schema, table.budget, source, SystemNoise())
