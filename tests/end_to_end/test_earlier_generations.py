"""What was asked of data that was replaced since: `AS OF` a day of its own, and nothing else."""

from dataclasses import replace
from pathlib import Path

import pytest

from accountant.ledger import ledger as ledgers
from accountant.ledger.credentials import Role
from cube.refusals import (
    GenerationOver,
    InvalidRequest,
    OutsideDomain,
    TargetNotReached,
    UnknownName,
    UnsupportedSql,
)
from planner.workload import Fallback, RequestedTarget
from proxy.api.requests import LOCAL, BatchRequest, QueryRequest
from tests.support.renewed_customers import (
    AFTER,
    BEFORE,
    BY_CITY,
    CONFIG,
    PRECISE,
    ask,
    check_ledger,
    counts,
    follow,
    renew,
    served,
    write,
)

FIRST, SECOND, THIRD = "2026-08-03", "2026-09-10", "2026-10-02"
AS_OF = "SELECT city, COUNT(*) AS n FROM customers AS OF '{}' GROUP BY city"
AND_NOW = (
    "SELECT (SELECT COUNT(*) FROM customers) "
    "- (SELECT COUNT(*) FROM customers AS OF '{}') AS difference"
)
FINALLY = {"Oslo": 10, "Bergen": 90}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write(tmp_path, BEFORE)
    (tmp_path / "tacit.toml").write_text(CONFIG)
    return tmp_path


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The day of the ledger's clock, which a test turns."""
    day = [FIRST]
    monkeypatch.setattr(ledgers, "utc_now", lambda: f"{day[0]}T09:00:00.000+00:00")
    return day


@pytest.fixture
def renewed(folder: Path, clock: list[str], capsys: pytest.CaptureFixture[str]) -> Path:
    """Three generations; of the first and the third the counts are known."""
    with served(folder) as service:
        ask(service)
        ask(service, "SELECT AVG(age) AS a FROM customers", RequestedTarget(half_width=3))
    clock[0] = SECOND
    renew(folder)
    clock[0] = THIRD
    renew(folder, FINALLY)
    with served(folder) as service:
        ask(service)
    capsys.readouterr()
    return folder


@pytest.mark.parametrize(
    ("day", "right"),
    [
        (FIRST, BEFORE),
        ("2026-09-09", BEFORE),
        ("2026-09-10T08:59", BEFORE),
        (THIRD, FINALLY),
        ("2026-11-01", FINALLY),
    ],
)
def test_an_earlier_generation_answers_as_of_a_day_of_its_own(
    renewed: Path, day: str, right: dict[str, int]
) -> None:
    with served(renewed) as service:
        before = service.budgets()[0].spent
        ask(service, "EXPLAIN " + AS_OF.format(day))
        for found in (
            ask(service, AS_OF.format(day)),
            ask(service, target=replace(PRECISE, as_of=day)),
        ):
            assert counts(found.data) == right
            assert found.receipt is not None
            assert found.receipt.epsilon_spent == 0
            is_over = right == BEFORE
            note = "customers, generation 1: its data was replaced on 2026-09-10."
            assert (note in found.receipt.notes) == is_over
            assert found.receipt.table == ("customers, generation 1" if is_over else "customers")
        if right == BEFORE:
            then = AND_NOW.format(day)
            difference = ask(service, then, RequestedTarget(half_width=5))
            assert round(difference.data.column(0)[0].as_py()) == 20
        assert service.budgets()[0].spent == before
        service.write_usage()  # under the name that the ledger knows
    check_ledger(renewed, 3)


def test_what_was_not_asked_then_is_refused_with_what_would_be_free(renewed: Path) -> None:
    with served(renewed) as service:
        before = service.budgets()[0]
        average = "SELECT AVG(age) AS a FROM customers AS OF '2026-08-03'"
        ask(service, average, RequestedTarget(half_width=3))
        for sql, target in (
            (average, RequestedTarget(half_width=0.01)),
            (AS_OF.format(FIRST), RequestedTarget(half_width=0.01)),
            ("SELECT COUNT(*) FROM customers AS OF '2026-08-03' WHERE age = 7", PRECISE),
            (AS_OF.format(SECOND), RequestedTarget(half_width=50)),  # nothing was asked of it
        ):
            for asked in (sql, f"EXPLAIN {sql}"):
                with pytest.raises((GenerationOver, TargetNotReached)) as refused:
                    ask(service, asked, target)
                assert "was replaced" in refused.value.message
        with pytest.raises(GenerationOver) as refused:
            ask(service, AS_OF.format(FIRST), RequestedTarget(half_width=0.01))
        assert "Free right now: half_width 0." in (refused.value.hint or "")
        fallen = ask(
            service,
            AS_OF.format(FIRST),
            replace(PRECISE, half_width=0.01, fallback=Fallback.HISTORY),
        )
        assert counts(fallen.data) == BEFORE
        assert service.budgets()[0] == before
    check_ledger(renewed, 3)


def test_days_on_which_there_was_no_such_table_are_refused(renewed: Path) -> None:
    with served(renewed) as service:
        for moment, error, says in (
            ("2026-08-02", OutsideDomain, "served since 2026-08-03"),
            ("2999-01-01", OutsideDomain, "in the future"),
            ("soon", UnsupportedSql, "not a date"),
        ):
            with pytest.raises(error, match=says):
                ask(service, AS_OF.format(moment))
        with pytest.raises(OutsideDomain, match=r"tacit\.as_of = 7 is not a date"):
            ask(service, target=replace(PRECISE, as_of="7"))
        with pytest.raises(UnknownName):
            ask(service, 'SELECT COUNT(*) FROM "customers, generation 1"')
        with pytest.raises(InvalidRequest, match="was replaced"):
            service.engine.plan_batch(
                BatchRequest(sql=AS_OF.format(FIRST), caller=LOCAL, target=PRECISE, buy=False)
            )
    assert "generation" not in str([one.schema.table for one in service.engine.tables(LOCAL)])


def test_analysts_who_do_not_see_a_history_are_not_answered_from_an_earlier_one(
    renewed: Path,
) -> None:
    config = renewed / "tacit.toml"
    config.write_text(CONFIG.replace("half_width = 2", 'half_width = 2\nhistory = "private"'))
    analyst = replace(LOCAL, role=Role.ANALYST)
    with served(renewed) as service:
        request = QueryRequest(sql=AS_OF.format(FIRST), caller=LOCAL, target=PRECISE)
        assert counts(service.engine.answer(request).data) == BEFORE
        with pytest.raises(OutsideDomain, match="served since 2026-10-02"):
            service.engine.answer(replace(request, caller=analyst))
        of_session = QueryRequest(sql=BY_CITY, caller=analyst, target=replace(PRECISE, as_of=FIRST))
        with pytest.raises(OutsideDomain, match="served since 2026-10-02"):
            service.engine.answer(of_session)  # and not as if nothing had been said


def test_a_running_server_has_earlier_answers_as_soon_as_a_generation_begins(
    folder: Path, clock: list[str]
) -> None:
    with served(folder) as service:
        ask(service)
        with pytest.raises(UnsupportedSql, match="does not grow"):
            ask(service, AS_OF.format(FIRST))
        clock[0] = SECOND
        renew(folder)
        service.ledger.refresh()  # and the new data is not read
        assert counts(ask(service, AS_OF.format(FIRST)).data) == BEFORE
        follow(service)
        assert counts(ask(service).data) == AFTER
        assert counts(ask(service, AS_OF.format(FIRST)).data) == BEFORE
        assert counts(ask(service, AS_OF.format(SECOND)).data) == AFTER
