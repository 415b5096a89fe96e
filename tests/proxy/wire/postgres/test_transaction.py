"""Transactions, as far as a server that changes nothing has them: settings, and refusals."""

from fractions import Fraction

import pytest

from planner.sql.statements import Savepoint, SavepointWord, TransactionWord
from proxy.wire.postgres.backend import Standing
from proxy.wire.postgres.client_settings import SessionSettings, Transaction, checked, milliseconds
from proxy.wire.postgres.sqlstates import StateError

BEGIN, COMMIT, ROLLBACK = TransactionWord.BEGIN, TransactionWord.COMMIT, TransactionWord.ROLLBACK
FIRST = SessionSettings(client=(("application_name", "a test"),))


def zone(name: str, transaction: Transaction, *, is_local: bool = False) -> None:
    transaction.change(lambda settings: settings.with_client("timezone", name), is_local=is_local)


def shown(transaction: Transaction) -> str | None:
    return dict(transaction.settings.client).get("timezone")


def test_what_is_set_lasts_unless_it_is_rolled_back() -> None:
    transaction = Transaction(FIRST)
    assert transaction.say(BEGIN) == ("BEGIN", None)
    zone("Europe/Oslo", transaction)
    assert transaction.say(COMMIT) == ("COMMIT", None)
    assert shown(transaction) == "Europe/Oslo"
    transaction.say(BEGIN)
    zone("Asia/Tokyo", transaction)
    assert transaction.say(ROLLBACK) == ("ROLLBACK", None)
    assert shown(transaction) == "Europe/Oslo"
    transaction.reset()
    assert transaction.settings == FIRST


def test_what_is_local_ends_with_the_transaction() -> None:
    transaction = Transaction(FIRST)
    transaction.say(BEGIN)
    zone("Europe/Oslo", transaction)
    zone("Asia/Tokyo", transaction, is_local=True)
    assert shown(transaction) == "Asia/Tokyo"
    transaction.say(COMMIT)
    assert shown(transaction) == "Europe/Oslo"
    zone("Asia/Tokyo", transaction, is_local=True)
    assert shown(transaction) == "Europe/Oslo", "outside of a transaction it does nothing"


def test_a_failed_transaction_takes_nothing_until_it_ends() -> None:
    transaction = Transaction(FIRST)
    transaction.say(BEGIN)
    zone("Europe/Oslo", transaction)
    transaction.fail()
    assert transaction.standing is Standing.FAILED
    with pytest.raises(StateError) as caught:
        transaction.check_usable()
    assert caught.value.sqlstate == "25P02"
    assert transaction.say(COMMIT) == ("ROLLBACK", None), "as PostgreSQL says it"
    assert shown(transaction) is None
    transaction.check_usable()
    transaction.fail()
    assert not transaction.is_open, "outside of one there is nothing to fail"


def test_savepoints_are_returned_to_and_released() -> None:
    transaction = Transaction(FIRST)
    transaction.say(BEGIN)
    transaction.savepoint(Savepoint(SavepointWord.SET, "a"))
    zone("Europe/Oslo", transaction)
    transaction.savepoint(Savepoint(SavepointWord.SET, "b"))
    transaction.fail()
    with pytest.raises(StateError):
        transaction.savepoint(Savepoint(SavepointWord.SET, "c"))
    assert transaction.savepoint(Savepoint(SavepointWord.ROLLBACK_TO, "a")) == "ROLLBACK"
    assert transaction.standing is Standing.OPEN
    assert shown(transaction) is None
    with pytest.raises(StateError) as caught:
        transaction.savepoint(Savepoint(SavepointWord.RELEASE, "b"))
    assert caught.value.sqlstate == "3B001"
    assert transaction.savepoint(Savepoint(SavepointWord.RELEASE, "a")) == "RELEASE"
    transaction.say(COMMIT)
    with pytest.raises(StateError) as caught:
        transaction.savepoint(Savepoint(SavepointWord.SET, "a"))
    assert caught.value.sqlstate == "25P01"


def test_beginning_twice_and_ending_twice_are_warnings() -> None:
    transaction = Transaction(FIRST)
    assert transaction.say(ROLLBACK)[1] is not None
    transaction.say(BEGIN)
    _, warning = transaction.say(BEGIN)
    assert warning is not None
    assert warning[0] == "25001"


@pytest.mark.parametrize(
    ("name", "value", "kept"),
    [
        ("client_encoding", "'utf-8'", "UTF8"),
        ("datestyle", "iso, dmy", "ISO, DMY"),
        ("datestyle", "ISO", "ISO, MDY"),
        ("timezone", "europe/oslo", "Europe/Oslo"),
        ("timezone", "+02", "<+02>-02"),
        ("timezone", "-3.5", "<-03:30>+03:30"),
        ("timezone", "INTERVAL +01:30 HOUR TO MINUTE", "<+01:30>-01:30"),
        ("timezone", "GMT-01:00", "GMT-01:00"),
        ("standard_conforming_strings", "on", "on"),
        ("standard_conforming_strings", "true", "on"),
        ("bytea_output", "escape", "escape"),
        ("intervalstyle", "ISO_8601", "iso_8601"),
        ("extra_float_digits", "-4", "-4"),
        ("search_path", '"$user", public', '"$user", public'),
        ("search_path", "", ""),
        ("jit", "of", "off"),
        ("row_security", "f", "off"),
        ("enable_seqscan", "0", "off"),
        ("work_mem", "64MB", "64MB"),
        ("synchronous_commit", "local", "local"),
        ("lock_timeout", "5s", "5s"),
        ("role", "NONE", "none"),
        ("session_replication_role", "origin", "origin"),
        ("application_name", "it's mine", "it's mine"),
        ("statement_timeout", "5s", "5s"),
    ],
)
def test_values_are_taken(name: str, value: str, kept: str) -> None:
    assert checked(name, value) == kept


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("client_encoding", "LATIN1"),
        ("datestyle", "German"),
        ("timezone", "Nowhere/Land"),
        ("standard_conforming_strings", "off"),
        ("bytea_output", "base64"),
        ("intervalstyle", "sql_standard"),
        ("extra_float_digits", "4"),
        ("search_path", "nowhere"),
        ("search_path", "data_privacy, public"),
        ("timezone", "25"),
        ("jit", "perhaps"),
        ("work_mem", "much"),
        ("plan_cache_mode", "best"),
        ("transform_null_equals", "on"),
        ("session_replication_role", "replica"),
        ("lc_monetary", "de_DE.UTF-8"),
        ("statement_timeout", "soon"),
        ("application_name", "x" * 2000),
    ],
)
def test_values_that_would_change_how_answers_are_written_are_refused(
    name: str, value: str
) -> None:
    with pytest.raises(StateError) as caught:
        checked(name, value)
    assert caught.value.sqlstate == "22023"
    assert caught.value.hint


def test_nobody_becomes_somebody_else() -> None:
    with pytest.raises(StateError) as caught:
        checked("role", "owner")
    assert caught.value.sqlstate == "42501"


def test_durations_are_those_of_postgresql() -> None:
    texts = {"0": 0, "5000": 5000, "5s": 5000, "1min": 60_000, "250 ms": 250, "2h": 7_200_000}
    assert {text: milliseconds(text) for text in texts} == texts
    assert Fraction(milliseconds("1us")).limit_denominator(1000) == Fraction(1, 1000)
