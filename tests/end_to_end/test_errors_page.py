"""The programs of docs/errors.md, run as they stand there against a real server."""

import json
import re
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import grpc
import pytest
from adbc_driver_flightsql import dbapi

from proxy.api.requests import LOCAL
from proxy.cli import app as cli
from proxy.engine.engine import Engine
from proxy.protocol import tacit_pb2
from proxy.protocol.tacit_pb2_grpc import TacitStub
from tests.support.serving import serving
from tests.support.worlds import people_engine, random_rows

PAGE = (Path(__file__).parents[2] / "docs" / "errors.md").read_text(encoding="utf-8")
GRPC, FLIGHT = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
(SHOWN,) = re.findall(r"```json\n(.*?)```", PAGE, re.DOTALL)
ROWS = random_rows(2000)
BUDGET = Fraction(1, 10)
COUNT = "SELECT COUNT(*) AS n FROM people"
TOO_NARROW = 5.0


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    with people_engine(tmp_path, ROWS, budget=BUDGET) as opened:
        yield opened


@pytest.fixture
def address(engine: Engine) -> Iterator[str]:
    with serving(engine) as found:
        yield found


def program(text: str) -> dict[str, Any]:
    names: dict[str, Any] = {}
    exec(compile(text, "docs/errors.md", "exec"), names)  # noqa: S102 - a page of this repository
    return names


def spent(engine: Engine) -> Fraction:
    return engine.budgets(LOCAL)[0].spent


def test_the_grpc_program_is_answered_within_budget(address: str, engine: Engine) -> None:
    with grpc.insecure_channel(address) as channel:
        replies = program(GRPC)["ask"](TacitStub(channel), COUNT, TOO_NARROW)
    (column,) = replies[-1].receipt.columns
    assert TOO_NARROW < (column.high[0] - column.low[0]) / 2 < 100
    assert BUDGET / 2 < spent(engine) <= BUDGET


def test_the_flight_program_is_answered_within_budget(address: str, engine: Engine) -> None:
    ask = program(FLIGHT)["ask"]
    with (
        dbapi.connect(f"grpc://{address}", autocommit=True) as connection,
        connection.cursor() as cursor,
    ):
        ((count,),) = ask(cursor, "COUNT(*) AS n FROM people", TOO_NARROW)
    assert abs(count - len(ROWS)) < 1000  # beyond it by chance less than once in 10**14
    assert BUDGET / 2 < spent(engine) <= BUDGET


@pytest.mark.parametrize(
    "asked", ["COUNT(*) FROM nobody", "COUNT(*) FROM people WHERE age >", "MAX(age) FROM people"]
)
def test_what_no_half_width_helps_against_is_raised_by_both(address: str, asked: str) -> None:
    with grpc.insecure_channel(address) as channel, pytest.raises(grpc.RpcError) as refused:
        program(GRPC)["ask"](TacitStub(channel), f"SELECT {asked}", 1.0)
    one = program(GRPC)["detail_of"](refused.value)
    with (
        dbapi.connect(f"grpc://{address}", autocommit=True) as connection,
        connection.cursor() as cursor,
        pytest.raises(dbapi.Error) as caught,
    ):
        program(FLIGHT)["ask"](cursor, asked, 1.0)
    other = program(FLIGHT)["detail_of"](caught.value)
    assert one.code == other.code
    assert one.position.line == other.position.line == 1


def test_what_the_command_prints_is_what_the_page_shows(
    address: str, engine: Engine, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["query", COUNT, "--half-width", "5", "--format", "json", "--server", address]
    with pytest.raises(SystemExit) as ended:
        cli.main(arguments)
    assert ended.value.code == 2
    printed = json.loads(capsys.readouterr().err.splitlines()[-1])
    assert printed == json.loads(SHOWN)
    assert spent(engine) == 0


def test_the_page_names_every_field() -> None:
    for message in (tacit_pb2.RefusalDetail, tacit_pb2.Shortfall, tacit_pb2.OfferedWidth):
        for name in message.DESCRIPTOR.fields_by_name:
            assert f"`{name}`" in PAGE
