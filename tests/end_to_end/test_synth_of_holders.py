"""`tacit synth`, `network` and `marginals` on a federated table behind a real server."""

import io
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow.parquet as pq
import pytest
import structlog

from proxy.cli import app as cli
from proxy.config.memory import DEFAULT_LIMITS
from proxy.monitoring.logs import configure_logs
from proxy.synthetic_tables import SyntheticStore
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


class Ended(NamedTuple):
    code: int
    out: str
    err: str


Run = Callable[..., Ended]


@pytest.fixture
def run(
    federation: Federation, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Iterator[Run]:
    monkeypatch.setenv("COLUMNS", "200")

    def run_with(*arguments: str) -> Ended:
        with pytest.raises(SystemExit) as ended:
            cli.main(arguments)
        captured = capsys.readouterr()
        assert "Traceback" not in captured.out + captured.err
        return Ended(int(ended.value.code or 0), captured.out, captured.err)

    engine = federation.engine
    with serving(engine, synthetic=engine.synthetic) as address:
        monkeypatch.setenv("TACIT_SERVER", address)
        yield run_with


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
    told = run("synth", "create", "rows", "--epsilon", "1", "--evaluate", "0.1")
    assert told.code
    assert "Leave evaluate out" in told.err
    assert "has no setting votes" in run(*ORDER, "--structure", "models", "--votes", "by_size").err
    assert federation.spent() == [0, 0]


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
