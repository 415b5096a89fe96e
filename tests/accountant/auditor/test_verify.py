"""Tampering: the audit detects all that is changed, dropped, swapped, repeated or cut off."""

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from hypothesis import given, settings
from hypothesis import strategies as st

from accountant.auditor.signed_head import Head, SignedHead, sign_head
from accountant.auditor.verify import verify
from accountant.ledger.entries import GENESIS, Entry
from accountant.ledger.opening import open_ledger
from cube.measurement import UNITS_PER_EPSILON
from tests.support.audited import WEIGHT, rechained
from tests.support.examples import examples

FIELDS = ("at", "kind", "table", "body", "digest")
SIGNED_AT = "2026-11-21T01:00:00.000+00:00"
KEY = Ed25519PrivateKey.generate()


def signed(entries: Sequence[Entry]) -> SignedHead:
    head = entries[-1].digest if entries else GENESIS
    return sign_head(KEY, Head(len(entries), head, SIGNED_AT))


def numbered(entries: Sequence[Entry]) -> list[Entry]:
    """Entries with the numbers of their places, and digests that fit."""
    return rechained([replace(one, seq=place) for place, one in enumerate(entries, start=1)])


def test_a_ledger_that_the_gate_wrote_is_right_and_adds_up(
    entries: tuple[Entry, ...], ledger_path: Path
) -> None:
    verdict = verify(entries, heads=[signed(entries)])
    assert verdict.problem is None
    assert verdict.notes == ()
    assert (verdict.n_entries, verdict.head) == (len(entries), entries[-1].digest)
    people, pets = verdict.tables
    spent = Fraction(5 * WEIGHT.units + 7, UNITS_PER_EPSILON)
    assert (people.table, people.budget, people.spent) == ("people", Fraction(3, 7), spent)
    assert (people.recomputed, people.exact) == (spent, True)
    assert (people.n_measurements, people.n_pending, people.n_raised) == (7, 1, 1)
    assert (pets.spent, pets.recomputed) == (Fraction(1, 16), Fraction(1, 16))
    with open_ledger(ledger_path) as ledger:
        for table in verdict.tables:
            history = ledger.history(table.table)
            assert Fraction(history.units_spent, UNITS_PER_EPSILON) == table.spent
            assert history.budget == table.budget
            assert len(history.measurements) == table.n_measurements
            assert len(history.pending) == table.n_pending


def test_a_ledger_without_entries_is_right() -> None:
    verdict = verify([])
    assert (verdict.n_entries, verdict.head, verdict.at) == (0, GENESIS, "")
    assert (verdict.tables, verdict.problem) == ((), None)


def test_every_beginning_of_a_ledger_is_a_ledger(entries: tuple[Entry, ...]) -> None:
    heads = [signed(entries[:n]) for n in range(len(entries) + 1)]
    for n_entries in range(len(entries) + 1):
        verdict = verify(entries[:n_entries], heads=heads[: n_entries + 1])
        assert (verdict.n_entries, verdict.problem) == (n_entries, None)


@settings(deadline=None, max_examples=examples(300))
@given(data=st.data())
def test_any_byte_of_any_field_that_is_changed_is_found(
    entries: tuple[Entry, ...], data: st.DataObject
) -> None:
    place = data.draw(st.integers(0, len(entries) - 1))
    name = data.draw(st.sampled_from(FIELDS))
    content = bytearray(getattr(entries[place], name).encode())
    if content:
        byte = data.draw(st.integers(0, len(content) - 1))
        content[byte] ^= data.draw(st.integers(1, 255))
    else:
        content.append(data.draw(st.integers(0, 255)))
    fields = {one: getattr(entries[place], one) for one in FIELDS}
    changed = Entry(place + 1, **{**fields, name: content.decode("latin-1")})
    problem = verify([*entries[:place], changed, *entries[place + 1 :]]).problem
    assert problem is not None
    assert problem.startswith(f"entry {place + 1}: its digest does not match")


@settings(deadline=None, max_examples=examples(100))
@given(data=st.data())
def test_any_number_that_is_changed_is_found(
    entries: tuple[Entry, ...], data: st.DataObject
) -> None:
    place = data.draw(st.integers(0, len(entries) - 1))
    seq = data.draw(st.integers(-1, 99).filter(lambda seq: seq != place + 1))
    changed = replace(entries[place], seq=seq)
    problem = verify([*entries[:place], changed, *entries[place + 1 :]]).problem
    assert problem == f"entry {place + 1}: the entry found in its place has number {seq}"


def moved(entries: Sequence[Entry], data: st.DataObject) -> tuple[int, list[Entry]]:
    """The first place that is not what it was, and the entries that are left."""
    places = st.integers(0, len(entries) - 1)
    first, second = sorted((data.draw(places), data.draw(places)))
    way = data.draw(st.sampled_from(["drop", "repeat", "swap", "move"]))
    left = list(entries)
    match way:
        case "drop":
            del left[first]
        case "repeat":
            left.insert(second + 1, entries[first])
            first = second + 1
        case "swap":
            left[first], left[second] = left[second], left[first]
        case "move":
            left.insert(second, left.pop(first))
    return first, left


@settings(deadline=None, max_examples=examples(200))
@given(data=st.data())
def test_entries_dropped_repeated_swapped_or_moved_are_found(
    entries: tuple[Entry, ...], data: st.DataObject
) -> None:
    first, left = moved(entries, data)
    if left == list(entries) or left == list(entries[:-1]):
        return
    problem = verify(left).problem
    assert problem is not None
    assert problem.startswith(f"entry {first + 1}: ")


@settings(deadline=None, max_examples=examples(200))
@given(data=st.data())
def test_what_was_signed_cannot_be_rewritten_even_with_new_digests(
    entries: tuple[Entry, ...], data: st.DataObject
) -> None:
    """Whatever the auditor makes of the entries by themselves."""
    first, left = moved(entries, data)
    if left[: len(entries)] == list(entries):
        return
    n_signed = data.draw(st.integers(first + 1, len(entries)))
    verdict = verify(numbered(left), heads=[signed(entries[:n_signed])])
    assert verdict.problem is not None
    assert int(verdict.problem.split(" ")[1].removesuffix(":")) <= n_signed


def test_a_missing_tail_is_detected_by_a_signed_head_alone(
    entries: tuple[Entry, ...],
) -> None:
    for n_left in range(len(entries)):
        assert verify(entries[:n_left]).problem is None
        verdict = verify(entries[:n_left], heads=[signed(entries[:3]), signed(entries)])
        n_missing = min(n for n in (3, len(entries)) if n > n_left)
        assert verdict.problem == (
            f"entry {n_left + 1}: the end of the ledger is missing: a head with {n_missing} "
            f"entries was signed on {SIGNED_AT}"
        )


def test_a_rewritten_ledger_is_detected_by_a_signed_head_alone(
    entries: tuple[Entry, ...],
) -> None:
    forged = rechained([replace(entries[0], at="2026-11-20T00:00:00.500+00:00"), *entries[1:]])
    assert verify(forged).problem is None
    verdict = verify(forged, heads=[signed(entries)])
    assert verdict.problem is not None
    assert verdict.problem.startswith(f"entry {len(entries)}: the ledger was rewritten here or")
    assert verdict.n_entries == len(entries) - 1


def test_what_is_being_done_can_be_watched(
    entries: tuple[Entry, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("accountant.auditor.verify.N_BETWEEN_REPORTS", 1)
    seen: list[tuple[str, int]] = []
    verify(entries, watch=lambda what, how_far: seen.append((what, how_far)))
    assert [how_far for what, how_far in seen if what == "entries"] == list(range(1, 29))
    assert ("charges of people", 7) in seen
    assert ("charges of pets", 1) in seen
