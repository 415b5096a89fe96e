"""A coordinator or a holder, killed at every step of a purchase: paid once, and never lost."""

import json
import random
import signal
import time
from fractions import Fraction
from multiprocessing.process import BaseProcess
from pathlib import Path

import numpy as np
import pytest

from accountant.auditor.compare import compared
from accountant.auditor.verify import verify
from tests.support.dying_federation import (
    COUNTS,
    NAMES,
    SESSION,
    STEPS,
    Fate,
    coordinate,
    hold,
    holding,
    started,
)
from tests.support.killing import written

pytestmark = pytest.mark.processes

SECONDS_MAX = 120.0
N_TIMES = 3  # of a step in a session: in the first purchase, in the second, and in the raise
CASES = [
    (who, step, nth)
    for who, steps in STEPS.items()
    for step in steps
    for nth in range(1, N_TIMES + 1)
]


def tended(folder: Path, fates: dict[str, Fate]) -> set[str]:
    """Run a session to its end, starting again whatever dies; who died."""
    died = set()
    with holding(folder, fates) as holders:
        asking = started(coordinate, str(folder), fates.get("coordinator", Fate()))
        end = time.monotonic() + SECONDS_MAX
        while asking.exitcode != 0 and time.monotonic() < end:
            if is_dead(asking):
                died.add("coordinator")
                asking = started(coordinate, str(folder), Fate())
            for name, one in holders.items():
                if is_dead(one):
                    died.add(name)
                    holders[name] = started(hold, str(folder), name, Fate())
            time.sleep(0.02)
        assert asking.exitcode == 0
    return died


def is_dead(process: BaseProcess) -> bool:
    """Whether a process was killed; one that fails otherwise is an error."""
    if process.exitcode not in {None, 0}:
        assert process.exitcode == -signal.SIGKILL
    return process.exitcode == -signal.SIGKILL


def audited(folder: Path) -> dict[str, Fraction]:
    """What each holder charged, by its own ledger; all ledgers must agree."""
    ours = written(folder / "coordinator.ledger")
    theirs = {name: written(folder / f"{name}.ledger") for name in NAMES}
    for entries in (ours, *theirs.values()):
        verdict = verify(iter(entries))
        assert verdict.problem is None
        assert all(not one.n_pending for one in verdict.tables)
    found = compared(iter(ours), {name: iter(one) for name, one in theirs.items()})
    assert not found.problems
    assert not found.n_elsewhere
    assert not found.n_waiting
    assert all(not one.n_waiting and not one.n_given_up for one in found.holders)
    for name, entries in theirs.items():
        n_charges = sum(one.kind == "charge" for one in entries)
        n_measured = sum(one.kind == "measurement" for one in entries)
        assert n_charges == n_measured, name
    n_ours = sum(one.kind == "measurement" for one in ours)
    assert n_ours == sum(
        one.kind == "measurement" for entries in theirs.values() for one in entries
    )
    return {one.ledger: one.epsilon for one in found.holders}


def assert_same(found: dict[str, Fraction], undisturbed: dict[str, Fraction]) -> None:
    """The cost is the same but for rounding: a raise begins at what is known by then."""
    assert {name: float(one) for name, one in found.items()} == pytest.approx(
        {name: float(one) for name, one in undisturbed.items()}, rel=0.01
    )


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Fraction]:
    """What the session costs if nothing dies."""
    folder = tmp_path_factory.mktemp("undisturbed")
    assert not tended(folder, {})
    return audited(folder)


@pytest.mark.parametrize(("who", "step", "nth"), CASES)
def test_a_death_at_any_step_costs_time_and_no_budget(
    tmp_path: Path, undisturbed: dict[str, Fraction], who: str, step: str, nth: int
) -> None:
    assert tended(tmp_path, {who: Fate(step, nth)}) == {who}
    assert_same(audited(tmp_path), undisturbed)
    assert_answered(tmp_path)


OF_GAUSSIAN = [
    ("coordinator", "after charge", 3),
    ("coordinator", "before measurement", 1),
    ("south", "after charge", 1),
    ("south", "after noise", 3),
    ("south", "before reply", 3),
]


@pytest.fixture(scope="module")
def undisturbed_gaussian(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Fraction]:
    folder = tmp_path_factory.mktemp("gaussian")
    (folder / "delta").touch()
    assert not tended(folder, {})
    assert all('"precision_units"' in text for text in charges(folder))
    assert any('"raised_from"' in text for text in charges(folder))
    return audited(folder)


def charges(folder: Path) -> list[str]:
    """The coordinator's charges, as text."""
    entries = written(folder / "coordinator.ledger")
    return [one.body for one in entries if one.kind == "charge"]


@pytest.mark.parametrize(("who", "step", "nth"), OF_GAUSSIAN)
def test_a_death_during_gaussian_noise_costs_time_and_no_budget(
    tmp_path: Path, undisturbed_gaussian: dict[str, Fraction], who: str, step: str, nth: int
) -> None:
    (tmp_path / "delta").touch()
    assert tended(tmp_path, {who: Fate(step, nth)}) == {who}
    assert_same(audited(tmp_path), undisturbed_gaussian)
    assert_answered(tmp_path)


def assert_answered(folder: Path) -> None:
    """Everything is answered, near the truth, and free by now."""
    answers = json.loads((folder / "answers.json").read_text())
    assert len(answers) == len(SESSION)
    assert all(epsilon == 0 for _, epsilon in answers)
    truth = np.sum([COUNTS[name] for name in NAMES], axis=0)
    (count,), by_b, (again,) = (numbers for numbers, _ in answers)
    assert count == again
    assert abs(count - truth[0].sum()) < 20 * 6  # beyond it once in 10**7 runs
    for number, true in zip(by_b, truth.sum(axis=0), strict=True):
        assert abs(number - true) < 60 * 6


@pytest.mark.slow
def test_deaths_at_random_moments_cost_no_budget(
    tmp_path: Path, undisturbed: dict[str, Fraction]
) -> None:
    """Each process is killed now and then, also while it makes good what another's death left."""
    moments = random.Random(3)  # noqa: S311 - moments of a test
    for session in range(12):
        folder = tmp_path / str(session)
        folder.mkdir()
        with holding(folder, {}) as holders:
            asking = started(coordinate, str(folder), Fate())
            for _ in range(6):
                time.sleep(moments.uniform(0, 0.4))
                name = moments.choice(("coordinator", *NAMES))
                dying = asking if name == "coordinator" else holders[name]
                dying.kill()
                dying.join()
                if name == "coordinator":
                    asking = started(coordinate, str(folder), Fate())
                else:
                    holders[name] = started(hold, str(folder), name, Fate())
            asking.join(SECONDS_MAX)
            assert asking.exitcode == 0
        assert_same(audited(folder), undisturbed)
        assert_answered(folder)
