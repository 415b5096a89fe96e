"""A synthetic table that is not finished: what was bought stays, and no table is left."""

from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from cube.refusals import StoreUnavailable
from planner.sql.synthetic_statements import CreateSynthetic
from proxy.api.requests import LOCAL
from proxy.engine.engine import Engine
from proxy.synthetic_tables import make as making
from proxy.synthetic_tables.request import MadeTable, Progress
from tests.support.synthetic import ANN, MAKE, TWO_COLUMNS, asked, refused, spent, synthetic_engine

BY_CITY = "SELECT city, COUNT(*) AS n FROM people GROUP BY city"
SCORING = 0.5  # how far a table has come once its columns are measured


class StoppedError(Exception):
    """Whoever waited went away."""


def test_what_is_stopped_stays_charged_and_known_and_leaves_no_table(engine: Engine) -> None:
    def stop(step: Progress) -> None:
        if step.done >= SCORING:
            raise StoppedError

    order = CreateSynthetic(name="s", table="people", epsilon=Fraction(1), columns=("city", "age"))
    with pytest.raises(StoppedError):
        engine.synthetic.create(ANN, order, stop)
    paid = spent(engine)
    assert paid > 0
    assert not engine.synthetic.known(LOCAL)
    (row,) = asked(engine, f"{MAKE} WITH (columns => (city))", ANN)  # the name is free, too
    assert row["n_charges"] == len(engine._tables["people"].gate.payments()) >= 1
    assert spent(engine) == paid


def test_where_rows_cannot_be_kept_nothing_is_charged(tmp_path: Path) -> None:
    place = tmp_path / "synthetic"
    with synthetic_engine(tmp_path, store=place) as engine:
        place.write_text("a file where the folder should be")
        assert refused(engine, f"{MAKE} WITH (epsilon => 1)").code == "store_unavailable"
        assert spent(engine) == 0
        assert asked(engine, BY_CITY)  # private tables are answered all the same


def test_what_was_charged_before_rows_could_not_be_kept_is_said(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_arguments: object) -> None:
        raise StoreUnavailable("Synthetic tables cannot be written at present.", hint="Look at it.")

    monkeypatch.setattr(engine.synthetic._store, "publish", fails)
    told = refused(engine, f"{MAKE} WITH (epsilon => 1, {TWO_COLUMNS})")
    assert "paid for and kept" in told.explain()
    assert spent(engine) > 0


def test_a_name_is_held_while_its_table_is_made(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[str] = []
    make = making.make

    def meanwhile(*arguments: Any) -> MadeTable:
        monkeypatch.setattr(making, "make", make)
        told.append(refused(engine, f"{MAKE} WITH (epsilon => 1)").code)
        return make(*arguments)

    monkeypatch.setattr(making, "make", meanwhile)
    asked(engine, f"{MAKE} WITH (epsilon => 1, {TWO_COLUMNS})")
    assert told == ["name_taken"]
