"""The page on tables that grow: its configuration runs, and its commands say what it shows."""

import datetime as dt
from pathlib import Path

import numpy as np
import pytest

from inference.noise_law.law import law_of_noise
from planner.workload import RequestedTarget
from proxy.api.requests import LOCAL, QueryRequest
from proxy.bootstrap import build
from proxy.cli import app as cli
from proxy.config.settings import load

PAGE = (Path(__file__).parents[2] / "docs" / "howto" / "growing.md").read_text()
CONFIGURATION = PAGE.split("```toml\n")[1].split("```")[0]
LATE = "  changed since it was closed: 2026-09-01 to 2026-09-30"
READABLE = "orders is readable through order_day 2026-10-31; 10 periods."


def write(folder: Path, more: str = "") -> None:
    days = [dt.date(2026, 1, 1) + dt.timedelta(days=place) for place in range(340)]
    rows = [f"{place},{day},Oslo" for place, day in enumerate(days)]
    (folder / "orders.csv").write_text("\n".join(["customer,order_day,city", *rows, more]))


def test_it_does_as_the_page_says(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(tmp_path)
    (tmp_path / "tacit.toml").write_text(CONFIGURATION)
    service = build(load(tmp_path / "tacit.toml"))
    try:
        request = QueryRequest(
            sql="SELECT COUNT(*) FROM orders", caller=LOCAL, target=RequestedTarget()
        )
        receipt = service.engine.answer(request).receipt
    finally:
        service.close()
    assert receipt is not None
    assert len(receipt.notes) > 1
    for note in receipt.notes:  # of a table as small as the test's, there is one more
        assert f"note: {note}" in PAGE or note.startswith("The half-width of count is above")
    write(tmp_path, "7,2026-09-12,Oslo\n")
    capsys.readouterr()
    with pytest.raises(SystemExit) as ended:
        cli.main(["table", "status", "--config", str(tmp_path / "tacit.toml")])
    assert ended.value.code == 1
    assert capsys.readouterr().out.splitlines() == [READABLE, LATE]
    assert f"{READABLE}\n    {LATE}" in PAGE


def test_the_table_of_stretches_is_that_of_sums_of_noises() -> None:
    """In plain answers: the weight at which so many noises together are as narrow as one."""

    def half_width(n_stretches: int) -> float:
        return law_of_noise(np.ones(n_stretches)).half_width(0.95)

    rows = {
        cells[0].strip(): [cell.strip() for cell in cells[1:]]
        for line in PAGE.splitlines()
        if len(cells := line.strip("| ").split("|")) == 7
    }
    days = [int(cell) for cell in rows["days"]]
    assert [int(cell) for cell in rows["bought anew each day"]] == days
    found = [round(half_width(n) / half_width(1), 1) for n in days]
    assert [float(cell) for cell in rows["stretches"]] == found
