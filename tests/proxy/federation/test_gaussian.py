"""Three hospitals that offer a delta, on real servers: SQL, synthetic tables, refusals."""

from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from accountant.auditor.compare import compared
from accountant.auditor.verify import verify
from accountant.gate import Asked, Told
from accountant.gate.asked import AskedRows
from accountant.ledger import ChargedBlock
from accountant.noise import GaussianNoise
from cube.measurement import Precision
from cube.query import Partition, QueryBlock, counting
from cube.refusals import InvalidRequest, SourceUnavailable
from proxy.bootstrap import Service
from proxy.protocol import tacit_pb2
from proxy.protocol.tacit_pb2_grpc import FederationStub
from tests.proxy.federation.test_coordinator import coordinating
from tests.proxy.federation.test_holder import shown, state
from tests.support.configured import answer, ask, spent
from tests.support.hospitals import Hospital, columns, coordinates, hospitals
from tests.support.identities import refusal, soon

DELTA = 'delta = "1e-9"\nexpected_epsilon = "4"\n'
OFFERED = columns(more=DELTA)
CELLS = "SELECT sex, ward, COUNT(*) AS n FROM patients GROUP BY sex, ward ORDER BY sex, ward"
SYNTHETIC = "CREATE SYNTHETIC TABLE made_up FROM patients WITH (epsilon => 3, delta => 1e-9)"
EACH = 150  # of 1500 patients in ten cells


@pytest.fixture
def three(tmp_path: Path) -> Iterator[list[Hospital]]:
    with hospitals(tmp_path, OFFERED, north=700, south=500, west=300) as found:
        yield found


def assert_all_agree(service: Service, of: list[Hospital]) -> None:
    held = {one.name: list(one.service.ledger.entries()) for one in of}
    entries = list(service.ledger.entries())
    for ledger in (entries, *held.values()):
        assert verify(ledger, has_columns=True).problem is None
    assert not compared(entries, held).problems


def test_answers_are_near_and_free_again_and_a_restart_goes_on(
    three: list[Hospital], tmp_path: Path
) -> None:
    """Of ten half-widths of 60 at 95 %, one is missed by twice as much once in 10**3 runs."""
    text = coordinates(three, declared=OFFERED)
    with coordinating(tmp_path, text) as service:
        explained = ask(service, f"EXPLAIN PRIVACY {CELLS}")
        (chosen,) = [row for row in explained if row["chosen"]]
        assert chosen["noise"] == "gaussian"
        found = answer(service, CELLS)
        assert found.receipt is not None
        assert float(found.receipt.epsilon_spent) == pytest.approx(chosen["epsilon"])
        (column,) = found.receipt.columns
        assert column.source == "measured"
        rows = found.data.to_pylist()
        for row, low, high in zip(rows, column.low, column.high, strict=True):
            assert low < row["n"] < high
            assert high - low == pytest.approx(120, abs=1e-3)
            assert abs(row["n"] - EACH) < 120
        paid = [one.spent() for one in three]
        assert set(paid) == {spent(service)}  # on the same terms, each pays the same
        assert_all_agree(service, three)
    three[1].stop()
    with coordinating(tmp_path, text) as service:
        assert ask(service, CELLS) == rows
        with pytest.raises(SourceUnavailable, match="south"):
            ask(service, CELLS, half_width=25)
        three[1].start()
        assert soon(lambda: narrowed(service))
        history = ask(service, "SELECT noise, superseded FROM data_privacy.history")
        assert {row["noise"] for row in history} == {"gaussian"}
        assert any(row["superseded"] for row in history)
        assert max(one.spent() for one in three) > max(paid)
        assert_all_agree(service, three)


def narrowed(service: Service) -> bool:
    try:
        return len(ask(service, CELLS, half_width=25)) == 10
    except SourceUnavailable:
        return False


def test_a_synthetic_table_costs_no_holder_more_than_it_says(
    three: list[Hospital], tmp_path: Path
) -> None:
    """Of 1500 rows in ten cells; noise of each cell has a deviation below 10."""
    with coordinating(tmp_path, coordinates(three, declared=OFFERED)) as service:
        steps = ask(service, f"EXPLAIN PRIVACY {SYNTHETIC}")
        assert sum(row["epsilon"] for row in steps) == pytest.approx(3)
        ask(service, SYNTHETIC)
        assert Fraction(29, 10) < spent(service) <= 3
        for one in three:
            assert Fraction(29, 10) < one.spent() <= spent(service)
        found = ask(service, CELLS.replace("FROM patients", "FROM made_up"))
        assert all(abs(row["n"] - EACH) < 75 for row in found)
        cheap = answer(service, CELLS)  # what it counted answers most of it
        assert cheap.receipt is not None
        assert cheap.receipt.epsilon_spent < Fraction(1, 50)
        assert_all_agree(service, three)


def test_a_first_synthetic_table_for_less_than_the_terms_cost_is_refused(
    three: list[Hospital], tmp_path: Path
) -> None:
    with coordinating(tmp_path, coordinates(three, declared=OFFERED)) as service:
        with pytest.raises(InvalidRequest, match="first Gaussian noise of patients costs"):
            ask(service, SYNTHETIC.replace("=> 3", "=> 1"))
        assert [one.spent() for one in three] == [0, 0, 0]


@pytest.mark.parametrize("sql", [CELLS, SYNTHETIC])
def test_a_holder_without_a_delta_is_named(three: list[Hospital], tmp_path: Path, sql: str) -> None:
    south = three[1]
    south.stop()
    south.declare(columns())
    south.start()
    with coordinating(tmp_path, coordinates(three, declared=OFFERED)) as service:
        with pytest.raises(InvalidRequest, match=r"holder south of patients .* declare a delta"):
            ask(service, sql)
        assert [one.spent() for one in three] == [0, 0, 0]
        assert spent(service) == 0
        south.stop()
        south.declare(OFFERED)
        south.start()
        assert soon(lambda: answered(service, sql))
        assert_all_agree(service, three)


def answered(service: Service, sql: str) -> bool:
    try:
        return bool(ask(service, sql))
    except SourceUnavailable:
        return False


def test_another_delta_at_a_holder_is_its_own_promise(
    three: list[Hospital], tmp_path: Path
) -> None:
    """Each ledger accounts for the same noise on its own terms."""
    three[2].stop()
    three[2].declare(columns(more='delta = "1e-6"\nexpected_epsilon = "2"\n'))
    three[2].start()
    with coordinating(tmp_path, coordinates(three, declared=OFFERED)) as service:
        ask(service, CELLS)
        assert three[0].spent() == three[1].spent() == spent(service) != three[2].spent()
        (verdict,) = verify(three[2].service.ledger.entries()).tables
        assert verdict.delta == Fraction(1, 10**6)
        (verdict,) = verify(service.ledger.entries()).tables
        assert verdict.delta == Fraction(1, 10**9)
        assert_all_agree(service, three)


def test_a_hostile_request_charges_nothing(three: list[Hospital]) -> None:
    north, honest = three[0], GaussianNoise.for_precision(Precision.at_least(Fraction(1, 100)))
    wards = QueryBlock(counting(), Partition(("ward",), np.arange(5)))
    asked = Asked("r1", state(north), (AskedRows(ChargedBlock(wards, honest)),)).text
    scale = honest.noise_scale
    with north.channel() as channel:
        stub = FederationStub(channel)

        def call(text: str) -> str:
            request = tacit_pb2.ForLedgerRequest(table="patients", asked=text)
            told: str = stub.MeasureForLedger(request, metadata=shown(north)).told
            return told

        for factor in (0.5, 1 - 2**-40, 1 + 2**-40, 2.0):
            text = asked.replace(scale.hex(), (scale * factor).hex())
            assert text != asked
            code, _ = refusal(lambda: call(text))  # noqa: B023 - called here
            assert code.name == "INVALID_ARGUMENT"
        assert north.spent() == 0
        told = Told.read(call(asked))
        assert len(told.values[0]) == 5
        assert told == Told.read(call(asked))


def grows(through: int) -> str:
    growing = f'grows = {{axis = "ward", closed_through = {through}}}\n'
    return columns(more=DELTA + growing)


def test_tables_that_grow_have_gaussian_noise(tmp_path: Path) -> None:
    """Their openings name no holders, so distances of all holders add up at the coordinator."""
    with (
        hospitals(tmp_path, grows(2), north=700, south=500) as both,
        coordinating(tmp_path, coordinates(both, declared=grows(4))) as service,
    ):
        assert len(ask(service, CELLS)) == 6
        ask(service, SYNTHETIC)
        assert max(one.spent() for one in both) <= spent(service) <= 6
        assert_all_agree(service, both)
