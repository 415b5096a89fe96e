"""A table's owner replaces its data: a new generation begins, under the budget that there is.

The new data is read and fingerprinted first, then one entry is decided on the latest history. The
declaration stays what it was, and so do the neighbours, the bounds on a unit's rows, and all that
is spent. Proof: proofs/generations.md.
"""

from accountant.gate.open_table import Funds, as_seen, check_declared, check_new_data, known_data
from accountant.ledger.generations import GenerationBegun
from accountant.ledger.ledger import Ledger
from accountant.ledger.next_generation import next_generation
from accountant.ledger.table_history import TableHistory
from accountant.source import Source
from cube.refusals import LedgerMismatch
from cube.schema import Schema


def renew_table(ledger: Ledger, schema: Schema, funds: Funds, source: Source, by: str) -> bool:
    """Begin a generation of a table with what a source reads; whether this did.

    Nothing is done if the data is what it was.

    Parameters
    ----------
    ledger : Ledger
    schema : Schema
        Of a table that does not grow.
    funds : Funds
        Its budget as declared.
    source : Source
        The new data.
    by : str
        Who says so.

    Raises
    ------
    LedgerMismatch
        If the ledger does not know the table, or knows it with another declaration; or if it knows
        the data under another name, whose budget would then be spent beside this one.
    LedgerUnavailable
    """
    ledger.refresh()
    table = schema.table
    opened = ledger.history(table).opened
    if opened is None:
        raise LedgerMismatch(
            f"The ledger does not know {table} yet.", hint="`tacit serve` enters it."
        )
    data, rows = source.fingerprint(ledger.key), source.rows_fingerprint(ledger.key)
    seen = as_seen(schema, funds, data, rows)
    check_declared(table, opened, seen)
    check_new_data(ledger, seen, source, table)

    def begun(history: TableHistory) -> GenerationBegun | None:
        """A generation, unless the data is what the ledger has, digested as it is there."""
        known = known_data(history), history.rows_fingerprint or ""
        found = (
            source.fingerprint(ledger.key, known[0]),
            source.rows_fingerprint(ledger.key, known[1]),
        )
        if found == (known[0], known[1] or found[1]):
            return None
        return next_generation(history, data, rows, by)

    begun(ledger.history(table))  # so that what takes its time is done before others wait for it
    return ledger.append(table, begun) is not None
