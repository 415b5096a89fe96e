"""A real process, killed at every step of the gate: what is spent, released and repeated."""

import signal
import subprocess
import sys
import time
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from accountant.gate.gate import Gate
from accountant.gate.opening import open_table
from accountant.ledger.limits import Payer
from accountant.ledger.opening import open_ledger
from accountant.noise.lattice_noise import SystemNoise
from cube.encoding import fingerprint
from cube.measurement import Measurement, PlannedMeasurement
from tests.support.auditing import audited
from tests.support.dying_gate import FIRSTS, SCHEMA, SECONDS, STEPS, TABLE, spent

ROOT = Path(__file__).resolve().parents[3]


def command(path: Path, step: str, second: str) -> list[str]:
    return [sys.executable, "-m", "tests.support.dying_gate", str(path), step, second]


def released(output: str) -> set[tuple[int, ...]]:
    return {tuple(map(int, line.split())) for line in output.splitlines()}


def answered(gate: Gate, asked: PlannedMeasurement) -> Measurement:
    """From history if it is there, else bought: what serving a query amounts to."""
    for known in gate.measurements():
        wanted = (fingerprint(asked.block), asked.weight)
        if (fingerprint(known.block), known.weight) == wanted:
            return known
    (bought,) = gate.measure([asked], Payer("bob"), epsilon_cap=None)
    return bought


@pytest.mark.parametrize("second", SECONDS)
@pytest.mark.parametrize("step", STEPS)
def test_a_process_killed_at_any_step_loses_no_privacy_and_no_budget(
    tmp_path: Path, step: str, second: str
) -> None:
    path = tmp_path / "people.ledger"
    died = subprocess.run(  # noqa: S603 - our own module
        command(path, step, second),
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert (died.returncode, died.stderr) == (-signal.SIGKILL, "")
    seen = released(died.stdout)
    assert len(seen) == 1, "the second answer was never released"

    report = audited(path)
    assert report.problem is None
    (table,) = report.tables
    n_charged = 1 if step == "before charge" else 2
    assert table.spent == spent(second, n_charged)
    assert table.n_pending == (0 if step in {"before charge", "after measurement"} else 1)

    with open_ledger(path) as ledger:
        gate = open_table(ledger, SCHEMA, Fraction(1000), TABLE, SystemNoise())
        assert gate.budget().spent == table.spent
        assert seen <= {known.lattice_values for known in gate.measurements()}
        asked = SECONDS[second]
        bought = answered(gate, asked)
        assert len(bought.lattice_values) == asked.block.n_rows
        assert bought.supersedes == asked.raised_from
        assert answered(gate, asked).lattice_values == bought.lattice_values
        assert len(gate.measurements()) == 2
        assert gate.budget().spent == spent(second, 2), "asked again, it is not charged again"
        assert not np.isnan(answered(gate, FIRSTS[second]).values).any()


@pytest.mark.slow
@pytest.mark.parametrize("second", SECONDS)
def test_a_process_killed_at_any_moment_has_recorded_whatever_it_released(
    tmp_path: Path, second: str
) -> None:
    delays = np.random.default_rng(0).uniform(0.4, 1.2, size=12)
    for place, delay in enumerate(delays):
        path = tmp_path / f"{place}.ledger"
        with subprocess.Popen(  # noqa: S603 - our own module
            command(path, "never", second), cwd=ROOT, stdout=subprocess.PIPE, text=True
        ) as process:
            time.sleep(delay)
            process.kill()
            output, _ = process.communicate(timeout=60)
        seen = released("\n".join(output.split("\n")[:-1]))
        with open_ledger(path) as ledger:
            gate = open_table(ledger, SCHEMA, Fraction(1000), TABLE, SystemNoise())
            known = gate.measurements()
            assert seen <= {measurement.lattice_values for measurement in known}
            assert gate.budget().spent == (spent(second, len(known)) if known else 0)
