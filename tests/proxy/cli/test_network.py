"""`tacit network learn` on a real server: what it buys, learns, prints, writes and refuses."""

import io
import json
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
import structlog

from cube.refusals import InvalidRequest
from proxy.api.requests import LOCAL
from proxy.cli.network_tables import chosen_columns, counts_in
from proxy.engine.engine import Engine
from proxy.monitoring.logs import configure_logs
from proxy.protocol import tacit_pb2
from tests.support import survey_network
from tests.support.commands import Run
from tests.support.serving import serving
from tests.support.square_tables import square_engine
from tests.support.synthetic import spent as spent_on_people
from tests.support.synthetic import synthetic_engine

SIZES = dict(zip(survey_network.NAMES, survey_network.joint().shape, strict=True))
COUNTS = np.round(survey_network.joint() * 100_000).astype(np.int64)
STRONG = [{"A", "E"}, {"R", "T"}]


@pytest.fixture(autouse=True)
def _server_logs_elsewhere() -> Iterator[None]:
    configure_logs(io.StringIO())
    yield
    structlog.reset_defaults()


@pytest.fixture
def engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Engine]:
    """A server of a private table that has the law of the Survey network."""
    with square_engine(tmp_path, SIZES, COUNTS) as engine, serving(engine) as address:
        monkeypatch.setenv("TACIT_SERVER", address)
        yield engine


@pytest.fixture
def people(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Engine]:
    """A server that makes synthetic tables."""
    with (
        synthetic_engine(tmp_path) as engine,
        serving(engine, synthetic=engine.synthetic) as address,
    ):
        monkeypatch.setenv("TACIT_SERVER", address)
        yield engine


def spent(engine: Engine) -> Fraction:
    return engine.budgets(LOCAL)[0].spent


def test_a_network_is_bought_once_and_then_free(run: Run, engine: Engine, tmp_path: Path) -> None:
    file = tmp_path / "network.json"
    order = ("network", "learn", "ROWS", "--method", "exact", "-o", file)
    first = run(*order, "--epsilon", "15")
    assert first.code == 0
    assert "Buys 15 tables of 2 columns of rows, for at most epsilon 15 together." in first.err
    assert "exact, at most one parent of a column; as certain as" in first.out
    assert "epsilon spent" in first.out
    assert 0 < spent(engine) <= 15
    before, network = spent(engine), json.loads(file.read_text())
    arcs = [{arc["from"], arc["to"]} for arc in network["arcs"]]
    assert all(arc in arcs for arc in STRONG)
    assert all(arc["support"] > 0 and not arc["directed"] for arc in network["arcs"])
    again = run(*order)
    assert "Reads 15 tables of 2 columns of rows from what is known. Free." in again.err
    assert json.loads(file.read_text()) == network
    assert spent(engine) == before
    published = tmp_path / "survey.bif"
    published.write_text(survey_network.survey_bif().replace("A0", "0").replace("A1", "1"))
    beside = json.loads(run("network", "compare", file, file, "--format", "json").out)
    assert beside["accuracy"] == 1
    assert len(beside["tables"]) == 15
    assert run("network", "compare", published, file).code == 0


def test_more_parents_need_wider_tables_and_say_directions(
    run: Run, engine: Engine, tmp_path: Path
) -> None:
    file = tmp_path / "network.json"
    order = ("network", "learn", "rows", "--columns", "a, s, E", "--degree", "2", "-o", file)
    made = run(*order, "--method", "exact", "--epsilon", "100")
    assert "Buys 1 tables of 3 columns" in made.err
    assert "this way" in made.out
    arcs = json.loads(file.read_text())["arcs"]
    assert sorted((arc["from"], arc["to"], arc["directed"]) for arc in arcs) == [
        ("A", "E", True),
        ("S", "E", True),
    ]
    assert spent(engine) <= 100


@pytest.mark.parametrize("method", ["chow-liu", "hill-climbing", "exact"])
def test_columns_of_which_nothing_is_seen_are_named(
    run: Run, engine: Engine, tmp_path: Path, method: str
) -> None:
    """Noise makes an arc of one pair in 25 at most: in one run of fifty, of all six columns."""
    file = tmp_path / "network.json"
    made = run("network", "learn", "rows", "--method", method, "--epsilon", "0.001", "-o", file)
    assert made.code == 0
    arcs = json.loads(file.read_text())["arcs"]
    seen = {arc[end] for arc in arcs for end in ("from", "to")}
    alone = [name for name in survey_network.NAMES if name not in seen]
    said = f"No dependence was found for {', '.join(alone)}."
    assert said in made.out if alone else "No dependence" not in made.out
    assert spent(engine) <= Fraction("0.001")


def test_a_network_is_drawn_and_written_for_graphviz(
    run: Run, engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("matplotlib")
    order = ("network", "learn", "rows", "--epsilon", "15")
    assert run(*order, "-o", tmp_path / "a.svg").code == 0
    drawn = ET.parse(tmp_path / "a.svg").getroot()  # noqa: S314 - written here
    texts = {one.text for one in drawn.iter("{http://www.w3.org/2000/svg}text")}
    assert texts == set(survey_network.NAMES)
    free = ("network", "learn", "rows")
    run(*free, "-o", tmp_path / "b.svg")
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()
    run(*free, "-o", tmp_path / "a.dot")
    dot = (tmp_path / "a.dot").read_text()
    assert dot.startswith("digraph network {")
    assert '"R" -> "T" [dir=none];' in dot or '"T" -> "R" [dir=none];' in dot
    monkeypatch.setenv("BROWSER", "true %s")  # a browser that shows nothing
    assert "There is no browser" not in run(*free, "--show").out
    assert spent(engine) <= 15


def test_a_synthetic_table_gives_the_network_of_its_model(run: Run, people: Engine) -> None:
    run("synth", "create", "people", "--epsilon", "1", "--name", "s", "--rows", "500")
    before = spent_on_people(people)
    for name in ("s", "people.S"):
        made = run("network", "learn", name, "--columns", "city,member,visits")
        assert made.code == 0
        assert "Learned from the rows of s: the network is that of its model. Free." in made.out
        assert "as certain as 500 rows without noise" in made.out
    assert spent_on_people(people) == before


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("nobody",), "unknown_name"),
        (("rows", "--columns", "A,Z"), "unknown_name"),
        (("rows", "--columns", "A"), "invalid_request"),
        (("rows",), "invalid_request"),  # nothing is known, and nothing may be spent
        (("rows", "--epsilon", "much"), "invalid_target"),
        (("rows", "--epsilon", "1", "--method", "chow-liu", "--degree", "2"), "invalid_request"),
        (("rows", "--epsilon", "1", "-o", "a.png"), "configuration_invalid"),
        (("rows", "--epsilon", "1", "-o", "nowhere/a.svg"), "configuration_invalid"),
    ],
)
def test_what_is_wrong_has_a_code_and_charges_nothing(
    run: Run, engine: Engine, arguments: tuple[str, ...], code: str
) -> None:
    ended = run("network", "learn", *arguments)
    assert ended.code != 0
    assert f"error [{code}]" in ended.err
    assert spent(engine) == 0


def test_what_is_not_known_is_to_be_bought_by_an_option_that_there_is(
    run: Run, engine: Engine
) -> None:
    ended = run("network", "learn", "rows")
    assert spent(engine) == 0
    assert "[invalid_request]: Nothing was measured for some of these columns of rows." in ended.err
    assert "--epsilon above 0" in ended.err
    assert "half_width" not in ended.err


def test_a_synthetic_table_takes_no_epsilon(run: Run, people: Engine) -> None:
    run("synth", "create", "people", "--epsilon", "1", "--name", "s", "--rows", "50")
    for epsilon in ("banana", "0.5"):
        ended = run("network", "learn", "s", "--epsilon", epsilon)
        assert "[invalid_target]: s is a synthetic table, which has no budget" in ended.err
    assert run("network", "learn", "s", "--columns", "city,member", "--epsilon", "0.0").code == 0
    assert 0.9 < spent_on_people(people) <= 1


def test_tables_that_are_known_in_part_are_not_taken_for_independence(
    run: Run, engine: Engine
) -> None:
    run("marginals", "rows", "--sets", "A,E;S", "--epsilon", "1")
    before = spent(engine)
    ended = run("network", "learn", "rows", "--columns", "A,E,S")
    assert "error [invalid_request]: Nothing was measured for A x S and 1 more tables." in ended.err
    assert spent(engine) == before


@pytest.mark.parametrize(
    ("sizes", "arguments", "told"),
    [
        ({f"c{k}": 2 for k in range(17)}, ("--method", "exact"), "17 columns are too many"),
        ({f"c{k}": 2 for k in range(24)}, (), "24 columns have 276 tables of 2; at most 256"),
        ({"a": 300, "b": 300, "c": 2}, (), "The table of a, b has 90000 cells; at most 65536"),
        (
            {f"c{k}": 16 for k in range(9)},
            ("--method", "exact", "--degree", "3"),
            "To learn a network of these 9 columns would take about 2 minutes",
        ),
    ],
)
def test_what_is_too_large_is_refused_before_it_is_paid_for(  # noqa: PLR0913, PLR0917 - fixtures
    run: Run,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    sizes: dict[str, int],
    arguments: tuple[str, ...],
    told: str,
) -> None:
    nobody = np.zeros((1,) * len(sizes), dtype=np.int64)
    with square_engine(tmp_path, sizes, nobody) as engine, serving(engine) as address:
        monkeypatch.setenv("TACIT_SERVER", address)
        ended = run("network", "learn", "rows", "--epsilon", "1", *arguments)
        assert f"error [too_large]: {told}" in ended.err
        assert spent(engine) == 0


def test_columns_that_are_added_up_are_left_out_unless_they_are_named() -> None:
    kinds = {"member": "category", "loans": "measure", "visits": "integer"}
    columns = [tacit_pb2.Column(name=name, kind=kind) for name, kind in kinds.items()]
    table = tacit_pb2.Table(name="members", columns=columns, kind="private")
    assert [one.name for one in chosen_columns(table, [])] == ["member", "visits"]
    with pytest.raises(InvalidRequest, match="loans is a measure: it can be summed"):
        chosen_columns(table, ["loans", "member"])
    table.synthetic_of = "people"  # the rows of a synthetic table have values of it
    assert [one.name for one in chosen_columns(table, ["loans", "member"])] == ["loans", "member"]


def test_a_reply_becomes_tables_with_the_mean_variance_of_their_cells() -> None:
    data = pa.table(
        {
            "marginal": [0, 0, 0, 0, 1, 1],
            "keys": [["x", "u"], ["x", None], ["y", "u"], ["y", None], ["x"], ["y"]],
            "value": [1.0, 2.0, 3.0, 4.0, 5.0, 6.0],
            "standard_error": [1.0, 1.0, 1.0, 3.0, 2.0, 2.0],
            "source": ["history"] * 6,
        }
    )
    pair, single = counts_in(data, [("a", "b"), ("a",)])
    np.testing.assert_array_equal(pair.values, [[1, 2], [3, 4]])
    assert (pair.variance, single.variance) == (3.0, 4.0)
    modelled = data.set_column(4, "source", pa.array(["history"] * 4 + ["model"] * 2))
    with pytest.raises(InvalidRequest, match="Nothing was measured for a"):
        counts_in(modelled, [("a", "b"), ("a",)])
