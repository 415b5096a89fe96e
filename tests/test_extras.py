"""What needs an extra says so, and nothing else needs one: a server starts without any."""

import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
# What the extras of pyproject.toml bring along, and what only tests and benchmarks use.
EXTRAS = (
    *("adbc_driver_manager", "adbc_driver_flightsql", "adbc_driver_postgresql"),
    *("pyspark", "psycopg", "matplotlib", "pandas", "polars", "sqlalchemy", "pytest", "hypothesis"),
)
NEEDS_NONE = """
import sys
sys.modules |= dict.fromkeys({extras}, None)
import proxy.bootstrap, proxy.cli.app, proxy.cli.serve, proxy.cli.ask, proxy.cli.audit
from pathlib import Path
from accountant.ledger import open_ledger
from cube.refusals import CannotStart
from accountant.ledger.opening import open_postgres_reader
with open_ledger(Path(sys.argv[1])) as ledger:
    assert not list(ledger.entries())
try:
    open_postgres_reader("postgresql://localhost/ledger")
except CannotStart as refusal:
    print(refusal.hint)
"""


def test_the_solver_is_part_of_the_plain_install_and_loaded_when_it_is_needed() -> None:
    with (ROOT / "pyproject.toml").open("rb") as file:
        project = tomllib.load(file)["project"]
    named = [one.partition(">=")[0] for one in project["dependencies"]]
    assert "cvxpy" in named
    assert "plan" not in project["optional-dependencies"]
    code = "import sys, proxy.bootstrap, proxy.cli.serve; print('cvxpy' in sys.modules)"
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)  # noqa: S603 - our own code
    assert done.stdout.strip() == "False"


def test_a_server_starts_without_any_extra(tmp_path: Path) -> None:
    code = NEEDS_NONE.format(extras=EXTRAS)
    command = [sys.executable, "-c", code, str(tmp_path / "a.ledger")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)  # noqa: S603 - our own code
    assert done.returncode == 0, done.stderr
    assert "tacit-dp[postgres-ledger]" in done.stdout
