"""The demo of three hospitals and a coordinator, run as it is shown: four processes, an audit."""

import re

import numpy as np
import pytest

from examples.hospitals import demo
from examples.hospitals.patients import HOSPITALS, admitted

# Four servers take most of a fast test's time; tests/proxy/federation has smaller sessions.
pytestmark = [pytest.mark.processes, pytest.mark.slow]

N_PATIENTS = sum(one.n_patients for one in HOSPITALS)
# Noise of three counts at half-width 150 is beyond this once in a million runs.
SURE = 3 * 150 * 16 / 3


def test_the_demo_answers_over_all_hospitals_and_its_ledgers_agree(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert demo.main() == 0
    said = capsys.readouterr().out
    parts = dict(one.strip().split("\n", 1) for one in said.strip().split("\n\n"))
    counted = re.search(
        r"source\n +(\d+) .*measured", parts["How many patients do all hospitals have?"]
    )
    assert counted is not None
    assert abs(int(counted[1]) - N_PATIENTS) < SURE
    again = parts["The same again: free"]
    assert "epsilon spent 0;" in again
    assert "measured" not in again
    refused = parts["What is not known needs all three hospitals"]
    assert "refused: The holder valley of patients cannot be reached" in refused
    assert "1 of 3" in parts["or those that can answer, which the answer says"]
    assert "measured" in parts["valley is back: it alone is asked"]
    spent = re.findall(r"(\w+): epsilon ([\d.]+) of 5 spent", said)
    before, after = spent[:3], spent[3:]
    for (_, asked), (_, made) in zip(before, after, strict=True):
        of_each = float(demo.EPSILON) + float(demo.EVALUATE)
        assert float(made) == pytest.approx(float(asked) + 4 * of_each, abs=0.01)
    assert (
        len(re.findall(r"Mean distance of pairs of columns: at most 0\.\d+ \+- 0\.\d+", said)) == 4
    )
    assert "The ledgers agree." in said


def test_hospitals_differ_in_size_and_in_whom_they_treat() -> None:
    draw = np.random.default_rng(1)
    tables = [admitted(one, draw) for one in HOSPITALS]
    assert [one.num_rows for one in tables] == [one.n_patients for one in HOSPITALS]
    oldest = [sum(age == "80+" for age in one["age"].to_pylist()) / len(one) for one in tables]
    for share, hospital in zip(oldest, HOSPITALS, strict=True):
        assert abs(share - hospital.ages[-1]) < 5 * np.sqrt(0.25 / hospital.n_patients)
    for one in tables:
        days = one["days"].to_numpy()
        assert days.min() >= 1
        assert days.max() <= 14
