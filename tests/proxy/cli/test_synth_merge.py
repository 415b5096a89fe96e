"""`tacit synth merge`: models of two servers' tables as files, joined and used without a server."""

import io
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
import structlog
from pyarrow import csv

from cube.axis import Axis, BooleanAxis, CategoryAxis, IntegerAxis, NumericAxis
from cube.encoding import declared_column
from proxy.engine.engine import Engine
from proxy.monitoring.logs import configure_logs
from proxy.synthetic_tables.models import ModelFile
from synthesis.privbayes.network import Attribute, BayesianNetwork, Node, Parent
from tests.support.commands import Run
from tests.support.serving import serving
from tests.support.synthetic import asked, spent, synthetic_engine

CITY = CategoryAxis(name="city", values=("Oslo", "Rome"))
AGE = IntegerAxis(name="age", low=0, high=2)


def model_file(
    folder: Path, name: str, total: float, axes: tuple[Axis, ...] = (CITY, AGE), seed: int = 1
) -> Path:
    """A network whose second column depends on the first."""
    draw = np.random.default_rng(seed)
    first, second = (Attribute.plain(axis.name, axis.size) for axis in axes)
    laws = draw.dirichlet(np.ones(first.size)), draw.dirichlet(np.ones(second.size), first.size)
    nodes = Node(first.name), Node(second.name, (Parent(first.name),), 1)
    made = BayesianNetwork((first, second), nodes, laws, total)
    path = folder / f"{name}.model"
    path.write_bytes(ModelFile(axes, made).to_bytes())
    return path


def read(path: Path) -> ModelFile:
    return ModelFile.from_bytes(path.read_bytes())


def joint_of(path: Path) -> Any:
    made = read(path).model
    assert isinstance(made, BayesianNetwork)
    by_name = {node.child: law for node, law in zip(made.nodes, made.conditionals, strict=True)}
    if made.nodes[0].child != "city":
        return (by_name["age"][:, np.newaxis] * by_name["city"]).T
    return by_name["city"][:, np.newaxis] * by_name["age"]


@pytest.mark.parametrize(
    ("weights", "share"), [("sizes", 0.75), ("equal", 0.5), ("1,3", 0.25), ("1, 0", 1.0)]
)
def test_the_joined_model_is_the_mixture_by_weight(
    run: Run, tmp_path: Path, weights: str, share: float
) -> None:
    one, other = model_file(tmp_path, "n", 3000.0), model_file(tmp_path, "s", 1000.0, seed=2)
    ended = run("synth", "merge", one, other, "--weights", weights, "-o", tmp_path / "b.model")
    assert ended.code == 0
    assert f"{share:.4f}" in ended.out
    assert "3000" in ended.out
    assert "4000 rows. Free." in ended.out
    expected = share * joint_of(one) + (1 - share) * joint_of(other)
    assert joint_of(tmp_path / "b.model") == pytest.approx(expected, abs=1e-9)
    assert read(tmp_path / "b.model").axes == (CITY, AGE)


def test_a_joined_model_is_drawn_from_asked_and_compared_without_a_server(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TACIT_SERVER", "localhost:1")  # nobody is there
    parts = model_file(tmp_path, "n", 3000.0), model_file(tmp_path, "s", 1000.0, seed=2)
    both = tmp_path / "both.model"
    assert run("synth", "merge", *parts, "-o", both, "--by-rows").code == 0
    rows = tmp_path / "rows.csv"
    drawn = run("synth", "resample", both, "--rows", 5000, "--seed", 7, "-o", rows)
    assert drawn.code == 0
    made = csv.read_csv(rows)
    assert made.num_rows == 5000
    oslo = np.mean(np.array(made["city"]) == "Oslo")
    assert oslo == pytest.approx(joint_of(both).sum(axis=1)[0], abs=0.05)
    again = tmp_path / "again.csv"
    run("synth", "resample", both, "--rows", 5000, "--seed", 7, "-o", again)
    assert again.read_bytes() == rows.read_bytes()
    law = run("synth", "law", both, "--of", "age", "--given", "city=Rome")
    assert law.code == 0
    expected = joint_of(both)[1] / joint_of(both)[1].sum()
    assert all(f"{share:.4f}" in law.out for share in expected)
    assert "exact law" in law.out
    compared = run("synth", "evaluate", both, "--rows", rows)
    assert compared.code == 0
    assert "mean of 1 pairs" in compared.out


def test_rows_of_a_file_are_written_and_not_kept(run: Run, tmp_path: Path) -> None:
    one = model_file(tmp_path, "n", 30.0)
    for arguments in ((), ("--name", "x", "-o", tmp_path / "x.csv")):
        ended = run("synth", "resample", one, *arguments)
        assert ended.code == 1
        assert "not kept on a server" in ended.err
    assert not (tmp_path / "x.csv").exists()


OTHERS: dict[str, tuple[tuple[Axis, ...], str]] = {
    "a level": (
        (CategoryAxis(name="city", values=("Oslo", "Pisa")), AGE),
        "'city' has other levels in",
    ),
    "the same level elsewhere": (
        (CategoryAxis(name="city", values=("Rome", "Oslo")), AGE),
        "level 1 is 'Oslo' and 'Rome'",
    ),
    "a longer range": ((CITY, IntegerAxis(name="age", low=0, high=3)), "has the level '3'"),
    "null": ((CITY, IntegerAxis(name="age", low=0, high=2, null=True)), "it may be NULL only in"),
    "a kind": (
        (BooleanAxis(name="city"), AGE),
        "it is of kind category in",
    ),
    "bins": (
        (CITY, NumericAxis(name="age", edges=(0.0, 1.0, 2.0, 3.0))),
        "it is of kind integer in",
    ),
    "a column": (
        (CITY, IntegerAxis(name="years", low=0, high=2)),
        "The models are of different columns:",
    ),
}


@pytest.mark.parametrize("case", OTHERS)
def test_what_differs_is_named_and_nothing_is_written(run: Run, tmp_path: Path, case: str) -> None:
    axes, said = OTHERS[case]
    one, other = model_file(tmp_path, "n", 30.0), model_file(tmp_path, "s", 30.0, axes)
    ended = run("synth", "merge", one, other, "-o", tmp_path / "b.model")
    assert ended.code == 1
    assert said in " ".join(ended.err.split())
    assert not (tmp_path / "b.model").exists()


def test_bins_with_the_same_lower_edges_are_told_apart(run: Run, tmp_path: Path) -> None:
    axes = [(CITY, NumericAxis(name="age", edges=(0.0, 1.0, 2.0, top))) for top in (3.0, 9.0)]
    files = [model_file(tmp_path, str(at), 30.0, own) for at, own in enumerate(axes)]
    ended = run("synth", "merge", *files, "-o", tmp_path / "b.model")
    assert ended.code == 1
    assert "edges" in ended.err


GONE = object()
WHOLE: dict[str, Callable[[str], str]] = {
    "cut": lambda content: content[: len(content) // 2],
    "text": lambda _: "id,name\n1,x\n",
    "a list": lambda _: "[]",
    "as a store keeps it": lambda content: json.dumps(json.loads(content)["model"] | {"seed": 3}),
}
SET: dict[str, tuple[tuple[str | int, ...], object]] = {
    "another format": (("tacit_model",), 2),
    "no size": (("model", "total"), GONE),
    "a size that is text": (("model", "total"), "many"),
    "a negative size": (("model", "total"), -4),
    "an absurd size": (("model", "total"), 1e30),
    "no number": (("model", "total"), float("nan")),
    "empty": (("model", "total"), 0),
    "a negative share": (("model", "nodes", 0, "law"), [1.5, -0.5]),
    "a share that is no number": (("model", "nodes", 0, "law"), [float("nan"), 1.0]),
    "a parent that does not exist": (("model", "nodes", 1, "parents", 0, "column"), "x"),
    "a level that does not exist": (("model", "nodes", 1, "parents", 0, "level"), 7),
    "fewer levels": (("columns", 0), declared_column(CategoryAxis(name="city", values=("Oslo",)))),
    "a wrong size": (("columns", 1, "size"), 9),
    "another kind": (("model", "kind"), "oracle"),
    "no columns": (("model", "columns"), GONE),
    "a kind of column": (("columns", 0, "kind"), "colour"),
}


def spoiled(content: str, case: str) -> str:
    if case in WHOLE:
        return WHOLE[case](content)
    values: Any = json.loads(content)
    (*path, last), new = SET[case]
    within = values
    for step in path:
        within = within[step]
    if new is GONE:
        del within[last]
    else:
        within[last] = new
    return json.dumps(values)


@pytest.mark.parametrize("case", [*WHOLE, *SET])
def test_a_damaged_file_is_refused_by_name(run: Run, tmp_path: Path, case: str) -> None:
    one, other = model_file(tmp_path, "n", 30.0), model_file(tmp_path, "s", 30.0)
    other.write_text(spoiled(other.read_text(), case))
    ended = run("synth", "merge", one, other, "-o", tmp_path / "b.model")
    assert ended.code == 1
    assert str(other) in ended.err.replace("\n", "")
    assert not (tmp_path / "b.model").exists()


@pytest.mark.parametrize(
    ("weights", "said"),
    [
        ("1", "There are 1 weights for 2 models"),
        ("1,2,3", "There are 3 weights"),
        ("a,b", "are not numbers"),
        ("-1,2", "not all from 0 up"),
        ("0,0", "not all from 0 up"),
        ("nan,1", "not all from 0 up"),
        ("inf,1", "not all from 0 up"),
    ],
)
def test_weights_are_checked(run: Run, tmp_path: Path, weights: str, said: str) -> None:
    files = model_file(tmp_path, "n", 30.0), model_file(tmp_path, "s", 30.0)
    ended = run("synth", "merge", *files, "--weights", weights, "-o", tmp_path / "b.model")
    assert ended.code == 1
    assert said in ended.err
    assert not (tmp_path / "b.model").exists()


def test_files_are_checked_before_anything_is_read(run: Run, tmp_path: Path) -> None:
    one = model_file(tmp_path, "n", 30.0)
    for arguments, said in (
        ((one, "-o", tmp_path / "b.model"), "Two models or more"),
        ((one, one, "-o", tmp_path / "b.model"), "named twice"),
        ((one, tmp_path / "none.model", "-o", tmp_path / "b.model"), "cannot be read"),
        ((one, one, "-o", tmp_path / "b.json"), "does not end in .model"),
        ((one, one, "-o", tmp_path / "gone" / "b.model"), "There is no directory"),
    ):
        ended = run("synth", "merge", *arguments)
        assert ended.code != 0
        assert said in " ".join(ended.err.split())


@pytest.fixture
def people(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Engine]:
    configure_logs(io.StringIO())
    with (
        synthetic_engine(tmp_path) as engine,
        serving(engine, synthetic=engine.synthetic) as address,
    ):
        monkeypatch.setenv("TACIT_SERVER", address)
        yield engine
    structlog.reset_defaults()


OPTIONS = {
    "pairwise": "method => 'pairwise'",
    "by class": "target => (member)",
    "network": "method => 'privbayes'",
}


@pytest.mark.parametrize("kind", OPTIONS)
def test_models_of_two_tables_of_a_server_are_joined(
    run: Run, people: Engine, tmp_path: Path, kind: str
) -> None:
    """What leaves the server is what its rows are drawn from, and costs nothing."""
    for table, name in (("people", "p"), ("staff", "s")):
        asked(
            people,
            f"CREATE SYNTHETIC TABLE {name} FROM {table} WITH (epsilon => 2, {OPTIONS[kind]}, "
            "columns => (city, age, member))",
        )
    before = spent(people), spent(people, "staff")
    files = [tmp_path / "p.model", tmp_path / "s.model"]
    for file in files:
        assert run("synth", "get", file.stem, "-o", file).code == 0
    both = tmp_path / "both.model"
    ended = run("synth", "merge", *files, "-o", both)
    assert ended.code == 0
    assert f"Joined into a {kind} model" in " ".join(ended.out.split())
    total = sum(read(file).model.total for file in files)
    assert read(both).model.total == pytest.approx(total)
    rows = tmp_path / "rows.parquet"
    assert run("synth", "resample", both, "--rows", 500, "-o", rows).code == 0
    assert pq.read_table(rows).num_rows == 500
    assert (spent(people), spent(people, "staff")) == before


def test_the_file_has_no_seed(run: Run, people: Engine, tmp_path: Path) -> None:
    asked(
        people,
        "CREATE SYNTHETIC TABLE s FROM people WITH (epsilon => 1, seed => 987654321, "
        "columns => (city, member))",
    )
    file = tmp_path / "s.model"
    assert run("synth", "get", "s", "-o", file).code == 0
    assert "987654321" not in file.read_text()
    assert "seed" not in file.read_text()
