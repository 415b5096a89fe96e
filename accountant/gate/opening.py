"""Opening a table with the data of its ledger, and beginning a new generation of its data.

A new table is entered; a changed one is refused, because a budget belongs to one table's data: what
it has spent stays spent when its owner replaces the data. Proof: proofs/gate.md, "The history".

When the owner replaces it, a new generation begins, under the budget that there is. The new data is
read and fingerprinted first, then one entry is decided on the latest history. The declaration, the
neighbours, the bounds on a unit's rows and all recorded spending stay the same. Proof:
proofs/generations.md.
"""

import hashlib
import hmac
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from importlib.metadata import version

from accountant.gate.asked import RemoteGates
from accountant.gate.gate import Gate
from accountant.ledger import (
    BudgetJoined,
    BudgetSet,
    DataPinned,
    GenerationBegun,
    Ledger,
    TableDeclared,
    TableOpened,
    Window,
)
from accountant.ledger.history import TableHistory, next_generation
from accountant.noise import NoiseSource
from accountant.source import GrowingSource, Source
from cube.encoding import canonical_json, declare
from cube.refusals import DataChanged, LedgerMismatch, LedgerUnavailable, SourceUnavailable
from cube.schema import RowsByLevel, Schema


@dataclass(frozen=True, slots=True)
class Funds:
    """The spending that a table's owner allows, as declared.

    Parameters
    ----------
    budget : Fraction
        The total epsilon that may be spent.
    renews : Window
        The window in which it may be spent, and after which it is there anew.
    shared : str
        The name of the budget, if tables share it; all of them declare the same epsilon and
        window.
    separate : str
        Why a table about the same units has a budget of its own; for readers of the ledger only.
    """

    budget: Fraction
    shared: str = ""
    separate: str = ""
    renews: Window = Window.NEVER


def open_table(
    ledger: Ledger,
    schema: Schema,
    funds: Funds | Fraction,
    source: Source | GrowingSource | RemoteGates,
    noise: NoiseSource,
) -> Gate:
    """The gate of one table, its history replayed from the ledger.

    Parameters
    ----------
    ledger : Ledger
    schema : Schema
    funds : Funds or Fraction
        A budget of its own, in epsilon, or what else is to be said about it.
    source : Source
    noise : NoiseSource

    Raises
    ------
    LedgerMismatch
        If the ledger has the table with another schema.
        Also if it has this data under another name, whose budget would then be spent twice; or if
        the table shares a budget in the ledger, and no longer is to.
    DataChanged
        If it has the table with other data, or with other rows read from the same data.
    """
    funds = funds if isinstance(funds, Funds) else Funds(funds)
    budget = funds.budget
    ledger.refresh()
    history = ledger.history(schema.table)
    known = history.rows_fingerprint or ""
    rows = None if isinstance(source, GrowingSource) else source.rows_fingerprint(ledger.key, known)
    like = known_data(history)
    seen = as_seen(schema, funds, data_like(source, ledger.key, like), rows)
    if history.opened is None:
        check_new_data(ledger, seen, source, schema.table)
        ledger.append(schema.table, lambda history: None if history.opened else seen)
    check_declared(schema.table, ledger.history(schema.table).opened or seen, seen)
    _check_same_data(schema.table, ledger, seen)
    if rows is not None:
        _check_same_rows(ledger, schema.table, source, rows)
    _share(ledger, schema.table, funds.shared)
    ledger.append(
        schema.table,
        lambda history: (
            None
            if (history.budget, history.renews) == (budget, funds.renews)
            else BudgetSet(budget, funds.renews)
        ),
    )
    declaration = declare(schema, version=version("tacit-dp"), separate_budget=funds.separate)
    ledger.append(
        schema.table,
        lambda history: None if history.declaration == declaration else TableDeclared(declaration),
    )
    gate = Gate(ledger, schema, source, noise, rows)
    with suppress(SourceUnavailable, LedgerUnavailable, RuntimeError):
        gate.complete_pending()  # on failure charges stay pending; history answers either way
    return gate


def as_seen(schema: Schema, funds: Funds, data: str, rows: str | None) -> TableOpened:
    """A table as it is declared, with the fingerprints of its data and of the rows read from it."""
    return TableOpened(
        schema_digest(schema),
        data,
        funds.budget,
        rows,
        schema.rows_per_unit_max,
        funds.shared,
        schema.grows or "",
        0 if schema.grows is None else schema.by_name[schema.grows].size,
        schema.rows_per_unit_max_by,
        funds.renews,
        "" if schema.holders is None or schema.grows is not None else schema.holders,
    )


def check_declared(table: str, opened: TableOpened, seen: TableOpened) -> None:
    """Raise LedgerMismatch unless a table is declared as its ledger began with it."""
    forgetting = "A new ledger would forget what was already spent on this data."
    if opened.schema_digest != seen.schema_digest:
        raise LedgerMismatch(
            f"The ledger records {table} with other columns, levels or neighbours.",
            hint=f"Restore the declaration that the table began with. {forgetting}",
        )
    bounds = opened.rows_per_unit, opened.rows_per_unit_by
    if bounds != (seen.rows_per_unit, seen.rows_per_unit_by):
        raise LedgerMismatch(
            f"The ledger records {table} with {_as_declared(*bounds)}. All spending on "
            "the table was computed with these bounds.",
            hint=f"Restore this in the configuration. {forgetting}",
        )
    if (opened.grows, opened.grows_levels) != (seen.grows, seen.grows_levels):
        raise LedgerMismatch(
            f"The ledger knows {table} as a table that "
            f"{f'grows along {opened.grows}' if opened.grows else 'does not grow'}.",
            hint=f"Restore this in the configuration. {forgetting}",
        )


def _check_same_data(table: str, ledger: Ledger, seen: TableOpened) -> None:
    """Refuse data that is not the data of the present generation."""
    # What a growing table's data was is known by its periods, which the gate compares.
    known = ledger.history(table).generations.data[-1:]
    if seen.grows or all(hmac.compare_digest(one, seen.data_fingerprint) for one in known):
        return
    raise DataChanged(
        f"The data of {table} is not the data that is recorded in its ledger.",
        hint=f"Restore the recorded data. Or keep the new data: `tacit table renew {table}` "
        "begins a generation under the same budget. A new ledger would forget what "
        "was already spent.",
    )


def _as_declared(n_rows: int, by: RowsByLevel | None) -> str:
    """The bounds on the rows of a unit as an owner declares them."""
    of_level = "no rows_per_unit_max_by"
    if by is not None:
        of_level = f"rows_per_unit_max_by = {{{by.axis} = {by.rows}}}"
    return f"rows_per_unit_max = {n_rows} and {of_level}"


def _check_same_rows(
    ledger: Ledger, table: str, source: Source | GrowingSource | RemoteGates, rows: str
) -> None:
    """Refuse other rows than were read before; record them if the ledger has no record of them."""
    ledger.append(table, lambda history: None if history.rows_fingerprint else DataPinned(rows))
    known = ledger.history(table).rows_fingerprint or rows
    if not hmac.compare_digest(known, rows):
        if isinstance(source, RemoteGates):
            raise DataChanged(
                f"A holder of {table} has replaced its data since the ledger was told.",
                hint=f"`tacit table renew {table}` begins a generation with the data that the "
                "holders have now.",
            )
        raise DataChanged(
            f"The file of {table} is unchanged, but different rows were read from it.",
            hint="Start the server with the same releases of Tacit and DuckDB as before.",
        )


def _share(ledger: Ledger, table: str, shared: str) -> None:
    """Let a table spend from a shared budget from now on; refuse to let it leave one."""
    ledger.append(
        table,
        lambda history: BudgetJoined(shared) if shared and not history.shared_budget else None,
    )
    known = ledger.history(table).shared_budget
    if known != shared:
        raise LedgerMismatch(
            f"The ledger records that {table} spends from the shared budget {known}.",
            hint=f'Set budget = "{known}" again: the table\'s spending counts in that budget.',
        )


def known_data(history: TableHistory) -> str:
    """The digest of the data that a table has in its ledger; empty if it has none there."""
    return next(reversed(history.generations.data), "")


def data_like(source: Source | GrowingSource | RemoteGates, key: bytes, known: str) -> str:
    """The digest of a source's data, made as a known one is, so that the two can be compared."""
    if isinstance(source, GrowingSource):
        return source.fingerprint(key)
    return source.fingerprint(key, known)


def check_new_data(
    ledger: Ledger, seen: TableOpened, source: Source | GrowingSource | RemoteGates, table: str
) -> None:
    """Refuse a second budget for data that already has one, under whatever name."""
    shared = ledger.shared_budgets()
    for known in ledger.tables():
        is_shared = seen.shared_budget and shared.get(known) == seen.shared_budget
        if is_shared or known == table:
            continue
        every = ledger.history(known).generations.data
        if any(hmac.compare_digest(one, data_like(source, ledger.key, one)) for one in every):
            raise LedgerMismatch(
                f"The ledger already records the data of {table} under the name {known}.",
                hint=f"Call the table {known}: a second name would give the same data a "
                "second budget. Or let both tables spend from one budget: declare "
                '[budgets.NAME], and set budget = "NAME" in each table.',
            )


def schema_digest(schema: Schema) -> str:
    """A digest of the table, axes and neighbours, which give a row's coefficients their meaning.

    The order of the columns and the public cap on records do not change it, and are left out.
    """
    # A frozen axis's repr is its declaration. Holders join and leave: a generation says which.
    axes = sorted(ascii(axis) for axis in schema.axes if axis.name != schema.holders)
    holders = [] if schema.holders is None else [schema.holders]
    text = canonical_json([schema.table, axes, schema.neighbours.value, *holders])
    return hashlib.sha256(text.encode()).hexdigest()


def renew_table(
    ledger: Ledger, schema: Schema, funds: Funds, source: Source | RemoteGates, by: str
) -> bool:
    """Begin a generation of a table with what a source reads; whether this did.

    Nothing is done if the data is unchanged.

    Parameters
    ----------
    ledger : Ledger
    schema : Schema
        The schema of a table that does not grow.
    funds : Funds
        Its budget as declared.
    source : Source
        The new data.
    by : str
        Who replaced the data; recorded in the ledger.

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
            f"The ledger does not know {table} yet.",
            hint="Run `tacit serve`: it records the table.",
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
