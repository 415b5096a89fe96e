"""What this wire tells beside an answer: whole counts, and notices if they are wanted."""

from collections.abc import Iterator

import pytest

from accountant.noise.lattice_noise import SystemNoise
from proxy.api.requests import LOCAL
from proxy.engine.engine import Engine
from tests.sql import world
from tests.support.fakes import KnownTable
from tests.support.postgres_wire import postgres_serving
from tests.support.raw_postgres import RawClient, Reply, query, raw_client

COUNT = "SELECT COUNT(*) AS n, AVG(age) AS a FROM patients"


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    source = KnownTable(world.SCHEMA, world.positions())
    with world.patients_engine(tmp_path_factory.mktemp("told"), source, SystemNoise()) as engine:
        yield engine


@pytest.fixture
def client(engine: Engine) -> Iterator[RawClient]:
    with postgres_serving(engine) as address, raw_client(address) as client:
        client.log_in()
        yield client


def row(replies: list[Reply]) -> list[str]:
    """The one row of an answer."""
    (found,) = (reply for reply in replies if reply.tag == "D")
    return [(value or b"").decode() for value in found.values]


def notices(replies: list[Reply]) -> list[str]:
    return [reply.fields["M"] for reply in replies if reply.tag == "N"]


def test_counts_are_whole_unless_the_session_says_otherwise(client: RawClient) -> None:
    assert row(client.ask(query("SHOW tacit.integer_counts"))) == ["on"]
    count, average = row(client.ask(query(COUNT)))
    assert count.isdecimal()
    assert not average.isdecimal()
    client.ask(query("SET tacit.integer_counts = off"))
    unrounded, same = row(client.ask(query(COUNT)))
    assert round(float(unrounded)) == int(count)
    assert same == average
    client.ask(query("RESET tacit.integer_counts"))
    assert row(client.ask(query(COUNT)))[0] == count


def test_notices_are_sent_when_they_are_wanted(client: RawClient, engine: Engine) -> None:
    client.ask(query(COUNT))
    assert notices(client.ask(query(COUNT))) == []
    client.ask(query("SET tacit.notices = on"))
    cost, *columns = notices(client.ask(query(COUNT)))
    (budget,) = engine.budgets(LOCAL)
    assert cost == f"patients: epsilon 0 spent, {float(budget.left):.6g} left."
    assert [line.split(":")[0] for line in columns] == ["n", "a"]
    assert all("half-width" in line and "history" in line for line in columns)
    client.ask(query("SET tacit.notices TO DEFAULT"))
    assert notices(client.ask(query(COUNT))) == []


STALE = "SELECT COUNT(*) AS n FROM patients WHERE {}"


@pytest.mark.parametrize(
    ("condition", "told"),
    [
        ("sex = 'femal'", "sex never equals 'femal'. Did you mean 'female'"),
        ("sex <> 'Male'", "sex never equals 'Male'."),
        ("age IN (20, 200)", "age never equals 200."),
        ("age < (SELECT AVG(age) FROM patients WHERE sex = 'nobody')", "sex never equals 'nobody'"),
    ],
)
def test_a_value_that_is_no_level_is_told_of_unasked(
    client: RawClient, condition: str, told: str
) -> None:
    for setting in ("off", "on"):
        client.ask(query(f"SET tacit.notices = {setting}"))
        for _ in range(2):  # an answer that is given again says it again
            replies = client.ask(query(STALE.format(condition)))
            (warning,) = (one for one in replies if one.tag == "N" and one.fields["V"] == "WARNING")
            assert warning.fields["M"].startswith(told)
            assert warning.fields["C"] == "01000"


def test_a_value_that_is_a_level_is_not_told_of(client: RawClient) -> None:
    assert notices(client.ask(query(STALE.format("sex = 'male'")))) == []


def test_a_person_at_psql_is_told_how_wide_the_intervals_are(engine: Engine) -> None:
    with postgres_serving(engine) as address, raw_client(address) as client:
        client.log_in(application_name="psql")
        told = notices(client.ask(query(COUNT)))
        assert any(line.startswith("n: half-width") for line in told)
        client.ask(query("SET tacit.notices = off"))
        assert notices(client.ask(query(COUNT))) == []


def test_a_switch_is_on_or_off(client: RawClient) -> None:
    (error,) = (reply for reply in client.ask(query("SET tacit.notices = 5")) if reply.tag == "E")
    assert error.fields["C"] == "22023"
    assert row(client.ask(query("SHOW tacit.notices"))) == ["off"]
