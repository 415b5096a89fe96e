"""A table that a credential does not open is one that does not exist, whatever is said of it."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction
from functools import partial
from typing import NamedTuple

import grpc
import pyarrow as pa
import pytest

from accountant.gate.opening import open_table
from accountant.ledger.credentials import Role
from accountant.ledger.ledger import Ledger
from accountant.noise.lattice_noise import SystemNoise
from proxy.engine.engine import Engine
from proxy.identity.authenticate import LedgerAuthenticator
from proxy.protocol import tacit_pb2
from proxy.protocol.tacit_pb2_grpc import TacitStub
from proxy.sources.duckdb_source import DuckDbSource
from proxy.sources.location import SourceLocation
from proxy.tables.private_table import ServedTable
from tests.support.identities import bearer, credentials, refusal, token_for
from tests.support.serving import serving
from tests.support.worlds import DEFAULT, SCHEMA, random_rows, write_csv

OPEN, CLOSED, ABSENT = "people_of_1990", "people_of_1991", "people_of_1992"


class World(NamedTuple):
    ledger: Ledger
    stub: TacitStub

    def ask(self, sql: str, token: str) -> pa.Table:
        replies = self.stub.Query(tacit_pb2.QueryRequest(sql=sql), metadata=bearer(token))
        stream = b"".join(reply.ipc for reply in replies)
        return pa.ipc.open_stream(stream).read_all()


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    folder = tmp_path_factory.mktemp("two_tables")
    with credentials(folder) as ledger:
        tables = {}
        for seed, name in enumerate((OPEN, CLOSED)):
            schema = replace(SCHEMA, table=name)
            path = write_csv(folder / f"{name}.csv", random_rows(500, seed))
            source = DuckDbSource(schema, SourceLocation(path=path))
            gate = open_table(ledger, schema, Fraction(1), source, SystemNoise())
            tables[name] = ServedTable(schema, DEFAULT, gate)
        with (
            serving(Engine(tables), authenticator=LedgerAuthenticator(ledger)) as address,
            grpc.insecure_channel(address) as channel,
        ):
            found = World(ledger, TacitStub(channel))
            owner = token_for(ledger, "owner", role=Role.OWNER)
            for name in (OPEN, CLOSED):
                found.ask(f"SELECT COUNT(*) AS n FROM {name} WHERE age < 30", owner)  # noqa: S608 - our own name
            yield found


@pytest.fixture(scope="module")
def narrow(world: World) -> str:
    return token_for(world.ledger, "ann", OPEN)


STATEMENTS: list[str] = [
    "SELECT COUNT(*) AS n FROM {}",
    "SELECT city, COUNT(*) AS n FROM {} GROUP BY city",
    "EXPLAIN PRIVACY SELECT COUNT(*) AS n FROM {}",
    "SELECT * FROM {}",
    "SELECT COUNT(*) AS n FROM {} WHERE nothing = 1",
    "SELECT COUNT(*) AS n FROM people_of_1990 UNION ALL SELECT COUNT(*) FROM {}",
    "SELECT * FROM estimate_remaining_dp_aggregates('{}')",
    "SELECT COUNT(*) AS n FROM people_of_1990 AS a JOIN {} AS b USING (age)",
    "SELECT (SELECT COUNT(*) FROM {}) AS n",
    "SELECT {}.age, COUNT(*) AS n FROM people_of_1990 GROUP BY 1",
]


@pytest.mark.parametrize("sql", STATEMENTS)
def test_sql_on_a_closed_table_is_refused_as_on_one_that_is_not_there(
    world: World, narrow: str, sql: str
) -> None:
    told = told_alike(lambda name: world.ask(sql.format(name), narrow))
    assert OPEN[:6] in told or "[" in told


@pytest.mark.parametrize("sql", STATEMENTS[:5])
def test_so_it_is_when_it_is_explained_or_planned(world: World, narrow: str, sql: str) -> None:
    metadata = bearer(narrow)
    told_alike(
        lambda name: world.stub.Explain(
            tacit_pb2.ExplainRequest(sql=sql.format(name)), metadata=metadata
        )
    )
    told_alike(
        lambda name: world.stub.Plan(tacit_pb2.PlanRequest(sql=sql.format(name)), metadata=metadata)
    )


def told_alike(call: Callable[[str], object]) -> str:
    """What is said of the closed table, which is what is said of an absent one, names apart."""
    code, closed = refusal(partial(call, CLOSED))
    other_code, absent = refusal(partial(call, ABSENT))
    assert code is other_code
    assert closed.replace(CLOSED, "NAME") == absent.replace(ABSENT, "NAME")
    assert CLOSED not in absent
    return closed


def test_no_suggestion_names_it(world: World, narrow: str) -> None:
    _, told = refusal(lambda: world.ask(f"SELECT COUNT(*) FROM {CLOSED}x", narrow))  # noqa: S608 - our own name
    assert CLOSED not in told.replace(f"{CLOSED}x", "")
    owner = token_for(world.ledger, "other", role=Role.OWNER)
    _, told = refusal(lambda: world.ask(f"SELECT COUNT(*) FROM {CLOSED}x", owner))  # noqa: S608 - our own name
    assert CLOSED in told.replace(f"{CLOSED}x", "")  # or the test above would show nothing


@pytest.mark.parametrize("view", ["budgets", "losses", "history", "domains"])
def test_no_view_of_the_guarantee_names_it(world: World, narrow: str, view: str) -> None:
    names = f"SELECT DISTINCT table_name FROM data_privacy.{view} ORDER BY 1"  # noqa: S608 - our own name
    auditor_like = token_for(world.ledger, "other", role=Role.OWNER)
    assert world.ask(names, auditor_like)["table_name"].to_pylist() == [OPEN, CLOSED]
    seen = world.ask(names, narrow)["table_name"].to_pylist()
    assert seen == ([] if view == "losses" else [OPEN])  # of losses, one's own


def test_an_analyst_sees_his_own_losses_and_an_owner_all(world: World) -> None:
    ann, bob = (token_for(world.ledger, name, OPEN) for name in ("ann", "bob"))
    world.ask(f"SELECT COUNT(*) AS n FROM {OPEN} WHERE visits > 10", ann)  # noqa: S608 - our own name
    losses = "SELECT DISTINCT analyst FROM data_privacy.losses ORDER BY 1"
    assert world.ask(losses, ann)["analyst"].to_pylist() == ["ann"]
    assert world.ask(losses, bob)["analyst"].to_pylist() == []
    owner = token_for(world.ledger, "third", OPEN, role=Role.OWNER)
    assert world.ask(losses, owner)["analyst"].to_pylist() == ["ann", "owner"]


def test_losses_do_not_tell_that_another_table_was_charged(world: World) -> None:
    """A place in the ledger, which is of all tables, would count what others' entries there are."""
    owner = token_for(world.ledger, "owner", role=Role.OWNER)
    ann = token_for(world.ledger, "anne", OPEN)
    cheap = "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(half_width => 300) COUNT(*) AS n FROM"
    for table, where in (
        (OPEN, "visits = 7"),
        (CLOSED, "visits = 8"),
        (CLOSED, "member AND age = 9"),
        (OPEN, "member AND age = 9"),
    ):
        world.ask(f"{cheap} {table} WHERE {where}", ann if table == OPEN else owner)
    rows = world.ask("SELECT * FROM data_privacy.losses", ann).to_pylist()
    about_itself = {"at", "n_blocks", "n_statistics"}
    first, second = ([row[name] for name in row if name not in about_itself] for row in rows)
    numbers = [b - a for a, b in zip(first, second, strict=True) if isinstance(a, int)]
    assert numbers == [1]  # its place among the table's charges


def test_a_plan_and_a_schema_made_for_one_are_not_handed_to_another(
    world: World, narrow: str
) -> None:
    wide = token_for(world.ledger, "ann")  # the same analyst, a wider credential
    sql = f"SELECT COUNT(*) AS n FROM {CLOSED} WHERE age < 30"  # noqa: S608 - our own name
    assert world.ask(sql, wide).num_rows == 1
    assert refusal(lambda: world.ask(sql, narrow))[0] is grpc.StatusCode.NOT_FOUND
    assert world.ask(sql, wide).num_rows == 1


def test_what_somebody_paid_for_is_free_for_whoever_may_read_the_table(world: World) -> None:
    ann, bob = (token_for(world.ledger, name, OPEN) for name in ("ann", "bob"))
    request = tacit_pb2.QueryRequest(
        sql=f"SELECT COUNT(*) AS n FROM {OPEN}",  # noqa: S608 - our own name
        target=tacit_pb2.Target(half_width=10),
    )
    first, again = (
        [
            reply.receipt.epsilon_spent
            for reply in world.stub.Query(request, metadata=bearer(token))
            if reply.HasField("receipt")
        ]
        for token in (ann, bob)
    )
    assert first[0] > 0
    assert again == [0]
