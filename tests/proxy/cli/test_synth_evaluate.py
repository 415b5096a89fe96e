"""`tacit synth evaluate`: kept-out rows beside synthetic ones, on the machine that has them."""

import io
import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import structlog
from pyarrow import csv
from scipy.stats import entropy

from proxy.cli.models.held_out import N_GROUPS, held_out_scores
from proxy.engine.engine import Engine
from proxy.monitoring.logs import configure_logs
from tests.support.commands import Run
from tests.support.serving import serving
from tests.support.synthetic import asked, spent, synthetic_engine


@pytest.fixture
def people(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Engine]:
    configure_logs(io.StringIO())
    with (
        synthetic_engine(tmp_path) as engine,
        serving(engine, synthetic=engine.synthetic) as address,
    ):
        monkeypatch.setenv("TACIT_SERVER", address)
        asked(
            engine,
            "CREATE SYNTHETIC TABLE s FROM people WITH (epsilon => 1, rows => 400, columns => "
            "(city, member))",
        )
        yield engine
    structlog.reset_defaults()


def test_scores_are_those_of_scipy_on_the_same_counts() -> None:
    rng = np.random.default_rng(1)
    names = np.array(["x", "y", "z"])
    kept_out, made = (
        pa.table({"a": names[rng.integers(0, n, 300)], "b": rng.integers(0, 2, 300)})
        for n in (3, 2)
    )
    found = {tuple(one["columns"]): one for one in held_out_scores(kept_out, made)}
    assert set(found) == {("a",), ("b",), ("a", "b")}
    own, model = (
        np.array([(np.array(table["a"]) == name).sum() for name in names])
        for table in (kept_out, made)
    )
    p, q = own / 300, (model + 0.5) / (300 + 1.5)
    assert found["a",]["divergence"] == pytest.approx(float(entropy(p, q, base=2)))
    assert found["a",]["cross_entropy"] == pytest.approx(float(-(p * np.log2(q)).sum()))
    assert found["a",]["distance"] == pytest.approx(float(np.abs(p - model / 300).sum() / 2))
    same = held_out_scores(made, made)
    assert all(one["distance"] == 0 and one["divergence"] < 0.02 for one in same)


@pytest.mark.parametrize("is_text", [False, True])
def test_wide_columns_are_compared_in_groups(*, is_text: bool) -> None:
    """Of 1,000 values and as many rows, all are different: without groups, the distance is 1."""
    rng = np.random.default_rng(2)
    values = [rng.permutation(2000)[:1000], rng.permutation(2000)[:1000]]
    kept_out, made = (
        pa.table({"a": pa.array([str(v) for v in one] if is_text else one)}) for one in values
    )
    (score,) = held_out_scores(kept_out, made)
    assert score["cross_entropy"] <= np.log2(N_GROUPS) + 0.5
    assert score["distance"] < 0.2
    empty = pa.table({"a": pa.array([None] * 5, made.schema.field("a").type)})
    (null,) = held_out_scores(empty, made)
    assert null["distance"] > 0.5


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_a_file_is_compared_and_nothing_is_spent(
    run: Run, people: Engine, tmp_path: Path, suffix: str
) -> None:
    rows = people.synthetic.rows(people.synthetic.newest("people"))  # type: ignore[arg-type]
    path = tmp_path / f"kept_out.{suffix}"
    (csv.write_csv if suffix == "csv" else pq.write_table)(rows, path)
    before = spent(people)
    told = run("synth", "evaluate", "s", "--rows", path, "--format", "json")
    assert told.code == 0, told.err
    scores = json.loads(told.out)
    assert scores["rows"] == 400
    assert [one["columns"] for one in scores["scores"]] == [
        ["city"],
        ["member"],
        ["city", "member"],
    ]
    assert all(one["distance"] == 0 for one in scores["scores"])
    shown = run("synth", "evaluate", "s", "--rows", path).out
    assert "mean of 2 columns" in shown
    assert "mean of 1 pairs" in shown
    assert spent(people) == before


def test_a_file_of_something_else_is_refused_without_quoting_it(
    run: Run, people: Engine, tmp_path: Path
) -> None:
    before, path = spent(people), tmp_path / "secret.csv"
    path.write_text("city,member\nRome,8675309\n")
    told = run("synth", "evaluate", "s", "--rows", path)
    assert "does not have these columns" in told.err
    assert "8675309" not in told.err
    path.write_text("town\nRome\n")
    assert "The columns are city, member" in run("synth", "evaluate", "s", "--rows", path).err
    path.write_text("city,member\n")
    assert "has no rows" in run("synth", "evaluate", "s", "--rows", path).err
    assert "cannot be read" in run("synth", "evaluate", "s", "--rows", tmp_path / "no.csv").err
    assert spent(people) == before
