"""The state of a long ledger, kept in a file beside the ledger's key, so that a start is short.

The file names the entry after which the state was written, by number and digest. A start reads the
texts of all entries up to there, and checks that their chain leads to that digest; it does not
check again what each of them means, which who wrote the state had done. Entries behind it are read
and checked as ever.

The file is sealed under a key derived from the ledger's, and is of one version of the code. One
changed byte, another ledger's file, other code, or anybody's who lacks the key, and every entry is
read. So it is if some entries, drawn at random, say something else than the state, or if a kept sum
of costs is below what the rows themselves cost a cell that is drawn at random.

The file holds nothing that the ledger does not; it may be deleted at any time. The auditor never
reads it. Proof: proofs/checkpoint.md.
"""

import hashlib
import hmac
import json
import pickle
import secrets
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Final, Self, TypeAlias

from accountant.ledger.append_only import GrowingSet
from accountant.ledger.entries import GENESIS, Entry
from accountant.ledger.kept_state import code_digest, state_bytes, state_of
from accountant.ledger.replay import NOT_AN_ENTRY, Replay
from accountant.ledger.sampled import agrees_with_cell, agrees_with_entry
from accountant.ledger.stores import durable_file
from accountant.ledger.successor import successor
from cube.encoding import canonical_json

HEAD: Final = b"tacit-checkpoint-2\n"
SEAL_BYTES: Final = hashlib.sha256().digest_size
LENGTH_BYTES: Final = 8
N_ENTRIES_COMPARED: Final = 16
NOT_A_STATE: Final = (*NOT_AN_ENTRY, EOFError, pickle.PickleError)

ReadEntries: TypeAlias = Callable[[int], Iterator[Entry]]


def checkpoint_beside(key: Path) -> Path:
    """The path of the checkpoint of the ledger with a key: next to the key.

    >>> checkpoint_beside(Path("people.ledger.key")).name
    'people.ledger.checkpoint'
    """
    return key.with_name(key.name.removesuffix(".key") + ".checkpoint")


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """The file, and the key of its ledger.

    Parameters
    ----------
    path : Path
        It need not exist.
    key : bytes
    code : bytes, optional
        A digest of the code that this process runs.
    """

    path: Path
    key: bytes
    code: bytes = field(default_factory=code_digest)

    def read(self, entries_after: ReadEntries) -> tuple[Replay, int]:
        """The state after all entries of a ledger, and how many of them were not checked anew.

        Parameters
        ----------
        entries_after : callable
            Every entry with a higher number, in order.

        Raises
        ------
        ValueError
            If an entry cannot follow those before it; whatever is wrong with the file raises
            nothing.
        """
        kept = self._content()
        known = None if kept is None else kept.state(entries_after)
        if known is None:
            return Replay().read(entries_after(0)), 0
        n_known = known.n_entries
        return known.read(entries_after(n_known)), n_known

    def write(self, replay: Replay) -> int:
        """Write a state; the number of entries that the file then is of.

        Raises
        ------
        OSError, CannotStart, NotAState
            If the file cannot be written; an earlier one is still whole.
        """
        for history in replay.histories.values():
            history.cost.summed()  # or it would be kept as rows, to be added up at each start
        about = {"n_entries": replay.n_entries, "digest": replay.head, "code": self.code.hex()}
        text = canonical_json(about).encode()
        content = b"".join([len(text).to_bytes(LENGTH_BYTES, "big"), text, state_bytes(replay)])
        durable_file.drop_drafts(self.path)
        durable_file.replace(self.path, HEAD + self._seal(content) + content)
        return replay.n_entries

    def _content(self) -> "_Kept | None":
        """What the file holds; None if there is none, or it is not as it was written."""
        try:
            whole = self.path.read_bytes()
        except OSError:
            return None
        start = len(HEAD) + SEAL_BYTES
        seal, content = whole[len(HEAD) : start], whole[start:]
        if whole[: len(HEAD)] != HEAD or not hmac.compare_digest(seal, self._seal(content)):
            return None
        with suppress(*NOT_AN_ENTRY):
            behind = LENGTH_BYTES + int.from_bytes(content[:LENGTH_BYTES], "big")
            about = json.loads(content[LENGTH_BYTES:behind])
            if about["code"] == self.code.hex() and about["n_entries"] > 0:
                return _Kept(int(about["n_entries"]), str(about["digest"]), content[behind:])
        return None

    def _seal(self, content: bytes) -> bytes:
        own = hmac.digest(self.key, HEAD, "sha256")  # no other use of the key gives the same
        return hmac.digest(own, content, "sha256")


@dataclass(frozen=True, slots=True)
class _Kept:
    """What a file holds: the state after a number of entries."""

    n_entries: int
    digest: str
    content: bytes

    def state(self, entries_after: ReadEntries) -> Replay | None:
        """The state, if the entries of the ledger up to there are those that it is of."""
        drawn = {1 + secrets.randbelow(self.n_entries) for _ in range(N_ENTRIES_COMPARED)}
        passed = _Passed().read(islice(entries_after(0), self.n_entries), drawn)
        if (passed.n_entries, passed.digest) != (self.n_entries, self.digest):
            return None
        with suppress(*NOT_A_STATE):
            replay = state_of(self.content)
            is_of_it = (replay.n_entries, replay.head) == (self.n_entries, self.digest)
            if (
                is_of_it
                and all(agrees_with_entry(replay, entry) for entry in passed.drawn)
                and all(map(agrees_with_cell, replay.histories.values()))
            ):
                return passed.noted_in(replay)
        return None


class _Passed:
    """The entries of a beginning of a ledger, by their texts alone.

    `n_entries` and `digest` are of the last one that follows from those before it.
    """

    def __init__(self) -> None:
        self.n_entries = 0
        self.digest = GENESIS
        self.drawn: list[Entry] = []
        self._numbers: dict[str, list[int]] = {}

    def read(self, entries: Iterable[Entry], drawn: Collection[int]) -> Self:
        """Pass entries, up to the first that does not follow; keep those of some numbers."""
        for entry in entries:
            if not entry.follows(self.digest):
                break
            self.n_entries, self.digest = entry.seq, entry.digest
            self._numbers.setdefault(entry.table, []).append(entry.seq)
            if entry.seq in drawn:
                self.drawn.append(entry)
        return self

    def noted_in(self, replay: Replay) -> Replay:
        """The same state of a process that has read these entries."""
        for table, numbers in self._numbers.items():
            if table in replay.histories:  # not a stream, nor nothing
                history = replay.histories[table]
                replay.histories[table] = successor(history, read=GrowingSet(numbers))
        return replay
