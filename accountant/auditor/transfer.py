"""Export of a ledger as lines of JSON, for an auditor without access to it; and import.

    {"format":"tacit-ledger","version":1}
    {"at":...,"body":...,"digest":...,"kind":...,"seq":1,"table":...}
    ...
    {"head":...,"n_entries":...}

The body of an entry keeps its exact text, so that digests can be computed from a line. The last
line makes a truncated file visible. The content of entries, and their chain, is checked in
verify.py.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from typing import Final

from accountant.auditor.fields import Fields, Wrong, fields_of, parsed, text, whole
from accountant.auditor.verdict import Verdict
from accountant.auditor.verify import verify
from accountant.ledger.entries import GENESIS, Entry
from accountant.ledger.stores.store import Store
from cube.encoding import canonical_json
from cube.refusals import LedgerCorrupt

HEADER: Final = {"format": "tacit-ledger", "version": 1}
_ENTRY: Final = ("seq", "at", "kind", "table", "body", "digest")
_END: Final = ("n_entries", "head")


def exported(entries: Iterable[Entry]) -> Iterator[str]:
    """The lines of a file."""
    yield canonical_json(HEADER) + "\n"
    n_entries, head = 0, GENESIS
    for entry in entries:
        fields = {name: getattr(entry, name) for name in _ENTRY}
        yield canonical_json(fields) + "\n"
        n_entries, head = entry.seq, entry.digest
    yield canonical_json({"n_entries": n_entries, "head": head}) + "\n"


def imported(file: Iterable[str], name: str) -> Iterator[Entry]:
    """The entries of a file that `exported` wrote.

    Raises
    ------
    LedgerCorrupt
        At the first line that is not valid, or at the end if the file was cut off. The message
        calls the file `name`.
    """
    place = 0
    n_entries, head, is_over = 0, GENESIS, False
    try:
        for place, line in enumerate(file, start=1):
            value = _value(line, place, is_over=is_over)
            if place == 1:
                continue
            if "n_entries" in value:
                is_over = _check_end(value, n_entries, head)
                continue
            entry = _entry(value)
            n_entries, head = n_entries + 1, entry.digest
            yield entry
        _check_over(is_over=is_over)
    except (Wrong, UnicodeDecodeError) as error:
        raise LedgerCorrupt(
            f"{name}, line {place}: {error}.",
            hint="Export the ledger again, or get another copy.",
        ) from None


def import_into(open_store: Callable[[], Store], entries: Iterable[Entry]) -> Verdict:
    """Write entries into an empty ledger, all of them or none.

    Parameters
    ----------
    open_store : callable
        Opens the new ledger, after the entries are verified.
    entries : iterable of Entry

    Raises
    ------
    LedgerCorrupt
        If the ledger is not empty, or anything is wrong with the entries.
    """
    every = list(entries)
    verdict = verify(every)
    if verdict.problem is not None:
        raise LedgerCorrupt(f"Nothing was imported. The first problem is {verdict.problem}.")
    with closing(open_store()) as store, store.writing() as appender:
        if next(iter(appender.entries_after(0)), None) is not None:
            raise LedgerCorrupt(
                f"The ledger {store.name} already has entries. It was not changed.",
                hint="Import into a new ledger.",
            )
        appender.insert(every)
    return verdict


def _value(line: str, place: int, *, is_over: bool) -> Fields:
    """The object on a line."""
    if is_over or not line.endswith("\n"):
        raise Wrong("there is text after the last line" if is_over else "it was cut off")
    value = parsed(line[:-1])
    if place == 1 and value != HEADER:
        raise Wrong("this is not a ledger export, or its version is unknown")
    if type(value) is not dict:
        raise Wrong("the line is not an entry")
    return value


def _entry(value: Fields) -> Entry:
    fields = fields_of(value, _ENTRY)
    names = _ENTRY[1:]
    return Entry(whole(fields, "seq"), *(text(fields, name) for name in names))


def _check_over(*, is_over: bool) -> None:
    if not is_over:
        raise Wrong("the file was cut off: its last line, which counts the entries, is missing")


def _check_end(value: Fields, n_entries: int, head: str) -> bool:
    fields = fields_of(value, _END)
    if (whole(fields, "n_entries"), text(fields, "head")) != (n_entries, head):
        raise Wrong(f"the last line does not match the {n_entries} entries above it")
    return True
