"""Ledgers that earlier versions wrote open, verify, report and answer as they did then."""

import gzip
import io
import json
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import structlog

from proxy.bootstrap import build
from proxy.cli import app as cli
from proxy.config.settings import load
from proxy.monitoring.logs import configure_logs
from tests.support.serving import serving

HERE = Path(__file__).parent
ADULT = HERE.parents[1] / "examples" / "adult" / "adult.csv"


@dataclass(frozen=True, slots=True)
class Kept:
    """A ledger of then, in a folder of its own beside this module.

    Parameters
    ----------
    folder : str
    name : str
        Of the ledger's file.
    data : tuple of Path
        What its tables were read from.
    n_entries : int
    question : str
        One that the history answers widely, and does not answer closely.
    half_widths : (float, float)
        How widely, and how closely.
    """

    folder: str
    name: str
    data: tuple[Path, ...]
    n_entries: int
    question: str
    half_widths: tuple[float, float]

    @property
    def path(self) -> Path:
        return HERE / self.folder

    def json(self, name: str) -> Any:
        return json.loads((self.path / name).read_text())


SHOP = tuple((HERE / "kept_shop" / name) for name in ("orders.csv", "customers.csv", "visits.csv"))
LEDGERS = (
    Kept(
        "kept_ledger",
        "adult.ledger",
        (ADULT,),
        65,
        "SELECT COUNT(*) FROM adult WHERE age >= 65",
        (60, 10),
    ),
    Kept("kept_shop", "shop.ledger", SHOP, 71, "SELECT COUNT(*) FROM customers", (40, 4)),
)
SIMULATED = {"mean_age"}  # a formula of two answers
SIMULATION_ERROR = 0.05  # of an end, of an interval half a year wide: some four standard deviations
OF_THE_DAY = {"as_of", "versions"}  # the day on which a report is made, and by which releases

Tacit = Callable[..., str]


@pytest.fixture
def tacit(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Tacit:
    """Run a command that succeeds, and return what it prints."""
    monkeypatch.setenv("COLUMNS", "200")

    def run(*arguments: str) -> str:
        with pytest.raises(SystemExit) as ended:
            cli.main(arguments)
        captured = capsys.readouterr()
        assert not ended.value.code, captured.err
        return captured.out

    return run


@pytest.fixture(autouse=True)
def _server_logs_elsewhere() -> Iterator[None]:
    configure_logs(io.StringIO())
    yield
    structlog.reset_defaults()


@pytest.fixture(params=LEDGERS, ids=lambda kept: kept.folder)
def kept(request: pytest.FixtureRequest) -> Kept:
    one: Kept = request.param
    return one


@pytest.fixture
def folder(tmp_path: Path, kept: Kept) -> Path:
    """A folder of one's own with the configuration, the data and the ledger of then."""
    (tmp_path / kept.name).write_bytes(gzip.decompress((kept.path / "ledger.gz").read_bytes()))
    for part in ("key", "mark"):
        to = tmp_path / f"{kept.name}.{part}"
        shutil.copy(kept.path / part, to)
        to.chmod(0o600)
    for path in (kept.path / "tacit.toml", *kept.data):
        shutil.copy(path, tmp_path)
    return tmp_path


def test_it_verifies(kept: Kept, folder: Path, tacit: Tacit) -> None:
    said = tacit("audit", "verify", str(folder / kept.name))
    assert said.startswith(f"{kept.n_entries} entries, head ")
    assert "Every entry follows from those before it." in said


def test_it_reports_the_same(kept: Kept, folder: Path, tacit: Tacit) -> None:
    tacit("audit", "report", str(folder / kept.name), "-o", str(folder / "report.json"))
    now = json.loads((folder / "report.json").read_text())
    then = kept.json("report.json")
    assert said_then(now, then) == then | {name: now[name] for name in OF_THE_DAY}


def test_it_answers_the_same_for_nothing(kept: Kept, folder: Path, tacit: Tacit) -> None:
    service = build(load(folder / "tacit.toml"))
    try:
        with serving(service.engine) as address:
            for asked in kept.json("answers.json"):
                answered = json.loads(
                    tacit("query", asked["sql"], "--server", address, "--format", "json")
                )
                now, then = said_then(answered, asked["answer"]), asked["answer"]
                assert now == approximately(then) or is_narrower(now, then)
            before, bought = (
                asked_for(tacit, kept.question, address, half_width)
                for half_width in kept.half_widths
            )
    finally:
        service.close()
    # The history goes on: what is narrower than anything in it is bought.
    assert before["epsilon_spent"] == 0
    assert bought["epsilon_spent"] > 0
    verified = tacit("audit", "verify", str(folder / kept.name))
    assert "Every entry follows from those before it." in verified


def asked_for(tacit: Tacit, sql: str, address: str, half_width: float) -> dict[str, Any]:
    options = ("--half-width", str(half_width), "--server", address, "--format", "json")
    answer: dict[str, Any] = json.loads(tacit("query", sql, *options))
    return answer


def approximately(answer: Any, error: float = 1e-7) -> Any:
    """The answer, its numbers up to what another machine's linear algebra may change.

    The ends of a simulated interval also depend on draws, whose seed is how its rows are written.
    """
    if isinstance(answer, dict):
        is_simulated = answer.get("name") in SIMULATED
        return {
            name: approximately(value, SIMULATION_ERROR if is_simulated else error)
            for name, value in answer.items()
        }
    if isinstance(answer, list):
        return [approximately(value, error) for value in answer]
    return pytest.approx(answer, rel=1e-7, abs=error) if isinstance(answer, float) else answer


def is_narrower(now: dict[str, Any], then: dict[str, Any]) -> bool:
    """Whether the same history says more than it did: narrower intervals that agree with then."""
    return _but_numbers(now) == _but_numbers(then) and all(
        new[1] - new[0] <= (old[1] - old[0]) * (1 + 1e-6)
        and max(new[0], old[0]) < min(new[1], old[1])
        for new, old in zip(_intervals(now), _intervals(then), strict=True)
    )


def _intervals(answer: dict[str, Any]) -> Iterator[tuple[float, float]]:
    """Every interval, as it was before it was cut at 0: a count is in the middle of its own.

    Then it was cut about a negative count, too, which it did not contain any more.
    """
    for one in answer["answers"]:
        column = answer["columns"].index(one["name"])
        for low, high, row in zip(one["low"], one["high"], answer["rows"], strict=True):
            yield (2 * row[column] - high if low == 0 else low), high


def _of_one_count(value: float, low: float, high: float) -> dict[str, Any]:
    answers = [{"name": "n", "low": [low], "high": [high]}]
    return {"columns": ["city", "n"], "rows": [["Oslo", value]], "answers": answers}


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [(-9.0, 5.0, True), (-13.0, 9.0, False), (-300.0, 9.0, False), (30.0, 40.0, False)],
)
def test_an_interval_is_compared_as_it_was_before_it_was_cut(
    low: float, high: float, expected: bool
) -> None:
    then = _of_one_count(-2.0, 0.0, 8.0)  # cut from -12
    assert is_narrower(_of_one_count((low + high) / 2, low, high), then) is expected


def _but_numbers(answer: Any) -> Any:
    if isinstance(answer, dict):
        return {name: _but_numbers(value) for name, value in answer.items()}
    if isinstance(answer, list):
        return [_but_numbers(value) for value in answer]
    return None if isinstance(answer, float) else answer


def said_then(now: Any, then: Any) -> Any:
    """What is said now, without the fields and notes that were added since; the others stay."""
    if isinstance(now, dict) and isinstance(then, dict):
        notes = [note for note in now.get("notes", ()) if note in then.get("notes", ())]
        known = now | {"notes": notes} if "notes" in now else now
        return {name: said_then(known[name], then[name]) for name in then if name in known}
    if isinstance(now, list) and isinstance(then, list) and len(now) == len(then):
        return [said_then(one, other) for one, other in zip(now, then, strict=True)]
    return now
