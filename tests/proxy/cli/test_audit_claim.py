"""`tacit audit claim`: the law of what was released, nothing bought, and the factors of epsilon."""

import io
import json
import math
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import pytest
import structlog

from proxy.api.requests import LOCAL, QueryRequest
from proxy.cli.audit import claim_fields, claim_told
from proxy.engine.engine import Engine
from proxy.monitoring.logs import configure_logs
from proxy.protocol import tacit_pb2
from tests.proxy.wire.test_private_history import EverybodyIs
from tests.support.commands import Run
from tests.support.private_history import EVE, world
from tests.support.serving import serving
from tests.support.worlds import people_engine, random_rows

OSLO = "city = 'Oslo'"
ASKED = "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(half_width => 30) COUNT(*) AS n FROM people"


@pytest.fixture
def engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Engine]:
    configure_logs(io.StringIO())
    with (
        people_engine(tmp_path, random_rows(400), budget=Fraction(3)) as engine,
        serving(engine) as address,
    ):
        monkeypatch.setenv("TACIT_SERVER", address)
        yield engine
    structlog.reset_defaults()


def claimed(run: Run, *arguments: str) -> dict[str, object]:
    ended = run("audit", "claim", *arguments, "--format", "json")
    assert ended.code == 0, ended.err
    return dict(json.loads(ended.out))


def spent(engine: Engine) -> float:
    return float(engine.budgets(LOCAL)[0].spent)


@pytest.mark.parametrize("offset", [-25.5, -3.0, 8.25, 40.0])
def test_it_is_the_tail_of_the_noise_of_what_was_released(
    run: Run, engine: Engine, offset: float
) -> None:
    """One count was released, with Laplace noise: the closed form, at several thresholds."""
    release = engine.answer(QueryRequest(sql=f"{ASKED} WHERE {OSLO}"))
    value = release.data["n"][0].as_py()
    paid = spent(engine)
    found = claimed(run, "people", f"COUNT(*) > {value + offset!r}", "--where", f"{OSLO} -- note")
    tail = math.exp(-abs(offset) / engine._tables["people"].history[0].noise_scale) / 2
    assert found["probability"] == pytest.approx(tail if offset > 0 else 1 - tail, abs=1e-4)
    assert found["epsilon_charged"] == 0
    assert found["epsilon_spent"] == paid == spent(engine)
    assert found["factor_for_a_row"] == pytest.approx(math.exp(paid))
    assert found["factor_for_a_changed_row"] == pytest.approx(math.exp(2 * paid))


def test_what_nobody_was_told_is_not_bought(run: Run, engine: Engine) -> None:
    found = claimed(run, "people", "COUNT(*) > 3")
    assert found["probability"] is None
    assert spent(engine) == 0
    shown = run("audit", "claim", "people", "COUNT(*) > 3")
    assert shown.out.startswith("people: COUNT(*) > 3\n")
    assert "determine no estimate" in shown.out
    assert "twice epsilon for a changed row" in " ".join(shown.out.split())


def test_wide_answers_count_as_they_are(run: Run, engine: Engine) -> None:
    """A target is not asked for: an answer that is wider than the table's default is used."""
    wide = ASKED.replace("30", "300")
    engine.answer(QueryRequest(sql=wide))
    found = claimed(run, "people", "COUNT(*) > -10000")
    assert found["probability"] == pytest.approx(1, abs=1e-9)


def test_it_prints_csv_and_sentences(run: Run, engine: Engine) -> None:
    engine.answer(QueryRequest(sql=ASKED))
    heading, row = run("audit", "claim", "people", "COUNT(*) > 9", "--format", "csv").out.split()
    assert dict(zip(heading.split(","), row.split(","), strict=True))["table"] == "people"
    assert (
        "By all released counts and sums together"
        in run("audit", "claim", "people", "COUNT(*) > 9").out
    )


@pytest.mark.parametrize(
    ("condition", "code"),
    [
        ("COUNT(*) > 1) AS a, (COUNT(*)", "invalid_request"),
        ("COUNT(*) = 3", "unsupported_sql"),
        ("nothing > 3", "unknown_name"),
        ("COUNT(DISTINCT city) > 3", "unsupported_sql"),
        ("COUNT(", "sql_syntax"),
    ],
)
def test_what_is_no_claim_is_refused_unpaid(
    run: Run, engine: Engine, condition: str, code: str
) -> None:
    ended = run("audit", "claim", "people", condition, "--format", "json")
    assert ended.code != 0
    assert json.loads(ended.err)["code"] == code
    assert spent(engine) == 0


def test_of_a_private_history_an_analyst_is_told_nothing(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same refusal, whatever others asked."""
    refused = set()
    for is_busy in (False, True):
        with (
            world(tmp_path / f"{is_busy}", is_busy=is_busy) as served,
            serving(served, authenticator=EverybodyIs(EVE)) as address,
        ):
            monkeypatch.setenv("TACIT_SERVER", address)
            ended = run("audit", "claim", "people", "COUNT(*) > 3")
            assert ended.code != 0
            refused.add(ended.err)
    assert len(refused) == 1


def test_of_a_budget_that_renews_the_sum_of_all_windows_counts() -> None:
    renewal = tacit_pb2.Renewal(window="year", epsilon_spent_in_all=400.0)
    budget = tacit_pb2.Budget(epsilon_spent=1.0, renewal=renewal)
    told = claim_fields(0.5, tacit_pb2.Receipt(table="t", budget=budget))
    assert told["epsilon_spent"] == 400.0
    assert told["factor_for_a_changed_row"] is None
    assert "no useful number" in claim_told("COUNT(*) > 3", told)
