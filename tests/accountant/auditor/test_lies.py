"""False entries in an intact chain: each is found, at its entry, and named."""

import json
import re
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest

from accountant.auditor.verify import verify
from accountant.ledger.entries import Entry
from cube.encoding import canonical_json
from cube.measurement import UNITS_PER_EPSILON
from tests.support.audited import WEIGHT, Change, rechained, rewritten, to

OPENED, OTHER, GRANTED, OF_GROUP, OF_EACH = 1, 3, 5, 6, 7
CHARGE, VALUES, OF_BOB, VALUES_OF_BOB, RAISE, BUDGET = 9, 10, 13, 14, 15, 17
LATER, LATER_OF_BOB, SERVED, REVOKED, GRANTED_AGAIN, TAKEN_OVER = 18, 20, 22, 23, 24, 26
UNITS = WEIGHT.units


def without(*path: str | int) -> Change:
    def change(body: Any) -> None:
        for step in path[:-1]:
            body = body[step]
        del body[path[-1]]

    return change


def both(*changes: Change) -> Change:
    def change(body: dict[str, Any]) -> None:
        for one in changes:
            one(body)

    return change


BLOCK: tuple[str | int, ...] = ("blocks", 0)
FACTOR = (*BLOCK, "block", "terms", 0, "factors", 0)
TALLY: tuple[str | int, ...] = ("tallies", 0)

LIES: list[tuple[int, Change, str]] = [
    # what was charged, and for what
    (CHARGE, to(5, "units_after"), "the rows cost 137438953472 units .* 5 were charged"),
    (CHARGE, to(2 * UNITS - 1, "units_after"), "rows cost .* 137438953471 were charged"),
    (CHARGE, to(2 * UNITS, *BLOCK, "weight_units"), "rows cost 206158430208 units"),
    (CHARGE, to(UNITS - 1, *BLOCK, "weight_units"), "noise is smaller than the paid weight"),
    (CHARGE, to("0x1.fffffffffffffp+3", *BLOCK, "noise_scale"), "noise is smaller than"),
    (CHARGE, to(1, "units_before"), "starts from 1 spent units, but 0 were spent"),
    (OF_BOB, to(0, "units_before"), "starts from 0 spent units, but 137438953472 were spent"),
    (RAISE, both(to(0, "units_after")), "lowers the spent total"),
    (OF_BOB, to([7, 0, 4, 1], *FACTOR, "runs"), "the runs of an array do not fill"),
    (OF_BOB, to([3, 0, 3, 4], *FACTOR, "runs"), "the rows cost"),
    (OF_BOB, both(to([7], *FACTOR, "shape"), to([3, 0, 4, 1], *FACTOR, "runs")), "age has 7 lev"),
    (CHARGE, to([], "blocks"), "pays for nothing"),
    # budgets and limits
    (OPENED, to(5, "rows_fingerprint"), "rows_fingerprint"),
    (OPENED, to(1, "rows_per_unit"), "rows_per_unit is 1, below 2"),
    (OPENED, to(3, "rows_per_unit"), "entry 9: the rows cost 412316860416 units"),
    (OPENED, to({"age": 1}, "rows_per_unit_by"), "a unit's rows at one level must be below"),
    (OPENED, to({"age": 0}, "rows_per_unit_by"), "age is 0, below 1"),
    (OPENED, to({}, "rows_per_unit_by"), "bounded along exactly one column"),
    (OPENED, to({"age": 1, "pay": 1}, "rows_per_unit_by"), "bounded along exactly one column"),
    (OPENED, to([1], "rows_per_unit_by"), "bounded along exactly one column"),
    (
        OPENED,
        both(to(3, "rows_per_unit"), to({"age": 1}, "rows_per_unit_by")),
        "entry 9: the rows cost 412316860416 units",
    ),
    (OPENED, to(" people", "shared_budget"), "a name must have"),
    (OPENED, to("1/8", "budget"), "entry 13: .*the table's budget of 137438953472"),
    (OTHER, to("1/17", "budget"), "entry 11: .*budget"),
    (BUDGET, to("1/4", "budget"), "entry 20: .*budget"),
    (OF_GROUP, to("1/9", "epsilon"), "entry 9: group:sales spends .* more than the limit"),
    (OF_GROUP, to("1/9", "per_query"), "entry 9: .*limit of group:sales for one query"),
    (OF_EACH, to("1/17", "epsilon"), "entry 13: analyst:bob spends"),
    (OF_EACH, to("week", "window"), "entry 20: analyst:bob spends .*window: week"),
    (OF_EACH, to("never", "window"), "entry 20: analyst:bob spends"),
    (OF_EACH + 1, to("1/9", "per_query"), "entry 9: .*limit of analyst:ann for one query"),
    (OF_EACH + 1, both(to(None, "per_query")), "entry 9: analyst:ann spends"),
    # measurements
    (VALUES, to([[1], [2]], "lattice_values"), "exactly one value for each charged row"),
    (VALUES, to([[1], [2, 3], [4]], "lattice_values"), "exactly one value for each charged row"),
    (VALUES, to([[1], [2, 2**63]], "lattice_values"), "not a whole number of at most 64 bits"),
    (VALUES, to([[1], [2, 3.5]], "lattice_values"), "not JSON made of whole numbers"),
    (VALUES, to([[1], [2, True]], "lattice_values"), "not a whole number"),
    (VALUES, to([1, 2, 3], "lattice_values"), "holds a number"),
    (VALUES_OF_BOB, to(CHARGE, "charge"), "belongs to 9, which is not a pending charge"),
    (VALUES_OF_BOB, to(99, "charge"), "belongs to 99, which is not a pending charge"),
    (VALUES_OF_BOB, to(11, "charge"), "belongs to 11, which is not a pending charge"),
    (TAKEN_OVER, to(CHARGE, "charge"), "9 was taken over, but it is not a pending charge"),
    (TAKEN_OVER, to(0, "charge"), "below 1"),
    (TAKEN_OVER + 1, without("turn"), "turn that was taken over"),
    (TAKEN_OVER + 1, to(25, "turn"), "turn that was taken over"),
    (TAKEN_OVER + 1, to(0, "turn"), "below 1"),
    (VALUES, to(9, "turn"), "turn that was taken over"),
    # raises
    (RAISE, to(9, *BLOCK, "raised_from"), "does not exist"),
    (RAISE, to(0, *BLOCK, "raised_from"), "other rows"),
    (RAISE, to(-1, *BLOCK, "raised_from"), "below 0"),
    (RAISE, to(None, *BLOCK, "raised_from"), "nothing, not a whole number"),
    (RAISE, without(*BLOCK, "raised_from"), "the rows cost"),
    (RAISE, to(3 * UNITS, *BLOCK, "weight_units"), "the rows cost"),
    (RAISE, to(17, *BLOCK, "lattice_bits"), "does not refine"),
    (RAISE, to("0x1.0000000000000p+4", *BLOCK, "noise_scale"), "does not refine"),
    (
        RAISE,
        both(to(UNITS, *BLOCK, "weight_units"), to("0x1.0p+4", *BLOCK, "noise_scale")),
        "not a positive number in hexadecimal",
    ),
    (
        RAISE,
        both(
            to(UNITS, *BLOCK, "weight_units"), to("0x1.0000000000000p+4", *BLOCK, "noise_scale")
        ),
        "weight that is not larger",
    ),
    (VALUES_OF_BOB, to([[2**63 - 1]], "lattice_values"), "entry 15: .*does not refine"),
    # forms
    (OPENED, to("2/4", "budget"), "lowest terms"),
    (OPENED, to("3/0", "budget"), "lowest terms"),
    (OPENED, to("0.5", "budget"), "lowest terms"),
    (OPENED, to("1e999999999", "budget"), "lowest terms"),
    (OPENED, to("-1", "budget"), "below zero"),
    (OPENED, to(1, "budget"), "a number, not a text"),
    (OPENED, without("schema_digest"), "schema_digest is missing"),
    (OPENED, to("x", "more"), "the field 'more' is unknown"),
    (OPENED + 1, to({}, "declaration"), "not a text"),
    (CHARGE, to("", "analyst"), "printable"),
    (CHARGE, to("ann\n", "analyst"), "printable"),
    (CHARGE, to(["b", "a"], "groups"), "must be sorted"),
    (CHARGE, to(True, "units_before"), "true or false, not a whole number"),
    (CHARGE, to(33, *BLOCK, "lattice_bits"), "lattice of 33 bits"),
    (CHARGE, to(0, *BLOCK, "weight_units"), "below 1"),
    (CHARGE, to(2**52 + 1, *BLOCK, "weight_units"), "a weight of"),
    (CHARGE, to("inf", *BLOCK, "noise_scale"), "not a positive number"),
    (CHARGE, to("nan", *BLOCK, "noise_scale"), "not a positive number"),
    (CHARGE, to("-0x1.0000000000000p+4", *BLOCK, "noise_scale"), "not a positive number"),
    (CHARGE, to("0x1p99999", *BLOCK, "noise_scale"), "not a positive number"),
    (CHARGE, to("1", *BLOCK, "block", "constant"), "a measured row has a constant"),
    (CHARGE, to([], *BLOCK, "block", "terms"), "0 terms"),
    (CHARGE, to("1/2", *BLOCK, "block", "terms", 0, "scale"), "must be whole numbers"),
    (CHARGE, to([1, 0, 1, 2], "blocks", 1, "block", "partition", "runs"), "not numbered"),
    (CHARGE, to([1, -2, 1, 0], "blocks", 1, "block", "partition", "runs"), "not numbered"),
    (OF_BOB, to([2, 0, 0, 5, 4, 1], *FACTOR, "runs"), "a run without length"),
    (OF_BOB, to([2, 0, 4], *FACTOR, "runs"), "a run without length"),
    (OF_BOB, to([2, 0, 4, 2**40 + 1], *FACTOR, "runs"), "exceeds 2\\*\\*40"),
    (OF_BOB, to([2, 0, 4, 2**63], *FACTOR, "runs"), "exceeds 64 bits"),
    (OF_BOB, to([6, 1], *FACTOR, "shape"), "does not match its axes"),
    (OF_BOB, to([2**40], *FACTOR, "shape"), "too large"),
    (OF_BOB, to(["b", "a"], *FACTOR, "axes"), "must be sorted"),
    (OF_GROUP, to("day", "for"), "not a valid subject"),
    (OF_GROUP, to("analyst:", "for"), "printable"),
    (OF_GROUP, to("each_analyst:", "for"), "not a valid subject"),
    (OF_GROUP, to("hour", "window"), "'hour', but must be one of day"),
    (OF_GROUP, to("-1/2", "epsilon"), "below zero"),
    (SERVED, to(-1, *TALLY, "n_free"), "below 0"),
    (SERVED, to([0, 0, 0, 0], *TALLY, "widths"), "wrong number of widths"),
    (SERVED, to([0, 0, 0, 0, -1], *TALLY, "widths"), "a negative number of answers"),
    (SERVED, to("yesterday", "since"), "not a time of the form"),
    (SERVED, to("2026-02-30T00:00:00.000+00:00", "since"), "not a time of the form"),
    # access
    (GRANTED, to("king", "role"), "'king', but must be one of analyst"),
    (GRANTED, to("", "shown_as"), "anybody could use it"),
    (GRANTED, to(["b", "a"], "tables"), "must be sorted"),
    (GRANTED, to("word", "proof"), "'word', but must be one of"),
    (GRANTED, to({"stored_key": "ab" * 32}, "scram"), "server_key is missing"),
    (GRANTED, to({"stored_key": "ab" * 32, "server_key": "AB" * 32}, "scram"), "64 hexadecimal"),
    (GRANTED, to(None, "scram"), "but nothing was found"),
    (GRANTED, to("certificate", "proof"), "can have a password"),
    (REVOKED, to("b-9", "id"), "not in force"),
    (GRANTED_AGAIN, to("b-1", "id"), "issued before"),
]  # fmt: skip


def problem_of(entries: Sequence[Entry]) -> str:
    problem = verify(entries).problem
    assert problem is not None
    return problem


@pytest.mark.parametrize(("seq", "change", "said"), LIES)
def test_a_lie_is_found_at_its_entry_and_named(
    entries: tuple[Entry, ...], seq: int, change: Change, said: str
) -> None:
    problem = problem_of(rewritten(entries, seq, change))
    assert re.search(said if said.startswith("entry") else f"entry {seq}: .*{said}", problem)


def placed(entries: Sequence[Entry], place: int, *new: Entry) -> list[Entry]:
    """Entries in the place of one, all numbered and linked as they must be."""
    changed = [*entries[: place - 1], *new, *entries[place:]]
    return rechained([replace(one, seq=seq) for seq, one in enumerate(changed, start=1)])


def test_a_measurement_given_twice_is_found(entries: tuple[Entry, ...]) -> None:
    values = entries[VALUES - 1]
    assert "entry 11: the measurement belongs to 9" in problem_of(
        placed(entries, 10, values, values)
    )


def test_a_measurement_raised_twice_is_found(entries: tuple[Entry, ...]) -> None:
    body = json.loads(entries[RAISE - 1].body)
    body["units_before"], body["units_after"] = body["units_after"], body["units_after"] + UNITS
    again = replace(entries[RAISE - 1], body=canonical_json(body))
    assert "entry 16: a measurement was raised twice" in problem_of(
        placed(entries, RAISE, entries[RAISE - 1], again)
    )


def test_one_measurement_raised_twice_in_one_charge_is_found(entries: tuple[Entry, ...]) -> None:
    def twice(body: dict[str, Any]) -> None:
        body["blocks"] *= 2

    assert "entry 15: a measurement was raised twice" in problem_of(
        rewritten(entries, RAISE, twice)
    )


def test_a_measurement_before_its_charge_is_found(entries: tuple[Entry, ...]) -> None:
    swapped = [replace(entries[9], at=entries[8].at), entries[8]]
    assert "entry 9: the measurement belongs to 9" in problem_of(
        placed(placed(entries, 10), 9, *swapped)
    )


def test_time_that_goes_back_is_found(entries: tuple[Entry, ...]) -> None:
    back = replace(entries[13], at="2026-11-20T00:00:14.999+00:00")
    assert "entry 14: its time 2026-11-20T00:00:14.999+00:00 is earlier" in problem_of(
        placed(entries, 14, back)
    )


@pytest.mark.parametrize("at", ["", "yesterday", "2026-11-20T00:00:16.000Z", "2026-11-20"])
def test_a_time_of_another_form_is_found(entries: tuple[Entry, ...], at: str) -> None:
    assert "entry 14: its time is not a time of the form" in problem_of(
        placed(entries, 14, replace(entries[13], at=at))
    )


def test_the_window_of_a_limit_goes_by_the_time_of_the_entries(entries: tuple[Entry, ...]) -> None:
    """All of the second day moved to the evening of the first: bob's limit is for one day."""
    moved = [replace(one, at=one.at.replace("-21T00", "-20T23")) for one in entries]
    assert "entry 20: analyst:bob spends" in problem_of(rechained(moved))


@pytest.mark.parametrize(
    ("place", "kind", "table", "said"),
    [
        (17, "refund", "people", "the kind of entry 'refund' does not exist"),
        (17, "budget_set", "others", "must be opened once before"),
        (17, "budget_set", "", "must be opened once before"),
        (5, "access_granted", "people", "must not name a table"),
        (1, "table_opened", "", "needs a name"),
        (10, "measurement", "pets", "not a pending charge"),
    ],
)
def test_an_entry_of_another_kind_or_table_is_found(
    entries: tuple[Entry, ...], place: int, kind: str, table: str, said: str
) -> None:
    changed = replace(entries[place - 1], kind=kind, table=table)
    problem = problem_of(placed(entries, place, changed))
    assert problem.startswith(f"entry {place}: ")
    assert said in problem


def test_a_table_opened_again_is_found(entries: tuple[Entry, ...]) -> None:
    again = replace(entries[0], at=entries[3].at)
    assert "entry 5: the table was opened twice" in problem_of(
        placed(entries, 4, entries[3], again)
    )


def test_data_under_another_name_is_found(entries: tuple[Entry, ...]) -> None:
    again = replace(entries[0], at=entries[3].at, table="persons")
    assert "entry 5: the data already belongs to people" in problem_of(
        placed(entries, 4, entries[3], again)
    )


def test_a_credential_shown_as_another_is_found(entries: tuple[Entry, ...]) -> None:
    without_revocation = placed(entries, REVOKED)
    assert "entry 23: another credential in force" in problem_of(without_revocation)


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ('{"budget": "3/7"}', "canonical"),
        ('{"budget":"3/7","budget":"3/7"}', "canonical"),
        ('{"budget":"3\\u002f7"}', "canonical"),
        ('{"budget":"3/7"', "not JSON"),
        ("", "not JSON"),
        ("[" * 100_000, "not JSON"),
        ("NaN", "not JSON"),
        ("[]", "an object was expected, but a list"),
        ("null", "an object was expected, but nothing"),
        ('{"budget":"' + "9" * 5000 + '"}', "lowest terms"),
    ],
)
def test_a_body_that_is_not_the_canonical_text_of_an_object_is_found(
    entries: tuple[Entry, ...], body: str, said: str
) -> None:
    problem = problem_of(placed(entries, BUDGET, replace(entries[BUDGET - 1], body=body)))
    assert problem.startswith("entry 17: ")
    assert said in problem


def test_of_two_lies_the_first_is_named(entries: tuple[Entry, ...]) -> None:
    later = rewritten(entries, LATER_OF_BOB, to("", "analyst"))
    assert problem_of(later).startswith("entry 20: ")
    assert problem_of(rewritten(later, CHARGE, to(5, "units_after"))).startswith("entry 9: ")
    assert problem_of(rewritten(later, SERVED, to("", "since"))).startswith("entry 20: ")


@pytest.mark.parametrize(
    ("seq", "name", "units", "said"),
    [
        (
            BUDGET,
            "budget",
            5 * UNITS + 7,
            "entry 28: .*units are spent, more than the table's budget",
        ),
        (OPENED, "budget", 4 * UNITS, "entry 15: .*units are spent, more than the table's budget"),
        (OF_GROUP, "epsilon", 3 * UNITS, "entry 15: group:sales spends"),
        (OF_GROUP, "per_query", 2 * UNITS, "entry 9: .*limit of group:sales for one query"),
        (OF_EACH, "epsilon", UNITS + 7, "entry 28: analyst:bob spends"),
    ],
)
def test_what_may_be_spent_may_be_spent_to_the_last_unit_and_no_further(
    entries: tuple[Entry, ...], seq: int, name: str, units: int, said: str
) -> None:
    for missing in (Fraction(0), Fraction(1, 1000), Fraction(1)):
        allowed = (units - missing) / UNITS_PER_EPSILON
        problem = verify(rewritten(entries, seq, to(str(allowed), name))).problem
        assert (problem is None) == (missing == 0)
        assert problem is None or re.search(said, problem)


def test_sums_are_of_the_entries_before_the_lie(entries: tuple[Entry, ...]) -> None:
    for seq, change in (
        (LATER_OF_BOB, to("", "analyst")),
        (OF_BOB, to([3, 0, 3, 4], *FACTOR, "runs")),
    ):
        told = verify(rewritten(entries, seq, change))
        before = verify(entries[: seq - 1])
        assert before.problem is None
        assert (told.n_entries, told.head, told.at) == (seq - 1, before.head, before.at)
        assert told.tables == before.tables
