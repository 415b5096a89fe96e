"""What a test costs in processor time: a fast one has a limit, and `--costs` records all.

Processor time is that of the process and of those that it waited for, so that a busy machine fails
no test. What a fixture of several tests costs counts for the first of them, and towards no limit.
"""

import json
import resource
from collections.abc import Generator
from pathlib import Path
from typing import Any, Final

import pytest

FILE: Final = Path(__file__).resolve().parents[1] / "costs.json"
# Of a test that is not marked slow; few take more than 1. To start a server takes 2 by itself.
LIMIT_SECONDS: Final = 6.0
LIMIT_WITH_PROCESSES: Final = 25.0
TOO_DEAR: Final = (
    "This test takes {seconds:.1f} s of processor time; a fast one takes at most {limit:g} s. Try "
    "fewer examples, a smaller table, or mark it slow beside a small twin."
)
PROPERTY: Final = "processor_seconds"
_SPENT: Final = pytest.StashKey[list[float]]()


def seconds() -> float:
    """The processor time of this process and its children until now."""
    used = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(one.ru_utime + one.ru_stime for one in used)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--costs", action="store_true", help="record what each file of tests takes")


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("--costs") and not hasattr(config, "workerinput"):
        config.pluginmanager.register(Recorder())


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> Generator[None, Any, Any]:
    begun = seconds()
    item.stash[_SPENT] = []
    try:
        return (yield)
    finally:
        item.stash[_SPENT].append(seconds() - begun)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, Any, Any]:
    begun = seconds()
    try:
        return (yield)
    finally:
        item.stash[_SPENT].append(seconds() - begun)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if call.when == "call":
        spent = item.stash[_SPENT]
        item.user_properties.append((PROPERTY, sum(spent)))
        report.user_properties = list(item.user_properties)
        limit = LIMIT_WITH_PROCESSES if item.get_closest_marker("processes") else LIMIT_SECONDS
        if report.passed and spent[-1] > limit and not item.get_closest_marker("slow"):
            report.outcome = "failed"
            report.longrepr = TOO_DEAR.format(seconds=spent[-1], limit=limit)
    return report


class Recorder:
    """Adds the costs up by file, and writes them when the tests are over."""

    def __init__(self) -> None:
        self._costs: dict[str, float] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "call":
            file = report.nodeid.split("::")[0]
            told = [cost for name, cost in report.user_properties if name == PROPERTY]
            spent = sum(cost for cost in told if isinstance(cost, float))
            self._costs[file] = self._costs.get(file, 0.0) + spent

    def pytest_sessionfinish(self) -> None:
        before = json.loads(FILE.read_text(encoding="utf-8")) if FILE.exists() else {}
        root = FILE.parents[1]
        known = {one: cost for one, cost in before.items() if (root / one).exists()}
        known |= {one: round(cost, 1) for one, cost in self._costs.items()}
        FILE.write_text(json.dumps(dict(sorted(known.items())), indent=0) + "\n", encoding="utf-8")
