"""A name is that of one thing: a stream, a collection, a private, public or synthetic table."""

from collections.abc import Iterator
from contextlib import closing
from fractions import Fraction
from pathlib import Path

import pytest

from accountant.ledger.entries import TableOpened
from accountant.ledger.ledger import Ledger
from accountant.ledger.opening import open_ledger
from cube.refusals import CannotStart, NameTaken
from local_dp.campaign import campaign_text
from planner.sql.stream_statements import CreateStream
from proxy.api.requests import LOCAL
from proxy.collections.service import CollectionService
from proxy.config.memory import DEFAULT_LIMITS
from proxy.engine.engine import Engine
from proxy.streams.feature import Streams
from proxy.streams.service import StreamService
from proxy.synthetic_tables.store import SyntheticStore
from tests.support.campaigns import survey
from tests.support.synthetic import ANN, EVE, asked, served


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    with open_ledger(tmp_path / "people.ledger") as opened:
        yield opened


@pytest.fixture
def streams(ledger: Ledger, tmp_path: Path) -> Iterator[StreamService]:
    with closing(StreamService(ledger, tmp_path / "states", ["people", "Cities"])) as made:
        yield made


def order(name: str) -> CreateStream:
    return CreateStream(name=name, column="user", universe=10, n_bits=10)


def test_a_stream_takes_no_name_of_a_table_a_collection_or_a_stream(
    ledger: Ledger, streams: StreamService, tmp_path: Path
) -> None:
    ledger.append("old", lambda _history: TableOpened("schema", "data", Fraction(1), "rows"))
    with closing(CollectionService(ledger, tmp_path / "counts")) as collections:
        collections.create(LOCAL, campaign_text(survey()), n_respondents_max=10)
    streams.create(LOCAL, order("visits"))
    for taken in ("people", "PEOPLE", "cities", "old", "survey", "Survey", "visits", "Visits"):
        with pytest.raises(NameTaken, match="a table, a collection or a stream"):
            streams.create(LOCAL, order(taken))
    assert list(streams) == ["visits"]


def test_a_collection_takes_no_name_of_a_stream(
    ledger: Ledger, streams: StreamService, tmp_path: Path
) -> None:
    streams.create(LOCAL, order("survey"))
    with closing(CollectionService(ledger, tmp_path / "counts")) as collections:
        for name in ("survey", "SURVEY"):
            with pytest.raises(NameTaken):
                collections.create(LOCAL, campaign_text(survey(name)), n_respondents_max=10)


def test_no_server_starts_with_a_table_that_is_called_as_a_stream(
    ledger: Ledger, streams: StreamService, tmp_path: Path
) -> None:
    streams.create(LOCAL, order("visits"))
    streams.drop(LOCAL, "visits", if_exists=False)
    with pytest.raises(CannotStart, match="visits is the name of a stream") as caught:
        StreamService(ledger, tmp_path / "states", ["people", "Visits"])
    assert caught.value.hint


def test_a_stream_and_a_synthetic_table_take_no_name_of_each_other(
    ledger: Ledger, streams: StreamService, tmp_path: Path
) -> None:
    store = SyntheticStore(tmp_path / "synthetic", DEFAULT_LIMITS)
    tables = {name: served(ledger, name, Fraction(10)) for name in ("people", "staff")}
    engine = Engine(tables, store=store, features=[Streams(streams)])
    making = "CREATE SYNTHETIC TABLE {} FROM people WITH (epsilon => 1, rows => 9, seed => 1)"
    asked(engine, making.format("drawn"), ANN)
    for name in ("drawn", "Drawn"):
        with pytest.raises(NameTaken, match="the name of a synthetic table"):
            asked(engine, f"CREATE STREAM {name} (user UNIVERSE 10)")
    asked(engine, "CREATE STREAM visits (user UNIVERSE 10)")
    for name in ("visits", "VISITS"):
        with pytest.raises(NameTaken):
            asked(engine, making.format(name), ANN)
    # Whoever may not know of the stream is not told that there is one.
    asked(engine, making.format("visits").replace("people", "staff"), EVE)
