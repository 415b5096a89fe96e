"""Chromium without a window: what an HTML file looks like as a picture, or a page that does things.

Without Chromium its tests are skipped, unless TACIT_TESTS_NEED_SERVERS=1.
"""

import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.support.postgres import missing

PROGRAMS = ("chromium", "chromium-browser", "google-chrome")
FLAGS = (
    "--headless",
    "--no-sandbox",  # its sandbox does not work as root, nor in most containers
    "--disable-gpu",
    "--disable-dev-shm-usage",  # containers have little of it
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
)
SECONDS = 120
PNG = b"\x89PNG\r\n\x1a\n"


def find_chromium() -> str:
    """The program; the test is skipped if there is none."""
    found = next((path for name in PROGRAMS if (path := shutil.which(name))), None)
    if found is None:
        missing("there is no Chromium on this machine")
    return found


@contextmanager
def visiting(url: str, profile: Path) -> Iterator[None]:
    """Keep a page open for as long as the block runs; what it stores is in the profile's folder."""
    command = [find_chromium(), *FLAGS, f"--user-data-dir={profile}", "--remote-debugging-port=0"]
    with subprocess.Popen(  # noqa: S603 - a program that was looked for
        [*command, url], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as process:
        try:
            yield
        finally:
            process.terminate()  # in good order, so that what was stored is on the disk
            process.wait(SECONDS)


def screenshot(page: Path, picture: Path, *, width: int = 1200, height: int = 1600) -> None:
    """Make a PNG of what somebody sees who opens the file `page`."""
    program = find_chromium()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        done = subprocess.run(  # noqa: S603 - a program that was looked for
            [
                program,
                *FLAGS,
                f"--user-data-dir={profile}",
                f"--window-size={width},{height}",
                f"--screenshot={picture}",
                page.resolve().as_uri(),
            ],
            check=False,
            capture_output=True,
            timeout=SECONDS,
        )
    said = done.stderr.decode(errors="replace")[-2000:]
    assert done.returncode == 0, said
    assert picture.is_file(), said
    assert picture.read_bytes().startswith(PNG), said
