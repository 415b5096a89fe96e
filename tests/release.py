"""A wheel, tried as its users get it: `make release`.

It is installed into an empty environment outside of the checkout, first without any extra: there
the session of the README has to print what the README shows. Then with the extra of clients, where
the demo runs.
"""

import subprocess
import sys
import tempfile
import venv
from pathlib import Path

from tests.support.console_page import ROOT, Command, agrees, shell, steps

DEMO_SECONDS_MAX = 600.0


def install(python: Path, wheel: Path, extras: str = "") -> None:
    """Install the wheel, and what it needs, into the environment of an interpreter."""
    # Isolated: in a checkout that PYTHONPATH names, pip would find Tacit installed already.
    command = [str(python), "-I", "-m", "pip", "install", "--quiet", f"{wheel.resolve()}{extras}"]
    subprocess.run(command, check=True)  # noqa: S603 - our own wheel


def differing(python: Path) -> list[str]:
    """The commands of the README that print something else than the README shows."""
    page = (ROOT / "README.md").read_text(encoding="utf-8")
    found = []
    with shell(python) as run_in:
        for step in steps(page):
            printed = run_in.run(step)
            if isinstance(step, Command) and not agrees(printed, step.output):
                found.append(f"$ {step.line}\n{printed}")
    return found


def demo_fails(python: Path) -> str:
    """What the demo says if it does not run; nothing if it does."""
    with shell(python) as run_in:
        done = subprocess.run(  # noqa: S603 - our own demo
            [python, "-m", "examples.adult.demo"],
            cwd=run_in.folder,
            env=run_in.environment,
            capture_output=True,
            text=True,
            timeout=DEMO_SECONDS_MAX,
            check=False,
        )
    return "" if done.returncode == 0 else done.stdout + done.stderr


def main(wheel: Path) -> int:
    """Try a wheel; 1 if something is not as it should be."""
    with tempfile.TemporaryDirectory(prefix="tacit-release-") as name:
        venv.create(name, with_pip=True)
        python = Path(name) / "bin" / "python"
        install(python, wheel)
        wrong = differing(python)
        install(python, wheel, "[client]")
        wrong += filter(None, [demo_fails(python)])
    for one in wrong:
        sys.stderr.write(f"{one}\n")
    sys.stderr.write(f"{wheel.name}: {'as it should be' if not wrong else 'not to be released'}\n")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
