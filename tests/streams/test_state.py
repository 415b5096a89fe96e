"""The state: its law, its file, and what is not in it."""

import fcntl
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from cube.refusals import DataChanged, StoreUnavailable
from streams.randomness import GRID, TwoPoint
from streams.state import HEADER, BitState, erase_file, file_length
from tests.support.entropy import SeededWords, WrittenWords

LAW = TwoPoint.for_epsilon(Fraction(1))
NAME = bytes(range(32))
DEVIATIONS = 6  # odds of one in 500 million


def bits_of(path: Path, n_bits: int) -> NDArray[np.uint8]:
    return np.unpackbits(np.frombuffer(path.read_bytes()[HEADER.size :], np.uint8))[:n_bits]


def ids(*places: int) -> NDArray[np.int64]:
    return np.array(places, dtype=np.int64)


def test_a_bit_follows_its_word_and_the_last_draw_stands(tmp_path: Path) -> None:
    one, zero = LAW.threshold - 1, LAW.threshold
    absent_one, absent_zero = GRID - LAW.threshold - 1, GRID - LAW.threshold
    begun = [absent_one, absent_zero] * 5
    words = WrittenWords(*begun, one, zero, one, zero, absent_zero)
    path = tmp_path / "state"
    state = BitState.created(path, 10, LAW, NAME, entropy=words)
    assert bits_of(path, 10).tolist() == [1, 0] * 5
    state.redraw(ids(9, 8, 1, 9), present=True)
    assert bits_of(path, 10).tolist() == [1, 1, 1, 0, 1, 0, 1, 0, 0, 0]
    state.redraw(ids(0), present=False)
    assert bits_of(path, 10).tolist() == [0, 1, 1, 0, 1, 0, 1, 0, 0, 0]
    assert state.count_ones() == 4
    assert words.n_drawn == 15
    state.close()


def test_a_batch_does_what_its_arrivals_do_one_by_one(tmp_path: Path) -> None:
    """Users who come several times in one call, and users who share a byte."""
    rng = np.random.default_rng(3)
    n_bits = 77
    states = [
        BitState.created(tmp_path / name, n_bits, LAW, NAME, entropy=SeededWords(5))
        for name in ("together", "apart")
    ]
    for _ in range(50):
        batch = rng.integers(0, n_bits, 60)
        states[0].redraw(batch, present=True)
        for place in batch:
            states[1].redraw(ids(place), present=True)
        # Both draw from one row of words, in one order.
        assert states[0].count_ones() == states[1].count_ones()
    together, apart = (bits_of(state.path, n_bits) for state in states)
    assert np.array_equal(together, apart)
    for state in states:
        state.close()


@pytest.mark.parametrize("n_present", [0, 30_000, 100_000])
def test_bits_of_present_and_absent_users_have_their_laws(tmp_path: Path, n_present: int) -> None:
    n_bits = 100_000
    state = BitState.created(tmp_path / "state", n_bits, LAW, NAME)
    arrivals = np.random.default_rng(1).permutation(np.arange(n_present).repeat(3))
    state.redraw(arrivals, present=True)
    bits = bits_of(state.path, n_bits)
    deviation = float((LAW.p0 * LAW.p1) ** 0.5)
    for kind, chance in ((bits[:n_present], LAW.p1), (bits[n_present:], LAW.p0)):
        if kind.size:
            off = (kind.mean() - float(chance)) / (deviation / kind.size**0.5)
            assert abs(off) < DEVIATIONS
    state.redraw(np.arange(n_present), present=False)
    off = (state.count_ones() - n_bits * float(LAW.p0)) / (deviation * n_bits**0.5)
    assert abs(off) < DEVIATIONS  # who left is as one who never came
    state.close()


def test_two_arrivals_of_a_user_are_independent_draws(tmp_path: Path) -> None:
    state = BitState.created(tmp_path / "state", 50_000, LAW, NAME)
    everyone = np.arange(50_000)
    state.redraw(everyone, present=True)
    first = bits_of(state.path, 50_000).astype(float)
    state.redraw(everyone, present=True)
    second = bits_of(state.path, 50_000).astype(float)
    correlation = float(np.corrcoef(first, second)[0, 1])
    assert abs(correlation) * 50_000**0.5 < DEVIATIONS
    state.close()


def test_nothing_is_in_the_file_but_a_header_written_once_and_bits(tmp_path: Path) -> None:
    """The same length for any stream; nothing but bits of users who came is touched."""
    n_bits = 1003
    path = tmp_path / "state"
    state = BitState.created(path, n_bits, LAW, NAME)
    begun = path.read_bytes()
    for _ in range(20):
        state.redraw(np.arange(8, 16).repeat(100), present=True)
        state.sync()
    after = path.read_bytes()
    assert len(begun) == len(after) == file_length(n_bits) == HEADER.size + 126
    assert begun[: HEADER.size + 1] == after[: HEADER.size + 1]
    assert begun[HEADER.size + 2 :] == after[HEADER.size + 2 :]
    assert after[-1] & 0b11111 == 0  # behind the last user there is nothing
    assert [entry.name for entry in tmp_path.iterdir()] == ["state"]
    assert path.stat().st_mode & 0o777 == 0o600
    state.close()


def test_a_state_goes_on_where_it_was_left(tmp_path: Path) -> None:
    path = tmp_path / "state"
    state = BitState.created(path, 1000, LAW, NAME)
    state.redraw(np.arange(500), present=True)
    held = bits_of(path, 1000)
    state.close()
    again = BitState.opened(path, 1000, LAW, NAME)
    assert again.count_ones() == held.sum()
    again.redraw(ids(3), present=True)
    assert np.array_equal(np.delete(bits_of(path, 1000), 3), np.delete(held, 3))
    again.close()


def test_a_process_that_dies_loses_no_arrival(tmp_path: Path) -> None:
    """It is killed right behind the call, without a sync or a close."""
    path = tmp_path / "state"
    program = f"""
import os, signal
from pathlib import Path
import numpy as np
from streams.state import BitState
from streams.randomness import TwoPoint
state = BitState.created(Path({str(path)!r}), 20_000, TwoPoint({LAW.threshold}), bytes(range(32)))
state.redraw(np.arange(20_000), present=True)
os.kill(os.getpid(), signal.SIGKILL)
"""
    subprocess.run([sys.executable, "-c", program], check=False)  # noqa: S603 - our own program
    state = BitState.opened(path, 20_000, LAW, NAME)
    off = state.count_ones() - 20_000 * float(LAW.p1)
    assert abs(off) < DEVIATIONS * (20_000 * float(LAW.p0 * LAW.p1)) ** 0.5
    state.close()


def test_calls_at_the_same_time_lose_nothing_of_each_other(tmp_path: Path) -> None:
    """Users who share bytes arrive in two threads, while a third one counts.

    With this law a user who came has a 1, but for one of 10**14.
    """
    sure = TwoPoint.for_epsilon(Fraction(32))
    state = BitState.created(tmp_path / "state", 4000, sure, NAME)
    everyone = np.arange(4000)
    with ThreadPoolExecutor(3) as pool:
        for _ in range(20):
            state.redraw(everyone, present=False)
            calls = [pool.submit(state.redraw, everyone[half::2], present=True) for half in (0, 1)]
            counted = pool.submit(state.count_ones)
            for call in calls:
                call.result()
            assert 0 <= counted.result() <= 4000
            assert state.count_ones() == 4000
    state.close()


def test_another_file_is_never_gone_on_with(tmp_path: Path) -> None:
    path = tmp_path / "state"
    BitState.created(path, 1000, LAW, NAME).close()
    whole = path.read_bytes()
    with pytest.raises(FileExistsError):
        BitState.created(path, 1000, LAW, NAME)
    assert path.read_bytes() == whole
    other_law = TwoPoint.for_epsilon(Fraction(2))
    for n_bits, law, name in ((1001, LAW, NAME), (1000, other_law, NAME), (1000, LAW, bytes(32))):
        with pytest.raises(DataChanged):
            BitState.opened(path, n_bits, law, name)
    for changed in (whole[:-1], whole + b"\0", b"", b"x" + whole[1:]):
        path.write_bytes(changed)
        with pytest.raises(DataChanged):
            BitState.opened(path, 1000, LAW, NAME)
    path.unlink()
    with pytest.raises(DataChanged, match="is missing"):
        BitState.opened(path, 1000, LAW, NAME)


def test_two_processes_never_have_one_state(tmp_path: Path) -> None:
    state = BitState.created(tmp_path / "state", 1000, LAW, NAME)
    with pytest.raises(StoreUnavailable):
        BitState.opened(state.path, 1000, LAW, NAME)
    state.close()
    BitState.opened(state.path, 1000, LAW, NAME).close()


def test_a_disk_that_is_full_says_so_before_anybody_arrives(tmp_path: Path) -> None:
    """The limit on a file's size stands for it: writing fails in the same place."""
    program = f"""
import resource, signal
from pathlib import Path
from streams.state import BitState
from streams.randomness import TwoPoint
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
try:
    BitState.created(Path({str(tmp_path / "state")!r}), 10**6, TwoPoint({LAW.threshold}), bytes(32))
except OSError:
    print("said")
"""
    done = subprocess.run(  # noqa: S603 - our own program
        [sys.executable, "-c", program], check=True, capture_output=True, text=True
    )
    assert done.stdout == "said\n"
    assert list(tmp_path.iterdir()) == []


def test_an_erased_state_is_gone(tmp_path: Path) -> None:
    path = tmp_path / "state"
    state = BitState.created(path, 1000, LAW, NAME)
    second_name = tmp_path / "kept"
    os.link(path, second_name)  # to see what the disk had last
    state.erase()
    assert not path.exists()
    assert second_name.read_bytes()[HEADER.size :] == bytes(125)


def test_places_that_do_not_exist_change_nothing(tmp_path: Path) -> None:
    state = BitState.created(tmp_path / "state", 10, LAW, NAME)
    held = state.path.read_bytes()
    for wrong in (ids(3, 10), ids(-1)):
        with pytest.raises(IndexError):
            state.redraw(wrong, present=True)
    state.redraw(ids(), present=True)
    assert state.path.read_bytes() == held
    state.close()


def test_states_without_a_meaning_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="bits"):
        BitState.created(tmp_path / "state", 0, LAW, NAME)
    with pytest.raises(ValueError, match="32 bytes"):
        BitState.created(tmp_path / "state", 10, LAW, b"short")
    assert list(tmp_path.iterdir()) == []


def n_open_files() -> int:
    """Of this process, where the system says so."""
    folder = Path("/proc/self/fd")
    return sum(1 for _ in folder.iterdir()) if folder.exists() else 0


def test_a_lock_that_others_hold_leaves_the_file_closed(tmp_path: Path) -> None:
    path = tmp_path / "state"
    BitState.created(path, 10, LAW, NAME).close()
    with path.open("rb") as holder:
        fcntl.flock(holder, fcntl.LOCK_EX)
        n_open = n_open_files()
        with pytest.raises(StoreUnavailable):
            BitState.opened(path, 10, LAW, NAME)
        assert n_open_files() == n_open


def test_ones_of_some_places_are_counted_to_the_bit(tmp_path: Path) -> None:
    n_bits = 37
    with closing(BitState.created(tmp_path / "s", n_bits, LAW, NAME)) as state:
        bits = bits_of(state.path, n_bits)
        for start in range(n_bits + 1):
            for end in range(start, n_bits + 1):
                assert state.count_ones(start, end) == bits[start:end].sum()
        assert state.count_ones() == bits.sum()
        for start, end in ((-1, 3), (3, 2), (0, 38)):
            with pytest.raises(IndexError, match="outside"):
                state.count_ones(start, end)


def test_a_state_that_cannot_be_mapped_is_not_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Memory is short once; then a state can be made, and no file or lock is in its way."""

    def short(*_: object) -> None:
        raise OSError("cannot allocate memory")

    with monkeypatch.context() as patched:
        patched.setattr("streams.state.mmap.mmap", short)
        with pytest.raises(OSError, match="memory"):
            BitState.created(tmp_path / "s", 10, LAW, NAME)
    assert list(tmp_path.iterdir()) == []
    BitState.created(tmp_path / "s", 10, LAW, NAME).close()


def test_a_file_that_nobody_has_open_is_erased(tmp_path: Path) -> None:
    path, other = tmp_path / "s", tmp_path / "t"
    BitState.created(path, 1000, LAW, NAME).close()
    os.link(path, other)  # what is seen through it is what the disk has
    erase_file(path)
    assert not path.exists()
    assert other.read_bytes() == bytes(file_length(1000))
    erase_file(path)  # gone already


def test_a_file_whose_name_is_not_durable_is_not_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The folder refuses once, as a failing disk does; then a state can be made."""
    refusals = [OSError("input/output error")]

    def refused(_folder: Path) -> None:
        if refusals:
            raise refusals.pop()

    monkeypatch.setattr("streams.state._sync_folder", refused)
    with pytest.raises(OSError, match="input/output"):
        BitState.created(tmp_path / "s", 10, LAW, NAME)
    assert list(tmp_path.iterdir()) == []
    BitState.created(tmp_path / "s", 10, LAW, NAME).close()
