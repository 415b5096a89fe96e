"""A separate environment for Superset, whose libraries are older than Tacit's.

It is made once in a folder that the user names, and holds Superset's metadata besides.
"""

import os
import secrets
import subprocess
import sys
import venv
from dataclasses import dataclass
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[2]
# Three of them repair what Superset 6.1 leaves out or pins too widely.
PACKAGES: Final = (
    "apache-superset==6.1.0",
    "rich",
    "cachetools",
    "flask-caching==2.3.1",
    "gunicorn",
    "playwright",  # the test looks at the charts in a browser
    "psycopg2-binary",
    "adbc-driver-flightsql>=1.5",
    "adbc-driver-manager>=1.5",
)
ADMIN: Final = "admin"
# Charts ask for themselves, and never in the background; a private table has no rows to preview.
SETTINGS: Final = """\
SECRET_KEY = {secret!r}
SQLALCHEMY_DATABASE_URI = "sqlite:///{folder}/superset.db?check_same_thread=false"
WTF_CSRF_ENABLED = True
TALISMAN_ENABLED = False
PREVENT_UNSAFE_DB_CONNECTIONS = False
RATELIMIT_ENABLED = False
FEATURE_FLAGS = {{"DASHBOARD_RBAC": False}}
"""


@dataclass(frozen=True, slots=True)
class Environment:
    """A folder with an environment, its settings and its metadata."""

    folder: Path

    @property
    def is_installed(self) -> bool:
        """Whether Superset can be run."""
        return (self.folder / "installed").is_file()

    def program(self, name: str) -> str:
        """A program of the environment."""
        return str(self.folder / "venv" / "bin" / name)

    @property
    def variables(self) -> dict[str, str]:
        """The environment variables of its programs."""
        kept = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        return kept | {
            "SUPERSET_CONFIG_PATH": str(self.folder / "superset_config.py"),
            "SUPERSET_HOME": str(self.folder),
            "FLASK_APP": "superset",
        }

    def install(self) -> None:
        """Install Superset, unless that was done before; some minutes and 800 MB."""
        if self.is_installed:
            return
        self.folder.mkdir(parents=True, exist_ok=True)
        venv.create(self.folder / "venv", with_pip=True, clear=True)
        pip = [self.program("python"), "-m", "pip", "install", "--quiet"]
        self._run([*pip, *PACKAGES])
        # Tacit's own libraries are newer than Superset's: only its client is wanted here.
        self._run([*pip, "--no-deps", str(ROOT)])
        (self.folder / "installed").touch()

    def begin(self) -> str:
        """Make new metadata with one administrator, and return their password."""
        password = secrets.token_urlsafe(12)
        folder = self.folder.resolve()
        (folder / "superset.db").unlink(missing_ok=True)
        settings = SETTINGS.format(secret=secrets.token_urlsafe(32), folder=folder)
        (folder / "superset_config.py").write_text(settings)
        superset = self.program("superset")
        self._run([superset, "db", "upgrade"])
        names = [
            "--username",
            ADMIN,
            "--firstname",
            "A",
            "--lastname",
            "B",
            "--email",
            "a@b.example",
        ]
        self._run([superset, "fab", "create-admin", *names, "--password", password])
        self._run([superset, "init"])
        return password

    def serve(self, port: int) -> "subprocess.Popen[bytes]":
        """Start Superset's web server."""
        command = [
            self.program("gunicorn"),
            *("--bind", f"127.0.0.1:{port}", "--workers", "1", "--threads", "8"),
            *("--timeout", "120", "superset.app:create_app()"),
        ]
        with (self.folder / "superset.log").open("wb") as log:
            return subprocess.Popen(command, env=self.variables, stdout=log, stderr=log)  # noqa: S603 - the environment's own program

    def _run(self, command: list[str]) -> None:
        done = subprocess.run(  # noqa: S603 - the environment's own programs
            command, env=self.variables, check=False, capture_output=True
        )
        if done.returncode:
            sys.stderr.write(done.stderr.decode(errors="replace")[-4000:])
            raise RuntimeError(f"{' '.join(command[:3])} failed; its output is above")
