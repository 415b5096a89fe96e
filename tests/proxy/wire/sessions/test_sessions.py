"""Sessions: how long a setting lasts, what shows it, and which of several wishes counts."""

import re
from collections.abc import Iterable
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from accountant.ledger.limits import Payer
from cube.refusals import InvalidTarget, Refused, TooLarge, UnknownName, UnsupportedSql
from planner.sql.settings import CLIENT_SETTINGS, SETTING_NAMES, SetSetting
from planner.sql.statements import DiscardAll, TransactionWord
from planner.sql.words import FILE, N_SETTINGS_MAX
from planner.workload import RequestedTarget
from proxy.api.requests import LOCAL, Caller
from proxy.identity.interceptor import note_caller
from proxy.wire.sessions.sessions import (
    HEADERS,
    IDLE_SECONDS_MAX,
    N_SESSIONS_MAX,
    SET_SCHEMA,
    Sessions,
    StatementInSession,
    about_session,
    header_target,
)

HALF = SetSetting("half_width", Fraction(50))
DOCUMENT = (Path(__file__).parents[4] / "docs" / "sessions.md").read_text()


class Call:
    """The part of a gRPC call's context that a session is found by."""

    def __init__(
        self, peer: str, metadata: Iterable[tuple[str, str]] = (), caller: Caller = LOCAL
    ) -> None:
        self._peer = peer
        self._metadata = tuple(metadata)
        context: Any = self
        note_caller(context, caller)

    def peer(self) -> str:
        return self._peer

    def invocation_metadata(self) -> tuple[tuple[str, str], ...]:
        return self._metadata


def run(sessions: Sessions, sql: str, peer: str = "a", **headers: str) -> StatementInSession:
    metadata = [(name.replace("_", "-"), value) for name, value in headers.items()]
    call: Any = Call(peer, metadata)
    return sessions.run(sql, call)


def test_a_setting_lasts_until_it_is_set_again_or_reset() -> None:
    sessions = Sessions()
    assert run(sessions, "SET tacit.half_width = 50").target == RequestedTarget(half_width=50.0)
    both = run(sessions, "SET tacit.epsilon = 0.1").target
    assert both == RequestedTarget(half_width=50.0, epsilon_cap=Fraction(1, 10))
    assert run(sessions, "SELECT 1").target == both
    assert run(sessions, "SELECT 1", peer="b").target == RequestedTarget()
    assert run(sessions, "RESET tacit.half_width; SELECT 1").target.half_width is None
    run(sessions, "RESET ALL")
    assert run(sessions, "SELECT 1").target == RequestedTarget()
    assert len(sessions) == 0


def test_two_analysts_at_one_address_have_two_sessions() -> None:
    sessions = Sessions()
    run(sessions, "SET tacit.half_width = 50")
    other: Any = Call("a", caller=replace(LOCAL, payer=Payer("another")))
    assert sessions.run("SELECT 1", other).target == RequestedTarget()
    sessions.close(other)
    assert run(sessions, "SELECT 1").target.half_width == 50.0


def test_settings_ahead_of_a_statement_hold_for_it_and_afterwards() -> None:
    sessions = Sessions()
    first = run(sessions, "SET tacit.half_width = 50; SET tacit.confidence = 0.9; SELECT 1")
    assert first.sql == "SELECT 1"
    assert first.reply is None
    assert first.target == RequestedTarget(half_width=50.0, confidence=0.9)
    assert run(sessions, "SELECT 2").target == first.target


@pytest.mark.parametrize(
    "sql",
    [
        "SET tacit.half_width = 5; SET tacit.confidence = 2",
        "SET tacit.half_width = 5; SET tacit.nothing = 2",
        "SET tacit.half_width = -5",
        "SET tacit.half_width = 0",
        "SET tacit.epsilon = -0.1",
        "SET tacit.confidence = 1",
    ],
)
def test_nothing_of_a_refused_text_is_kept(sql: str) -> None:
    sessions = Sessions()
    with pytest.raises(Refused):
        run(sessions, sql)
    assert run(sessions, "SELECT 1").target == RequestedTarget()


def test_looking_ahead_keeps_nothing() -> None:
    sessions = Sessions()
    call: Any = Call("a")
    assert sessions.preview("SET tacit.half_width = 5; SELECT 1", call).target.half_width == 5.0
    assert run(sessions, "SELECT 1").target == RequestedTarget()


def test_setting_answers_no_rows_and_showing_answers_one() -> None:
    sessions = Sessions()
    reply = run(sessions, "SET tacit.half_width = 50").reply
    assert reply is not None
    assert reply.equals(SET_SCHEMA.empty_table())
    for sql, shown in (
        ("SHOW tacit.half_width", {"tacit.half_width": "50"}),
        ("SHOW tacit.confidence", {"tacit.confidence": None}),
        ("SHOW TACIT.epsilon", {"tacit.epsilon": None}),
    ):
        reply = run(sessions, sql).reply
        assert reply is not None
        assert reply.to_pylist() == [shown]


@given(
    value=st.decimals(min_value="1e-9", max_value="1e9", allow_nan=False, places=9).filter(bool),
    name=st.sampled_from(["half_width", "epsilon"]),
)
def test_what_is_shown_can_be_set_again_and_means_the_same(value: object, name: str) -> None:
    sessions = Sessions()
    run(sessions, f"SET tacit.{name} = {value}")
    before = run(sessions, "SELECT 1").target
    reply = run(sessions, f"SHOW tacit.{name}").reply
    assert reply is not None
    (shown,) = reply[f"tacit.{name}"].to_pylist()
    assert re.fullmatch(r"[0-9]+(\.[0-9]*[1-9])?", shown)
    run(sessions, f"SET tacit.{name} = {shown}")
    assert run(sessions, "SELECT 1").target == before


def test_only_so_many_sessions_are_held_and_the_longest_unused_goes_first() -> None:
    sessions = Sessions()
    for number in range(N_SESSIONS_MAX):
        run(sessions, "SET tacit.half_width = 50", peer=str(number))
    run(sessions, "SELECT 1", peer="0")  # so that session 1 is the longest unused
    run(sessions, "SET tacit.half_width = 50", peer="one more")
    assert len(sessions) == N_SESSIONS_MAX
    assert run(sessions, "SELECT 1", peer="0").target.half_width == 50.0
    assert run(sessions, "SELECT 1", peer="1").target.half_width is None


def test_whoever_gets_an_old_address_does_not_get_its_settings() -> None:
    now = [0.0]
    sessions = Sessions(clock=lambda: now[0])
    run(sessions, "SET tacit.half_width = 50")
    now[0] += IDLE_SECONDS_MAX
    assert run(sessions, "SELECT 1").target.half_width == 50.0
    now[0] += IDLE_SECONDS_MAX + 1
    assert run(sessions, "SELECT 1").target.half_width is None


def test_a_header_goes_before_the_session_and_is_not_kept() -> None:
    sessions = Sessions()
    run(sessions, "SET tacit.half_width = 50; SET tacit.confidence = 0.9")
    once = run(sessions, "SELECT 1", tacit_half_width="7", tacit_epsilon="0.25").target
    assert once == RequestedTarget(half_width=7.0, confidence=0.9, epsilon_cap=Fraction(1, 4))
    assert run(sessions, "SELECT 1").target == RequestedTarget(half_width=50.0, confidence=0.9)


def test_other_headers_mean_nothing() -> None:
    assert header_target([("user-agent", "x"), ("tacit", "1"), ("authorization", "y")]) == (
        RequestedTarget()
    )


@pytest.mark.parametrize(
    ("metadata", "says"),
    [
        ([("tacit-half-width", "wide")], "The header tacit-half-width must be a decimal number"),
        ([("tacit-half-width", "")], "The header tacit-half-width"),
        ([("tacit-half-width", "0")], "The header tacit-half-width: half_width must be"),
        ([("tacit-confidence", "95")], "The header tacit-confidence: confidence must"),
        ([("tacit-epsilon", "-1")], "The header tacit-epsilon: epsilon"),
        ([("tacit-epsilon", "nan")], "The header tacit-epsilon"),
        ([("tacit-halfwidth", "5")], "Did you mean 'tacit-half-width'"),
        ([("tacit-epsilon", "1"), ("tacit-epsilon", "2")], "tacit-epsilon is given twice"),
    ],
)
def test_a_malformed_header_is_refused_by_its_name(
    metadata: list[tuple[str, str]], says: str
) -> None:
    with pytest.raises(InvalidTarget) as caught:
        header_target(metadata)
    assert says in caught.value.explain()


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT COUNT(*) FROM people",
        "  SELECT ';' -- SET tacit.half_width = 1",
        "EXPLAIN PRIVACY SELECT 1",
        "CREATE SYNTHETIC TABLE s FROM people",
        "SELECT version()",
        "",
        ";",
        "/* /* SET */ SET tacit.half_width = 50 */",
    ],
)
def test_anything_else_is_left_as_it_was_written(statement: str) -> None:
    assert about_session(statement) == ((), statement)
    if statement.strip("; ") and not statement.startswith("/*"):
        assert about_session(f"SET tacit.half_width = 50; {statement}") == (
            (HALF,),
            statement.lstrip(),
        )


@pytest.mark.parametrize(
    ("sql", "refusal", "says"),
    [
        ("SHOW tacit.epsilon; SELECT 1", UnsupportedSql, "SHOW is answered alone"),
        ("SET tacit.epsilon = 1; SHOW tacit.epsilon", UnsupportedSql, "SHOW is answered alone"),
        ("SHOW search_path; SHOW tacit.epsilon", UnsupportedSql, "SHOW is answered alone"),
        (
            "SELECT 1; SET tacit.half_width = 50",
            UnsupportedSql,
            "Only one statement may be sent at a time",
        ),
        (
            "BEGIN; SELECT 1; SELECT 2; COMMIT",
            UnsupportedSql,
            "Only one statement may be sent at a time",
        ),
        ("SET tacit.epsilon = 1;" * (N_SETTINGS_MAX + 2), TooLarge, "settings"),
    ],
)
def test_what_cannot_be_answered_together_is_refused(
    sql: str, refusal: type[Refused], says: str
) -> None:
    sessions = Sessions()
    with pytest.raises(refusal) as caught:
        run(sessions, sql)
    assert says in caught.value.explain()
    assert len(sessions) == 0


def test_a_file_of_statements_may_follow_settings() -> None:
    sql = "SET tacit.half_width = 50; SELECT 1; SELECT 2"
    assert about_session(sql, FILE) == ((HALF,), "SELECT 1; SELECT 2")
    call: Any = Call("a")
    assert Sessions().preview(sql, call, FILE).sql == "SELECT 1; SELECT 2"


@pytest.mark.parametrize(
    "sql", ["BEGIN", "START TRANSACTION READ ONLY", "COMMIT", "ROLLBACK", "END; BEGIN"]
)
def test_transactions_are_accepted_and_change_nothing(sql: str) -> None:
    sessions = Sessions()
    before = run(sessions, "SET tacit.half_width = 50").target
    reply = run(sessions, sql).reply
    assert reply is not None
    assert reply.equals(SET_SCHEMA.empty_table())
    assert run(sessions, f"{sql}; SELECT 1").target == before


def test_discarding_everything_resets_every_setting() -> None:
    sessions = Sessions()
    run(sessions, "SET tacit.half_width = 50; SET tacit.epsilon = 1")
    reply = run(sessions, "DISCARD ALL").reply
    assert reply is not None
    assert reply.num_rows == 0
    assert run(sessions, "SELECT 1").target == RequestedTarget()
    assert len(sessions) == 0


@given(st.text(alphabet="sSeEtT .;=-/*'\"$0159\\tacithlfwd_\n", max_size=60))
@example("set" + "/*" * 30)
def test_any_text_at_all_is_read_or_refused(tail: str) -> None:
    for sql in (tail, f"SET {tail}", f"SET tacit.half_width = 5;{tail}"):
        try:
            commands, rest = about_session(sql)
        except Refused:
            continue
        assert sql.endswith(rest)
        assert commands or rest == sql


@given(st.lists(st.sampled_from(["/*a*/", "-- b\n", " ", "/* * / */", "/*", "*/"]), max_size=3000))
def test_long_runs_of_comments_are_read_once(gaps: list[str]) -> None:
    sql = "".join(gaps) + "SELECT 1"
    try:
        commands, rest = about_session(sql)
    except Refused:
        return
    assert (commands, rest) == ((), sql)


def test_what_is_ignored_is_documented_and_nothing_else_is() -> None:
    (paragraph,) = re.findall(r"and\nchange no answer: (.*?)\.\nEvery other", DOCUMENT, re.DOTALL)
    assert {name.lower() for name in re.findall(r"`([^`]+)`", paragraph)} == CLIENT_SETTINGS
    for name, header in zip(SETTING_NAMES, HEADERS, strict=True):
        assert f"| `tacit.{name}` | `{header}` |" in DOCUMENT


def test_what_is_said_of_transactions_is_documented() -> None:
    (paragraph,) = re.findall(r"## Transactions\n(.*?)\n## ", DOCUMENT, re.DOTALL)
    named = set(re.findall(r"`([^`]+)`", paragraph))
    assert {word.value for word in TransactionWord} <= named
    for sql in named - {"SET", "SET LOCAL", "RESET ALL"}:
        (command,), rest = about_session(sql)
        assert isinstance(command, TransactionWord | DiscardAll)
        assert rest == ""


def shown(sql: str) -> list[dict[str, str | None]]:
    reply = run(Sessions(), sql).reply
    assert reply is not None
    rows: list[dict[str, str | None]] = reply.to_pylist()
    return rows


def test_what_clients_ask_about_has_a_value() -> None:
    assert shown("SHOW server_version") == [{"server_version": "15.0"}]
    assert shown("SHOW transaction_isolation") == [{"transaction_isolation": "read committed"}]
    assert shown("SHOW TRANSACTION ISOLATION LEVEL") == [{"transaction": "read committed"}]
    assert shown("SHOW TIME ZONE") == [{"time_zone": "UTC"}]
    every = {row["name"]: row["setting"] for row in shown("SHOW ALL")}
    assert every["tacit.half_width"] is None
    assert every["search_path"] == "public"
    assert {"SET", "server_version"} - every.keys() == {"SET"}


def test_what_cannot_be_set_is_refused() -> None:
    with pytest.raises(UnknownName):
        about_session("SET server_version = '9'")


def test_what_lasts_for_a_transaction_is_refused_where_there_are_none() -> None:
    for sql in ("SET LOCAL tacit.epsilon = 1", "SET LOCAL timezone = 'UTC'"):
        with pytest.raises(UnsupportedSql, match="there are none here"):
            run(Sessions(), sql)


def test_a_commit_behind_a_statement_is_left_out() -> None:
    commands, rest = about_session("BEGIN; SELECT 1; COMMIT;")
    assert commands == (TransactionWord.BEGIN,)
    assert rest.rstrip("; ") == "SELECT 1"
    assert about_session("SELECT 1; COMMIT")[1].rstrip("; ") == "SELECT 1"
