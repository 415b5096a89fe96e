"""A ledger as lines of JSON and back: the same to the last byte, and refused when it is not."""

import io
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from accountant.auditor.transfer import exported, import_into, imported
from accountant.auditor.verdict import Verdict
from accountant.auditor.verify import verify
from accountant.ledger.entries import Entry
from accountant.ledger.opening import open_ledger, open_reader, open_store
from accountant.ledger.stores.key_file import key_beside
from accountant.ledger.stores.mark import mark_beside
from cube.refusals import LedgerCorrupt
from tests.support.examples import examples


def lines_of(entries: tuple[Entry, ...]) -> str:
    return "".join(exported(entries))


def test_what_was_exported_is_imported_as_it_was(entries: tuple[Entry, ...]) -> None:
    text = lines_of(entries)
    assert tuple(imported(io.StringIO(text), "x.jsonl")) == entries
    assert text.count("\n") == len(entries) + 2
    assert text.isascii()
    assert list(imported(io.StringIO("".join(exported([]))), "x.jsonl")) == []


def read(path: Path) -> tuple[Entry, ...]:
    with closing(open_reader(str(path))) as reader:
        return tuple(reader.entries_after(0))


def import_from(entries: Iterable[Entry], path: Path) -> Verdict:
    return import_into(lambda: open_store(str(path)), entries)


def test_an_imported_ledger_is_the_ledger(
    entries: tuple[Entry, ...], ledger_path: Path, tmp_path: Path
) -> None:
    path = tmp_path / "copy.ledger"
    verdict = import_from(imported(io.StringIO(lines_of(entries)), "x.jsonl"), path)
    assert read(path) == entries
    assert verdict == verify(entries)
    key, old_key = key_beside(path), key_beside(ledger_path)
    for copy, old in ((key, old_key), (mark_beside(key), mark_beside(old_key))):
        copy.write_bytes(old.read_bytes())
    with open_ledger(path) as new, open_ledger(ledger_path) as original:
        assert new.position == original.position
        assert new.history("people").units_spent == original.history("people").units_spent


def test_nothing_is_imported_over_something(entries: tuple[Entry, ...], tmp_path: Path) -> None:
    path = tmp_path / "copy.ledger"
    import_from(entries[:3], path)
    with pytest.raises(LedgerCorrupt, match=r"already has entries\. It was not changed"):
        import_from(entries, path)
    assert read(path) == entries[:3]


def test_nothing_of_a_ledger_with_a_problem_is_imported(
    entries: tuple[Entry, ...], tmp_path: Path
) -> None:
    path = tmp_path / "copy.ledger"
    with pytest.raises(
        LedgerCorrupt, match=r"Nothing was imported\. The first problem is entry 5: "
    ):
        import_from([*entries[:4], *entries[5:]], path)
    assert not path.exists()


def is_found_out(text: str) -> bool:
    try:
        return verify(imported(io.StringIO(text, newline="\n"), "x.jsonl")).problem is not None
    except LedgerCorrupt as refused:
        return refused.message.startswith("x.jsonl, line ")


@settings(deadline=None, max_examples=examples(300))
@given(data=st.data())
def test_any_byte_that_is_changed_is_found(entries: tuple[Entry, ...], data: st.DataObject) -> None:
    content = bytearray(lines_of(entries).encode())
    place = data.draw(st.integers(0, len(content) - 1))
    content[place] ^= data.draw(st.integers(1, 127))
    assert is_found_out(content.decode("latin-1"))


@settings(deadline=None, max_examples=examples(100))
@given(data=st.data())
def test_a_file_that_was_cut_off_is_found(entries: tuple[Entry, ...], data: st.DataObject) -> None:
    text = lines_of(entries)
    assert is_found_out(text[: data.draw(st.integers(0, len(text) - 1))])


@settings(deadline=None, max_examples=examples(100))
@given(data=st.data())
def test_lines_dropped_swapped_or_repeated_are_found(
    entries: tuple[Entry, ...], data: st.DataObject
) -> None:
    lines = lines_of(entries).splitlines(keepends=True)
    places = st.integers(0, len(lines) - 1)
    first, second = data.draw(places), data.draw(places)
    match data.draw(st.sampled_from(["drop", "repeat", "swap"])):
        case "drop":
            del lines[first]
        case "repeat":
            lines.insert(second, lines[first])
        case "swap":
            lines[first], lines[second] = lines[second], lines[first]
    text = "".join(lines)
    assert is_found_out(text) or text == lines_of(entries)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "line 0: .*cut off"),
        ("\n", "line 1: .*not JSON"),
        ('{"format":"tacit-ledger","version":2}\n', "line 1: .*its version is unknown"),
        ("age,sex\n39,Male\n", "line 1: .*not JSON"),
        ('{"format":"tacit-ledger","version":1}\n[]\n', "line 2: the line is not an entry"),
        ('{"format":"tacit-ledger","version":1}\n{"seq":1}\n', "line 2: the field at is missing"),
        ('{"format":"tacit-ledger","version":1}', "line 1: it was cut off"),
    ],
)
def test_a_file_that_is_not_an_export_is_refused_with_a_message(text: str, why: str) -> None:
    with pytest.raises(LedgerCorrupt, match=why):
        list(imported(io.StringIO(text), "x.jsonl"))
