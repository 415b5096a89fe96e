"""The wheel in environments of their own: the dialect is found there, on every SQLAlchemy.

Environments are kept in pytest's cache; only the wheel is built and installed again.
"""

import shutil
import subprocess
import sys
import venv
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SESSION = Path(__file__).with_name("dialect_session.py")
DRIVER = ("adbc-driver-flightsql>=1.5", "adbc-driver-manager>=1.5")
# pandas asks for SQLAlchemy 2 from its own 2.2 on, and older ones for an older NumPy and Arrow.
VERSIONS = {
    "1.4": ("sqlalchemy>=1.4,<2", "pandas<2.2", "numpy<2", "pyarrow>=18,<19"),
    "2.0": ("sqlalchemy>=2.0,<2.1", "pandas>=2.2", "pyarrow>=18"),
    "2.1": ("sqlalchemy>=2.1,<2.2", "pandas>=2.2", "pyarrow>=18"),
}
SECONDS_MAX = 600


def ran(*command: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(  # noqa: S603 - the test's own commands
        [str(word) for word in command],
        capture_output=True,
        text=True,
        timeout=SECONDS_MAX,
        check=False,
        cwd=ROOT,
    )


def pip(python: object, *arguments: object) -> None:
    """Run pip; skip if there is no index to install from."""
    ended = ran(python, "-m", "pip", "--disable-pip-version-check", *arguments)
    if "No matching distribution" in ended.stderr or "Failed to establish" in ended.stderr:
        pytest.skip("there is no package index here")
    assert ended.returncode == 0, ended.stderr[-2000:]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    # A copy, because building leaves files behind that would be in the next wheel.
    kept_out = shutil.ignore_patterns(".*", "build", "tests", "docs", "benchmarks", "examples")
    shutil.copytree(ROOT, folder / "source", ignore=kept_out)
    pip(sys.executable, "wheel", "--quiet", "--no-deps", "-w", folder, folder / "source")
    (built,) = folder.glob("*.whl")
    return built


@pytest.mark.slow
@pytest.mark.parametrize("version", VERSIONS)
def test_the_dialect_works_from_the_wheel(
    version: str, wheel: Path, address: str, pytestconfig: pytest.Config
) -> None:
    assert pytestconfig.cache is not None
    folder = pytestconfig.cache.mkdir(f"sqlalchemy-{version}")
    python = folder / "bin" / "python"
    wanted, has = (*DRIVER, *VERSIONS[version]), folder / "installed.txt"
    if not has.exists() or has.read_text() != "\n".join(wanted):
        venv.create(folder, with_pip=True, clear=True)
        pip(python, "install", "--quiet", *wanted)
        has.write_text("\n".join(wanted))
    pip(python, "install", "--quiet", "--no-deps", "--force-reinstall", wheel)
    ended = ran(python, "-I", "-W", "error", SESSION, address)
    assert ended.returncode == 0, ended.stderr[-3000:]
    assert ended.stdout.startswith(version)
