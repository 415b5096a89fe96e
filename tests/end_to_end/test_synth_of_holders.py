"""`tacit synth`, `network` and `marginals` on a federated table behind a real server."""

import io
from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
import structlog

from proxy.cli.shared.synth_options import (
    ClipChoice,
    HoldersChoice,
    MethodOption,
    SmoothingChoice,
    StructureChoice,
    VotesChoice,
)
from proxy.config.memory import DEFAULT_LIMITS
from proxy.monitoring.logs import configure_logs
from proxy.synthetic_tables import SyntheticStore
from proxy.synthetic_tables.request import AskedHolders, Clip, Method, Votes
from synthesis import Smoothing, Structure
from tests.support.commands import Ended, Run, command_runner
from tests.support.federated import Federation, federated_engine
from tests.support.serving import serving

SIZES = {"a": 3, "b": 4, "c": 2}
DRAW = np.random.default_rng(6)
LAW = DRAW.dirichlet(np.full(24, 0.4))
ROWS = {name: DRAW.multinomial(2000, LAW).reshape(3, 4, 2) for name in ("north", "south")}


@pytest.fixture(autouse=True)
def _server_logs_elsewhere() -> Iterator[None]:
    configure_logs(io.StringIO())
    yield
    structlog.reset_defaults()


@pytest.fixture
def federation(tmp_path: Path) -> Iterator[Federation]:
    store = SyntheticStore(tmp_path / "synthetic", DEFAULT_LIMITS)
    with federated_engine(tmp_path, SIZES, ROWS, store=store) as opened:
        yield opened


@pytest.fixture
def run(
    federation: Federation, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Iterator[Run]:
    engine = federation.engine
    with serving(engine, synthetic=engine.synthetic) as address:
        monkeypatch.setenv("TACIT_SERVER", address)
        yield command_runner(capsys, monkeypatch)


ORDER = ("synth", "create", "rows", "--epsilon", "1", "--method", "privbayes")


def test_a_network_is_previewed_made_shown_drawn_again_and_reported(
    run: Run, federation: Federation, tmp_path: Path
) -> None:
    how = ("--structure", "votes", "--votes", "one_each", "--smoothing", "one")
    preview = run(*ORDER, *how, "--preview")
    assert "would spend at most epsilon 1" in preview.out
    assert "choosing the network" in preview.out
    assert federation.spent() == [0, 0]
    made = run(*ORDER, *how, "--public-rows", "4000", "--name", "s")
    assert made.code == 0, made.err
    assert all(0.99 < spent <= 1 for spent in federation.spent())
    shown = run("synth", "show", "s").out
    assert "structure => 'votes', votes => 'one_each', smoothing => 'one'" in shown
    assert "public_rows => 4000" in shown
    assert (
        run("synth", "resample", "s", "--rows", "30", "-o", str(tmp_path / "r.parquet")).code == 0
    )
    assert pq.read_table(tmp_path / "r.parquet").num_rows == 30
    assert run("synth", "law", "s", "--of", "a", "--given", "b=b1").code == 0
    assert run("synth", "report", "s", "-o", str(tmp_path / "s.html")).code == 0
    assert (tmp_path / "s.html").stat().st_size > 1000
    assert all(spent <= 1 for spent in federation.spent())


def test_what_holders_cannot_tell_is_refused(run: Run, federation: Federation) -> None:
    assert "has no setting votes" in run(*ORDER, "--structure", "models", "--votes", "by_size").err
    assert "cannot be reached" in run_without(federation, run, "--epsilon", "1").err
    assert federation.spent() == [0, 0]


def run_without(federation: Federation, run: Run, *options: str) -> Ended:
    """A table while the holder south is down."""
    federation.holders.down.add(1)
    return run("synth", "create", "rows", *options)


def test_a_table_of_some_holders_is_evaluated_and_says_so(
    run: Run, federation: Federation, tmp_path: Path
) -> None:
    options = ("--epsilon", "1", "--holders", "any", "--evaluate", "0.5", "--name", "s")
    made = run_without(federation, run, *options)
    assert made.code == 0, made.err
    said = "Made without the rows of holders that could not answer: 1 of 2."
    assert f"Less than requested: {said}" in made.out
    shown = run("synth", "show", "s").out
    assert said in shown
    assert "holders => 'any'" in shown
    assert 1.4 < federation.spent()[0] <= 1.5
    assert federation.spent()[1] == 0
    assert "1 of 2" in run("synth", "report", "s", "-o", str(tmp_path / "s.html")).err
    federation.holders.down.clear()
    evaluated = run("synth", "create", "rows", "--epsilon", "1", "--evaluate", "0.5")
    assert "Mean distance of pairs of columns: at most 0." in evaluated.out


@pytest.mark.parametrize(
    ("choice", "kind"),
    [
        (MethodOption, Method),
        (StructureChoice, Structure),
        (VotesChoice, Votes),
        (ClipChoice, Clip),
        (SmoothingChoice, Smoothing),
        (HoldersChoice, AskedHolders),
    ],
)
def test_the_command_offers_what_the_server_knows(
    choice: type[StrEnum], kind: type[StrEnum]
) -> None:
    """The command has names of its own, so that its help does not load what makes tables."""
    assert [one.value for one in choice] == [one.value for one in kind]


def test_a_network_is_learned_of_the_counts_of_all_holders(
    run: Run, federation: Federation
) -> None:
    told = run("network", "learn", "rows", "--epsilon", "5")
    assert told.code == 0
    assert "Buys 3 tables" in told.err
    assert "rows without noise" in told.out
    spent = federation.spent()
    assert all(4.9 < one <= 5 for one in spent)
    counts = run("marginals", "rows", "--sets", "a,b;b", "--epsilon", "0")
    assert counts.code == 0, counts.err
    assert federation.spent() == spent
