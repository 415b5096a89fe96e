"""Lines of the log that are written together: all of them, whole, in order, also by a fork."""

import io
import os
import threading
from pathlib import Path

from proxy.monitoring.logs import GatheredLines

N_THREADS, N_LINES = 8, 200


class Written(io.StringIO):
    """A stream that tells when it was written."""

    def __init__(self) -> None:
        super().__init__()
        self.flushed = threading.Event()

    def flush(self) -> None:
        self.flushed.set()


class Broken(io.StringIO):
    """A stream that cannot be written."""

    def write(self, _text: str) -> int:
        raise BrokenPipeError


def test_every_line_is_written_whole_and_in_the_order_of_its_thread() -> None:
    out = io.StringIO()
    lines = GatheredLines(out)

    def write(thread: int) -> None:
        for number in range(N_LINES):
            lines.write(f"{thread} {number}\n")

    threads = [threading.Thread(target=write, args=(one,)) for one in range(N_THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    lines.write_out()
    found = [tuple(map(int, line.split())) for line in out.getvalue().splitlines()]
    assert sorted(found) == [(one, n) for one in range(N_THREADS) for n in range(N_LINES)]
    for one in range(N_THREADS):
        assert [n for thread, n in found if thread == one] == list(range(N_LINES))


def test_lines_are_written_without_being_asked_for() -> None:
    out = Written()
    GatheredLines(out).write("a line\n")
    assert out.flushed.wait(30)
    assert out.getvalue() == "a line\n"


def test_a_stream_that_is_broken_stops_nobody() -> None:
    lines = GatheredLines(Broken())
    lines.write("lost\n")
    lines.write_out()
    lines.write("lost, too\n")


def test_a_fork_writes_its_own_lines_alone(tmp_path: Path) -> None:
    place = tmp_path / "log"
    with place.open("a") as out:
        lines = GatheredLines(out)
        lines.write("parent\n")
        child = os.fork()
        if not child:
            lines.write("child\n")
            lines.write_out()
            os._exit(0)
        os.waitpid(child, 0)
        lines.write_out()
    assert sorted(place.read_text().splitlines()) == ["child", "parent"]
