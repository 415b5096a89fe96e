"""Marginals through `tacit.v1` and the command: messages, files, what people read."""

import csv
import io
import json
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import grpc
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import structlog

from proxy.api.requests import LOCAL
from proxy.cli import app as cli
from proxy.cli.marginals import parsed_sets
from proxy.engine.engine import Engine
from proxy.marginals.reconcile import MARGINALS_SCHEMA
from proxy.monitoring.logs import configure_logs
from proxy.protocol import tacit_pb2
from proxy.protocol.tacit_pb2_grpc import TacitStub
from proxy.shared.refusal_details import EPSILON_KEY
from tests.support.serving import serving
from tests.support.square_tables import square_engine
from tests.support.worlds import people_engine, random_rows

SIZES = {"a": 3, "b": 60}
COUNTS = np.random.default_rng(4).integers(0, 30, (3, 60))


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    with square_engine(tmp_path, SIZES, COUNTS) as opened:
        yield opened


@pytest.fixture(autouse=True)
def address(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    configure_logs(io.StringIO())  # a server's log is not what a command prints
    monkeypatch.setenv("COLUMNS", "200")
    with serving(engine) as served:
        monkeypatch.setenv("TACIT_SERVER", served)
        yield served
    structlog.reset_defaults()


@pytest.fixture
def stub(address: str) -> Iterator[TacitStub]:
    with grpc.insecure_channel(address) as channel:
        yield TacitStub(channel)


def request(*sets: list[str], **how: Any) -> tacit_pb2.MarginalsRequest:
    found = [tacit_pb2.AttributeSet(columns=one) for one in sets]
    return tacit_pb2.MarginalsRequest(table="rows", sets=found, **how)


def spent(engine: Engine) -> Fraction:
    return engine.budgets(LOCAL)[0].spent


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as ended:
        cli.main(("marginals", *arguments))
    captured = capsys.readouterr()
    return int(ended.value.code or 0), captured.out, captured.err


def test_steps_then_one_arrow_stream_then_what_it_cost(stub: TacitStub, engine: Engine) -> None:
    call = stub.Marginals(request(["a", "b"], ["a"], [], budget="0.5"))
    replies = list(call)
    assert [bool(reply.step) for reply in replies] == sorted(
        (bool(reply.step) for reply in replies), reverse=True
    )
    data = pa.ipc.open_stream(b"".join(reply.ipc for reply in replies)).read_all()
    assert data.schema.equals(MARGINALS_SCHEMA)
    assert data.num_rows == 180 + 3 + 1
    assert data["keys"].to_pylist()[61] == ["a1", "b1"]
    summary = replies[-1].summary
    assert summary.consistency == "exact"
    assert summary.epsilon_spent == float(spent(engine)) == summary.budget.epsilon_spent > 0
    assert dict(call.trailing_metadata())[EPSILON_KEY] == repr(summary.epsilon_spent)
    assert summary.misfit < 2


def test_importances_divide_the_budget(stub: TacitStub) -> None:
    sets = [
        tacit_pb2.AttributeSet(columns=["a"], importance=1000.0),
        tacit_pb2.AttributeSet(columns=["b"], importance=0.001),
    ]
    asked = tacit_pb2.MarginalsRequest(table="rows", sets=sets, budget="1", consistency="raw")
    data = pa.ipc.open_stream(b"".join(one.ipc for one in stub.Marginals(asked))).read_all()
    errors = {tuple(row["columns"]): row["standard_error"] for row in data.to_pylist()}
    assert errors["b",] > 10 * errors["a",]


@pytest.mark.parametrize(
    ("asked", "code"),
    [
        (request(["a"], budget="much"), "invalid_target"),
        (request(["a"], budget="1", consistency="perfect"), "invalid_target"),
        (request(["a"], budget="1", target=tacit_pb2.Target(half_width=3)), "invalid_target"),
        (request(["a"], target=tacit_pb2.Target(half_width=-3)), "invalid_target"),
        (request(["a"], target=tacit_pb2.Target(half_width=3, epsilon="0.001")), "cost_above_cap"),
        (request(budget="1"), "invalid_request"),
        (request(["z"], budget="1"), "unknown_name"),
        (tacit_pb2.MarginalsRequest(table="other"), "unknown_name"),
    ],
)
def test_what_is_wrong_has_a_code_and_charges_nothing(
    stub: TacitStub, engine: Engine, asked: tacit_pb2.MarginalsRequest, code: str
) -> None:
    with pytest.raises(grpc.RpcError, match=rf"\[{code}\]"):
        list(stub.Marginals(asked))
    assert spent(engine) == 0


def test_the_command_shows_a_table_for_each_set(
    engine: Engine, capsys: pytest.CaptureFixture[str]
) -> None:
    code, shown, _ = run(capsys, "rows", "--sets", "a,b; a; ()", "--epsilon", "0.5")
    assert code == 0
    for text in ("a x b", "total", "interval", "and 140 more; -o FILE", "b1", "measured"):
        assert text in shown
    assert f"epsilon spent {float(spent(engine)):.6g}" in shown
    _, again, _ = run(capsys, "rows", "--sets", "a,b; a; ()", "--epsilon", "0")
    assert "epsilon spent 0;" in again
    assert "history" in again


def test_the_command_writes_parquet_and_csv(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    whole = tmp_path / "m.parquet"
    code, shown, _ = run(capsys, "rows", "--sets", "a,b;a", "--half-width", "20", "-o", str(whole))
    assert code == 0
    assert "Wrote 183 rows" in shown
    written = pq.read_table(whole)
    assert written.num_rows == 183
    assert written.column_names == MARGINALS_SCHEMA.names
    text = tmp_path / "m.csv"
    consistency = ("--consistency", "nonnegative", "--total", str(COUNTS.sum()))
    code, shown, _ = run(
        capsys, "rows", "--sets", "a,b;a", "--epsilon", "0", *consistency, "-o", str(text)
    )
    assert code == 0
    assert "No cell has an interval" in shown
    rows = list(csv.DictReader(text.read_text().splitlines()))
    assert json.loads(rows[61]["keys"]) == ["a1", "b1"]
    assert rows[0]["low"] == ""
    assert sum(float(row["value"]) for row in rows[180:]) == pytest.approx(COUNTS.sum())


def test_a_file_that_cannot_be_written_is_told_before_anything_is_bought(
    engine: Engine, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("m.xlsx", "no/such/folder/m.csv"):
        asked = ("rows", "--sets", "a", "--epsilon", "1", "-o", str(tmp_path / name))
        code, _, told = run(capsys, *asked)
        assert code == 1
        assert "configuration_invalid" in told
    assert spent(engine) == 0


def test_a_refusal_is_a_line_with_its_code(capsys: pytest.CaptureFixture[str]) -> None:
    code, _, told = run(capsys, "rows", "--sets", "a;a", "--epsilon", "1")
    assert code == 2
    assert "error [invalid_request]: Two sets have the same columns." in told


def test_a_count_without_an_interval_is_shown_as_such(capsys: pytest.CaptureFixture[str]) -> None:
    options = "WITH DIFFERENTIAL_PRIVACY OPTIONS(consistency => 'nonnegative')"
    sql = f"SELECT {options} a, COUNT(*) AS n FROM rows GROUP BY ROLLUP(a)"  # noqa: S608 - a test's own text
    shown = {}
    for kind in ("table", "json", "csv"):
        with pytest.raises(SystemExit):
            cli.main(("query", sql, "--format", kind))
        shown[kind] = capsys.readouterr().out
    assert "none" in shown["table"]
    assert json.loads(shown["json"])["answers"][0]["low"] == [None] * 4
    assert all(line.endswith(",,") for line in shown["csv"].splitlines()[1:])


def test_levels_are_text_as_sql_shows_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "people"
    folder.mkdir()
    with people_engine(folder, random_rows(50)) as people, serving(people) as served:
        monkeypatch.setenv("TACIT_SERVER", served)
        _, shown, _ = run(capsys, "people", "--sets", "member,city", "--epsilon", "0.5")
    for text in ("true", "false", "NULL", "Oslo"):
        assert text in shown


def test_sets_are_read_with_any_spaces() -> None:
    assert parsed_sets(" a , b;;c; () ;") == [["a", "b"], ["c"], []]
