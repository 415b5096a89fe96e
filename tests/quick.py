"""The tests of what changed, nearest first, in a minute and a half: `make quick`.

A module of tests is near what it imports: a test of a changed module is nearest, then a test of a
module that imports it, and so on. They are taken in that order, cheap ones first, until the costs
that were recorded for them fill the budget. `python -m pytest --costs` records these anew.

What changed is what differs from the branch `main`, committed or not; on `main` itself, from the
commit before.
"""

import json
import re
import subprocess
import sys
from collections import deque
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
COSTS = ROOT / "tests" / "costs.json"
PACKAGES = (
    *("cube", "accountant", "inference", "planner", "synthesis", "local_dp", "streams", "proxy"),
    *("tacit_client", "tests", "benchmarks", "examples"),
)
BUDGET_SECONDS = 110.0  # of processor time, on two cores, beside looking for tests
UNKNOWN_SECONDS = 2.0  # of a module whose cost was never recorded
# As text: to parse every file takes seconds. Comments in a list only add names that are nowhere.
_IMPORT = re.compile(
    r"^ *(?:from|import) (?P<source>[\w.]+)(?: import (?P<members>\([^)]*\)|[^\n]*))?", re.MULTILINE
)
_WORD = re.compile(r"\w+")
ALWAYS = ("tests/test_architecture.py",)


@cache
def modules() -> dict[str, Path]:
    """Every module by its name with dots; a package by that of its folder."""
    found = {}
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            name = path.relative_to(ROOT).with_suffix("").as_posix().replace("/", ".")
            found[name.removesuffix(".__init__")] = path
    return found


@cache
def names_in(path: Path) -> tuple[tuple[str, str], ...]:
    """What a module imports: from where, and which name; no name of a plain import."""
    found: list[tuple[str, str]] = []
    for one in _IMPORT.finditer(path.read_text(encoding="utf-8")):
        members = one["members"] or ""
        found += ((one["source"], word) for word in _WORD.findall(members) or [""])
    return tuple(found)


def imported(name: str) -> set[str]:
    """The modules that a module uses: of a name that a package shows, where it comes from."""
    found = set()
    for source, member in names_in(modules()[name]):
        inner = f"{source}.{member}"
        if inner in modules():
            found.add(inner)
        elif source in modules():
            found.add(_behind(source, member) or source)
    return found - {name}


@cache
def _behind(face: str, member: str) -> str | None:
    """The module from which a package shows a name."""
    path = modules()[face]
    if path.name != "__init__.py":
        return None
    places = (source for source, shown in names_in(path) if shown == member)
    return next((one for one in places if one in modules()), None)


def distances(changed: Iterable[str]) -> dict[str, int]:
    """How many imports lie between each module and the nearest changed one."""
    importers: dict[str, set[str]] = {}
    for name in modules():
        for one in imported(name):
            importers.setdefault(one, set()).add(name)
    found = dict.fromkeys(changed, 0)
    waiting = deque(found)
    while waiting:
        name = waiting.popleft()
        for one in importers.get(name, ()):
            if one not in found:
                found[one] = found[name] + 1
                waiting.append(one)
    return found


def chosen(changed: Iterable[Path], costs: Mapping[str, float], budget: float) -> list[str]:
    """The files of tests to run, the nearest first.

    Parameters
    ----------
    changed : iterable of Path
        Files in the repository, by their paths within it.
    costs : mapping of str to float
        The seconds that each file of tests takes.
    budget : float
        The seconds that all of them may take.
    """
    named = {path.relative_to(ROOT): name for name, path in modules().items()}
    found = {
        modules()[name].relative_to(ROOT).as_posix(): distance
        for name, distance in distances(named[one] for one in changed if one in named).items()
    }
    for one in changed:
        if one not in named:  # a fixture is read by the tests beside it, a page by those of docs
            folder = "tests/docs" if one.suffix == ".md" else one.parent.as_posix()
            near = (ROOT / folder).glob("test_*.py") if folder.startswith("tests") else ()
            found |= {path.relative_to(ROOT).as_posix(): 0 for path in near}
    # The tests of a folder are in a folder of the same name, and first: they were written for it.
    beside = {f"tests/{one.parent.as_posix()}" for one in changed}
    tests = [one for one in found if Path(one).name.startswith("test_")]
    tests.sort(
        key=lambda one: (
            Path(one).parent.as_posix() not in beside,
            found[one],
            costs.get(one, UNKNOWN_SECONDS),
        )
    )
    taken: list[str] = []
    left = budget
    for file in dict.fromkeys((*ALWAYS, *tests)):
        left -= costs.get(file, UNKNOWN_SECONDS)
        if left < 0:
            break
        taken.append(file)
    return taken


def changed_files() -> list[Path]:
    """What differs from `main`, or on it from the commit before; what is not tracked as well."""
    base = _git("merge-base", "HEAD", "main")[0]
    if base == _git("rev-parse", "HEAD")[0]:
        base = "HEAD~1"
    differing = _git("diff", "--name-only", base)
    untracked = _git("ls-files", "--others", "--exclude-standard")
    return [Path(one) for one in (*differing, *untracked) if (ROOT / one).exists()]


def _git(*words: str) -> list[str]:
    command = ["git", *words]
    done = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)  # noqa: S603 - git, with words of ours
    return done.stdout.split("\n")[:-1]


def main() -> int:
    """Run the tests; the exit code of pytest."""
    changed = changed_files()
    costs = json.loads(COSTS.read_text(encoding="utf-8"))
    files = chosen(changed, costs, BUDGET_SECONDS)
    seconds = sum(costs.get(one, UNKNOWN_SECONDS) for one in files)
    sys.stderr.write(
        f"{len(changed)} files changed: {len(files)} files of tests, {seconds:.0f} s\n"
    )
    command = [sys.executable, "-m", "pytest", "-n", "2", "--dist", "worksteal", *files]
    return subprocess.run(command, cwd=ROOT, check=False).returncode  # noqa: S603 - our own tests


if __name__ == "__main__":
    sys.exit(main())
