"""Puts faults into the code, one at a time, and says which test catches each.

`python -m tests.mutations` works on a copy of what is committed. The tests of a changed module are
run as `make quick` orders them, the nearest first, in portions, until one fails. A fault that no
test catches is named at the end, and the exit code is 1. `--only WORD` takes the faults whose file
has the word.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from tests.quick import COSTS, ROOT, UNKNOWN_SECONDS, chosen

PORTIONS: Final = (20.0, 60.0, 180.0)  # seconds of tests that are run at once, then the last again
FAILED = re.compile(r"^(?:FAILED|ERROR) (.*?)(?: - .*)?$", re.MULTILINE)


class Fault(NamedTuple):
    """A text of a file, which occurs once, and what stands there instead."""

    file: str
    text: str
    instead: str


FAULTS: Final = (
    # The noise: a scale, a sign, an end.
    Fault(
        "accountant/noise/lattice_noise.py",
        "make_laplace(*space, scale=noise.scale_in_steps)",
        "make_laplace(*space, scale=noise.scale_in_steps * 1.15)",
    ),
    Fault(
        "accountant/noise/lattice_noise.py",
        "make_gaussian(*space, scale=noise.scale_in_steps)",
        "make_gaussian(*space, scale=noise.scale_in_steps * 1.15)",
    ),
    Fault(
        "accountant/noise/lattice_noise.py",
        "limit = 2**63 - 1 - self.lattice_bound(answer_bound)",
        "limit = 2**63 - 1",
    ),
    Fault(
        "accountant/noise/lattice_noise.py",
        "value - (answer << self.lattice_bits)",
        "value + (answer << self.lattice_bits)",
    ),
    Fault(
        "accountant/noise/lattice_noise.py",
        "return nearest if Fraction(nearest) >= value else math.nextafter(nearest, math.inf)",
        "return nearest",
    ),
    Fault(
        "accountant/noise/sampling.py",
        "return drawn if coarse_noise >= 0 else -drawn",
        "return drawn",
    ),
    Fault(
        "accountant/noise/sampling.py",
        "return geometric(2 * self.coarse_rate) < geometric(self._excess_rate)",
        "return geometric(self.coarse_rate) < geometric(self._excess_rate)",
    ),
    # What is counted, and what it costs.
    Fault("accountant/exact/exact_answers.py", "inside = labels >= 0", "inside = labels > 0"),
    Fault(
        "accountant/exact/exact_answers.py",
        "sum(abs(one - other) for one, other",
        "sum(one - other for one, other",
    ),
    Fault(
        "accountant/exact/exact_answers.py",
        "sum() > schema.n_records_max",
        "sum() > 2 * schema.n_records_max",
    ),
    Fault(
        "accountant/cost/row_cost.py",
        "return int(np.bincount(group, n_levels[found])[1:].max())",
        "return int(np.bincount(group, n_levels[found])[1:].min())",
    ),
    # The gate: a check that is left out, an order that is another, a turn that is taken twice.
    Fault(
        "accountant/gate/gate.py",
        "        pricing.refuse(price, payer, epsilon_cap)\n        blocks = tuple(",
        "        blocks = tuple(",
    ),
    Fault(
        "accountant/gate/gate.py",
        "body if _is_turn(history, seq, turn) else None",
        "body",
    ),
    Fault(
        "accountant/gate/gate.py",
        "        seq = self._ledger.append(self.schema.table, charged)\n        payment",
        "        self._release._read_and_add_noise(\n"
        "            self._rows(self.history), charged(self.history), self.history\n"
        "        )\n"
        "        seq = self._ledger.append(self.schema.table, charged)\n        payment",
    ),
    Fault(
        "accountant/gate/pricing.py",
        "if units > history.units_left:",
        "if units > history.units_left + 1:",
    ),
    Fault(
        "accountant/gate/pricing.py",
        "if epsilon_cap is not None and price.epsilon > epsilon_cap:",
        "if epsilon_cap is not None and price.epsilon > 2 * epsilon_cap:",
    ),
    # The ledger: windows, credentials.
    Fault("accountant/ledger/limits.py", "(day.month - 1) % 3", "day.month % 3"),
    Fault("accountant/ledger/limits.py", "Window.MONTH: 31,", "Window.MONTH: 30,"),
    Fault(
        "accountant/ledger/credentials.py",
        "return None if found is None or found.id in self.revoked else found",
        "return found",
    ),
    # What is known: widths, and which estimate is taken.
    Fault(
        "inference/block_estimates.py",
        "return np.asarray(of_law[self.law_of] + self.lattice_widenings)",
        "return np.asarray(of_law[self.law_of])",
    ),
    Fault(
        "inference/block_estimates.py",
        "is_first = widths <= other_widths",
        "is_first = widths >= other_widths",
    ),
    Fault(
        "inference/noise_law/law.py",
        "self._unit_half_width((1 - confidence) / 2)",
        "self._unit_half_width(1 - confidence)",
    ),
    Fault(
        "inference/blue/blue.py",
        "coordinates = (rows * self.sizes) @ self.basis.T",
        "coordinates = rows @ self.basis.T",
    ),
    # The planner: prices, centres, conditions.
    Fault(
        "planner/measuring/weights.py",
        "nats = -math.log1p(-target.confidence) + LATTICE_SHARE",
        "nats = -math.log1p(-target.confidence) / 2 + LATTICE_SHARE",
    ),
    Fault(
        "planner/measuring/weights.py",
        "return -NormalDist().inv_cdf((1 - confidence) / 2)",
        "return -NormalDist().inv_cdf(1 - confidence)",
    ),
    Fault(
        "planner/lowering/formulas.py",
        "middle = (low + high) / 2",
        "middle = (low + high) / 3",
    ),
    Fault(
        "planner/lowering/summands.py",
        "Term(known.scale + term.scale, term.factors)",
        "Term(known.scale - term.scale, term.factors)",
    ),
    # The process: what is hidden, what is kept of a unit, an empty group.
    Fault(
        "proxy/tables/disclosure.py",
        "return ShownEntries.of(history, caller) if is_open else NO_ENTRIES",
        "return ShownEntries.of(history, caller)",
    ),
    Fault(
        "proxy/tables/disclosure.py",
        "steps = min(int(spent / limit * N_SHOWN_STEPS) + 1, N_SHOWN_STEPS)",
        "steps = min(int(spent / limit * N_SHOWN_STEPS), N_SHOWN_STEPS)",
    ),
    Fault(
        "proxy/sources/bounding.py",
        "_first(schema.rows_per_unit_max, UNIT, order, found)",
        "_first(schema.rows_per_unit_max + 1, UNIT, order, found)",
    ),
    Fault(
        "proxy/engine/answers/simulation.py",
        "return np.where(total > 0, found, np.nan)",
        "return np.where(total >= 0, found, np.nan)",
    ),
    # Best reports: noise that counts twice, a prior that is bought, an interval that is too short.
    Fault(
        "proxy/engine/best_reports.py",
        "if name == table:",
        "if name == table and not name:",
    ),
    Fault(
        "proxy/engine/best_reports.py",
        "RequestedTarget(epsilon_cap=Fraction(0), fallback=Fallback.HISTORY)",
        "RequestedTarget(fallback=Fallback.HISTORY)",
    ),
    Fault(
        "proxy/engine/best_reports.py",
        "if not set(named) <= set(self._public):",
        "if not named and not self._public:",
    ),
    Fault(
        "inference/remap.py",
        "last = np.searchsorted(up_to[1:], up_to[:-1] + wanted)",
        "last = np.searchsorted(up_to[1:], up_to[:-1] + wanted * 0.9)",
    ),
)


def portions(files: Iterable[str], costs: dict[str, float]) -> Iterator[list[str]]:
    """Files of tests in their order, a few cheap ones at first."""
    waiting, spent, sizes = list[str](), 0.0, list(PORTIONS)
    for file in files:
        waiting.append(file)
        spent += costs.get(file, UNKNOWN_SECONDS)
        if spent >= sizes[0]:
            yield waiting
            waiting, spent = [], 0.0
            if len(sizes) > 1:
                sizes.pop(0)
    if waiting:
        yield waiting


def caught_by(copy: Path, fault: Fault, costs: dict[str, float]) -> str | None:
    """The first test that fails with a fault in a copy; None if none does."""
    path = copy / fault.file
    before = path.read_text(encoding="utf-8")
    if before.count(fault.text) != 1:
        raise ValueError(f"{fault.file} has {fault.text!r} {before.count(fault.text)} times")
    path.write_text(before.replace(fault.text, fault.instead), encoding="utf-8")
    try:
        for files in portions(chosen([Path(fault.file)], costs, float("inf")), costs):
            found = _failing(copy, files)
            if found is not None:
                return found
        return None
    finally:
        path.write_text(before, encoding="utf-8")


def _failing(copy: Path, files: Sequence[str]) -> str | None:
    command = [sys.executable, "-m", "pytest", "-n", "2", "-x", "-p", "no:cacheprovider", *files]
    own = {"PYTHONPATH": str(copy)}
    done = subprocess.run(  # noqa: S603 - our own tests
        command, cwd=copy, check=False, capture_output=True, text=True, env=os.environ | own
    )
    if not done.returncode:
        return None
    found = FAILED.search(done.stdout)
    return found[1] if found else done.stdout[-300:]


def main() -> int:
    """Try the faults; 1 if any is not caught."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("--only", default="", help="the faults whose file has this word")
    only = parser.parse_args().only
    costs = json.loads(COSTS.read_text(encoding="utf-8"))
    missed = 0
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "copy"
        command = ["git", "worktree", "add", "--detach", str(copy), "HEAD"]
        subprocess.run(command, cwd=ROOT, check=True, capture_output=True)  # noqa: S603 - git, with words of ours
        try:
            for fault in (one for one in FAULTS if only in one.file):
                begun = time.monotonic()
                found = caught_by(copy, fault, costs)
                missed += found is None
                taken = f"{time.monotonic() - begun:.0f} s"
                said = found or "NOT CAUGHT"
                sys.stdout.write(f"{fault.file}: {fault.instead!r} ({taken})\n    {said}\n")
                sys.stdout.flush()
        finally:
            command = ["git", "worktree", "remove", "--force", str(copy)]
            subprocess.run(command, cwd=ROOT, check=True)  # noqa: S603 - the same
    return min(missed, 1)


if __name__ == "__main__":
    sys.exit(main())
