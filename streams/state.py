"""Keeps the state of an epoch in one file that is overwritten in place: here, a bit for each place.

Each arrival draws its bit anew from the system's entropy, whatever the bit was. The file has a
header that is written once, and bits: no counter, no time, no id, nothing that grows, and nothing
of a generator. Its length follows from public numbers. It is never copied, and never written to a
log, as two copies of different moments are two looks at the state. A state of counters
(visit_epoch.py) is such a file, too.

What a caller and an operator must know: README.md, "The file". Not here: who has which place
(population.py), and what may be released (epoch.py).
"""

import fcntl
import mmap
import os
import struct
import threading
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Final, TypeVar

import numpy as np
from numpy.typing import NDArray

from cube.refusals import DataChanged, StoreUnavailable
from streams.randomness import GRID, WORDS_IN_PIECE, Entropy, SystemEntropy, TwoPoint

NAME_BYTES: Final = 32
ERASED_AT_ONCE: Final = 2**20


class StateFile:
    """A mapped state, behind its header.

    Parameters
    ----------
    descriptor : int
        Of the file, open for reading and writing, and locked; closed with this.
    path : Path
    header_bytes, n_bytes : int
        The lengths of the header and of what follows it.
    entropy : Entropy
    """

    def __init__(
        self, descriptor: int, path: Path, header_bytes: int, n_bytes: int, entropy: Entropy
    ) -> None:
        self.path = path
        self._entropy = entropy
        self._lock = threading.Lock()
        self._descriptor = descriptor
        self._map = mmap.mmap(descriptor, header_bytes + n_bytes)
        self._bytes: NDArray[np.uint8] = np.frombuffer(self._map, np.uint8, offset=header_bytes)

    def sync(self) -> None:
        """Wait until the disk has what arrived so far.

        Without it a process that dies loses nothing, and a machine that does loses what the system
        had not written yet. Call it by the clock or at the end of calls, not by who arrives.
        """
        self._map.flush()

    def erase(self) -> None:
        """Overwrite the state and remove the file: after a release nothing is left to look at."""
        with self._lock:
            self._bytes[:] = 0
            self._map.flush()
        self.path.unlink(missing_ok=True)
        _sync_folder(self.path.parent)
        self.close()

    def close(self) -> None:
        """Let go of the file, which stays as it is."""
        with self._lock:
            self._bytes = np.empty(0, np.uint8)
            self._map.close()
            os.close(self._descriptor)


State = TypeVar("State", bound=StateFile)


def create_file(
    path: Path, header: bytes, contents: Iterable[bytes], open_as: Callable[[int], State]
) -> State:
    """A new state; the file is complete and durable before it has its name.

    All of its blocks exist: a disk that is full says so here, and not when a user arrives.

    Parameters
    ----------
    path : Path
        Where there is no file yet.
    header : bytes
    contents : iterable of bytes
    open_as : callable
        Makes the state of a locked descriptor.

    Raises
    ------
    FileExistsError
        If there is a file of that name; it is left as it is.
    OSError
        If the file cannot be written; nothing is left behind.
    """
    begun = path.with_name(path.name + ".new")
    begun.unlink(missing_ok=True)  # of a crash before there was a state
    descriptor = os.open(begun, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        _lock(descriptor)
        with open(descriptor, "wb", closefd=False) as file:
            file.write(header)
            file.writelines(contents)
        os.fsync(descriptor)
        state = open_as(descriptor)
        _name(begun, path)  # last, so that a state that cannot be used has no name
    except BaseException:
        os.close(descriptor)
        raise
    finally:
        begun.unlink(missing_ok=True)
    return state


def open_file(path: Path, header: bytes, length: int) -> int:
    """The locked descriptor of a state that a process left.

    Parameters
    ----------
    path : Path
    header : bytes
        What it must begin with.
    length : int
        Of the whole file, in bytes.

    Raises
    ------
    DataChanged
        If there is no such file, or it is of another stream, law or length.
    StoreUnavailable
        If another process has it open.
    """
    try:
        descriptor = os.open(path, os.O_RDWR)
    except FileNotFoundError as missing:
        raise DataChanged("The state file of a stream is missing.") from missing
    try:
        _lock(descriptor)
        _check(descriptor, header, length)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def _check(descriptor: int, header: bytes, length: int) -> None:
    """Refuse a file that is not the state that was begun."""
    found = os.pread(descriptor, len(header), 0)
    if found != header or os.fstat(descriptor).st_size != length:
        raise DataChanged(
            "The state file of a stream is not the one that the epoch began with.",
            hint="It cannot be repaired. End the epoch and begin a new one.",
        )


def check_name(name: bytes) -> None:
    """Refuse a name that is not a digest."""
    if len(name) != NAME_BYTES:
        raise ValueError(f"a state's name must have {NAME_BYTES} bytes")


def erase_file(path: Path) -> None:
    """Overwrite a state that no process has open, and remove it; do nothing if it is gone."""
    try:
        descriptor = os.open(path, os.O_WRONLY)
    except FileNotFoundError:
        return
    try:
        left = os.fstat(descriptor).st_size
        while left > 0:
            left -= os.write(descriptor, bytes(min(left, ERASED_AT_ONCE)))
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    path.unlink(missing_ok=True)
    _sync_folder(path.parent)


def _lock(descriptor: int) -> None:
    """One process has a state: two would each draw, and lose the other's arrivals."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as held:
        raise StoreUnavailable("The state file of a stream is open in another process.") from held


def _name(begun: Path, path: Path) -> None:
    """Give a finished file its name, durably; unlike a rename, this never replaces a state."""
    os.link(begun, path)
    try:
        _sync_folder(path.parent)
    except OSError:
        path.unlink(missing_ok=True)  # no user was observed in it, so another one tells no more
        raise


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


MAGIC: Final = b"TACITPAN"
HEADER: Final = struct.Struct("<8sQQ32s8x")  # magic, places, threshold, name
N_BITS_MAX: Final = 2**32
BITS_IN_BYTE: Final = 8
ONES_OF_BYTE: Final = np.unpackbits(np.arange(256, dtype=np.uint8)).reshape(256, 8).sum(axis=1)


class BitState(StateFile):
    """The bits of an open epoch. Use `created` or `opened`, and `close`.

    Parameters
    ----------
    descriptor : int
        Of the file, open for reading and writing, and locked; closed with this.
    path : Path
    n_bits : int
    law : TwoPoint
    entropy : Entropy
    """

    def __init__(
        self, descriptor: int, path: Path, n_bits: int, law: TwoPoint, entropy: Entropy
    ) -> None:
        super().__init__(descriptor, path, HEADER.size, -(-n_bits // BITS_IN_BYTE), entropy)
        self.n_bits = n_bits
        self._law = law

    @classmethod
    def created(
        cls, path: Path, n_bits: int, law: TwoPoint, name: bytes, *, entropy: Entropy | None = None
    ) -> "BitState":
        """A new state without users: every bit is a draw for an absent user.

        The file is complete and durable before it has its name, and all of its blocks exist: a disk
        that is full says so here, and not when a user arrives.

        Parameters
        ----------
        path : Path
            Where there is no file yet.
        n_bits : int
        law : TwoPoint
        name : bytes
            32 bytes that say whose state it is, such as a digest of a stream's and an epoch's name.
        entropy : Entropy, optional
            For tests; the system's by default.

        Raises
        ------
        FileExistsError
            If there is a file of that name; it is left as it is.
        OSError
            If the file cannot be written; nothing is left behind.
        """
        source = SystemEntropy() if entropy is None else entropy
        header = _header(n_bits, law, name)
        contents = _drawn_bytes(n_bits, GRID - law.threshold, source)
        return create_file(
            path, header, contents, lambda descriptor: cls(descriptor, path, n_bits, law, source)
        )

    @classmethod
    def opened(
        cls, path: Path, n_bits: int, law: TwoPoint, name: bytes, *, entropy: Entropy | None = None
    ) -> "BitState":
        """The state that a process left, to go on with.

        Raises
        ------
        DataChanged
            If there is no such file, or it is of another stream, law or length.
        StoreUnavailable
            If another process has it open.
        """
        descriptor = open_file(path, _header(n_bits, law, name), file_length(n_bits))
        return cls(descriptor, path, n_bits, law, entropy or SystemEntropy())

    def redraw(self, places: NDArray[np.int64], *, present: bool) -> None:
        """Draw the bits of some places anew: of users who arrived, or of users who left.

        Of a place that is there several times the last draw stands, as if they had come one by one.

        Parameters
        ----------
        places : (n,) ndarray of int64
        present : bool
            Whether they arrived; else they left, and their bits are those of absent users.
        """
        if places.size and not 0 <= int(places.min()) <= int(places.max()) < self.n_bits:
            raise IndexError("a place is outside the state")
        threshold = np.uint64(self._law.threshold if present else GRID - self._law.threshold)
        for begin in range(0, places.size, WORDS_IN_PIECE):
            piece = places[begin : begin + WORDS_IN_PIECE]
            ones = (self._entropy.words(piece.size) < threshold).astype(np.uint8)
            with self._lock:
                self._write(piece, ones)

    def remix(self, keep: int, law: TwoPoint) -> None:
        """Make the state random again after a look that was announced; then its law is another.

        Each bit is kept, or is a fair coin. No arrival may come meanwhile. The file is of the new
        law from then on; if the machine dies before that, the state is lost.

        Parameters
        ----------
        keep : int
            The probability with which a bit is kept, in units of ``2**-64``.
        law : TwoPoint
            Of the bits of users who arrive or leave later; see `mechanism.AnnouncedLooks`.
        """
        with self._lock:
            for begin in range(0, self.n_bits, WORDS_IN_PIECE):
                n = min(WORDS_IN_PIECE, self.n_bits - begin)
                piece = slice(begin // BITS_IN_BYTE, -(-(begin + n) // BITS_IN_BYTE))
                bits = np.unpackbits(self._bytes[piece])[:n]
                coins = self._entropy.words(n) < np.uint64(GRID // 2)
                kept = self._entropy.words(n) < np.uint64(keep)
                self._bytes[piece] = np.packbits(np.where(kept, bits, coins))
            *_, name = HEADER.unpack(self._map[: HEADER.size])
            self._map[: HEADER.size] = _header(self.n_bits, law, name)
            self._law = law
            self._map.flush()

    def _write(self, places: NDArray[np.int64], ones: NDArray[np.uint8]) -> None:
        """Set bits. Of one place in a byte, equal bytes are equal users: the last one stands."""
        bytes_of, bits_of = places >> 3, (places & 7).astype(np.uint8)
        for bit in range(BITS_IN_BYTE):
            chosen = np.flatnonzero(bits_of == bit)
            where = bytes_of[chosen]
            others = self._bytes[where] & np.uint8(0xFF ^ (0x80 >> bit))
            self._bytes[where] = others | (ones[chosen] << np.uint8(7 - bit))

    def count_ones(self, start: int = 0, end: int | None = None) -> int:
        """The number of ones. As secret as the state: only a release reads it, and adds noise.

        Parameters
        ----------
        start, end : int, optional
            The places to count, the last one not among them; all by default.
        """
        last = self.n_bits if end is None else end
        if not 0 <= start <= last <= self.n_bits:
            raise IndexError("a place is outside the state")
        if start == last:
            return 0
        first_byte, end_byte = start // BITS_IN_BYTE, -(-last // BITS_IN_BYTE)
        before, behind = start % BITS_IN_BYTE, -last % BITS_IN_BYTE
        with self._lock:
            ones = sum(
                int(ONES_OF_BYTE[self._bytes[at : min(end_byte, at + WORDS_IN_PIECE)]].sum())
                for at in range(first_byte, end_byte, WORDS_IN_PIECE)
            )
            # Of the bytes at both ends, the bits of other places.
            ones -= int(ONES_OF_BYTE[int(self._bytes[first_byte]) >> BITS_IN_BYTE - before])
            ones -= int(ONES_OF_BYTE[int(self._bytes[end_byte - 1]) & (1 << behind) - 1])
        return ones


def file_length(n_bits: int) -> int:
    """The length of the file in bytes, whatever arrives."""
    return HEADER.size + -(-n_bits // BITS_IN_BYTE)


def _header(n_bits: int, law: TwoPoint, name: bytes) -> bytes:
    if not 1 <= n_bits <= N_BITS_MAX:
        raise ValueError(f"a state must have 1 to {N_BITS_MAX} bits")
    check_name(name)
    return HEADER.pack(MAGIC, n_bits, law.threshold, name)


def _drawn_bytes(n_bits: int, threshold: int, entropy: Entropy) -> Iterator[bytes]:
    """Bits of absent users, eight a byte; what is behind the last one is 0."""
    for begin in range(0, n_bits, WORDS_IN_PIECE):
        words = entropy.words(min(WORDS_IN_PIECE, n_bits - begin))
        yield np.packbits(words < np.uint64(threshold)).tobytes()
