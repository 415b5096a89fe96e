"""The costs of a long history, kept in a file beside the ledger's key, so that a start is short.

A ledger is read and checked as ever: the chain of digests, every entry against those before it. All
that is taken from the file is what the rows of a table cost, added up, which takes longest to
compute again. The file names the entry that it was written after, by number and digest, and is
sealed under a key derived from the ledger's: one changed byte, another ledger's file, or anybody's
who lacks the key, and everything is computed again. So it is if the sum is below what the rows
themselves cost a cell that is drawn at random.

The file holds nothing that the ledger does not; it may be deleted at any time. The auditor never
reads it. Proof: proofs/checkpoint.md.
"""

import hashlib
import hmac
import json
import secrets
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, Final

from accountant.cost.history_cost import CostState
from accountant.cost.kept_sums import SumsReader, SumsWriter, is_below
from accountant.cost.summed_costs import SummedCosts
from accountant.ledger.entries import Entry
from accountant.ledger.replay import NOT_AN_ENTRY, Replay
from accountant.ledger.stores import durable_file
from cube.encoding import canonical_json

# To be changed whenever what rows cost is computed in another way, or is written in another.
HEAD: Final = b"tacit-checkpoint-1\n"
SEAL_BYTES: Final = hashlib.sha256().digest_size
LENGTH_BYTES: Final = 8
N_CELLS_COMPARED: Final = 2


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
    """

    path: Path
    key: bytes

    def read(self, entries: Iterable[Entry]) -> Replay:
        """The state after all entries, of a ledger from its beginning.

        Raises
        ------
        ValueError
            If an entry cannot follow those before it; whatever is wrong with the file raises
            nothing.
        """
        kept, coming = self._content(), iter(entries)
        replay = Replay()
        if kept is not None:
            replay.read(islice(coming, kept.n_entries))
            if (replay.n_entries, replay.head) == (kept.n_entries, kept.digest):
                kept.recall_into(replay)
        return replay.read(coming)

    def write(self, replay: Replay) -> int:
        """Write what the rows of every table cost; the number of entries that it then is of.

        Raises
        ------
        OSError, CannotStart
            If the file cannot be written; an earlier one is still whole.
        """
        writer, tables = SumsWriter(), {}
        for name, history in replay.histories.items():
            summed = history.cost.summed()
            if summed.may_be_kept:
                tables[name] = {
                    "n_rows": summed.n_rows,
                    "exact": summed.exact,
                    "functions": [writer.written(one) for one in summed.functions],
                }
        about = {
            "n_entries": replay.n_entries,
            "digest": replay.head,
            "classes": writer.classes,
            "tables": tables,
        }
        text = canonical_json(about).encode()
        content = b"".join([len(text).to_bytes(LENGTH_BYTES, "big"), text, *writer.arrays])
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
            length = int.from_bytes(content[:LENGTH_BYTES], "big")
            about = json.loads(content[LENGTH_BYTES : LENGTH_BYTES + length])
            arrays = content[LENGTH_BYTES + length :]
            n_entries, digest = int(about["n_entries"]), str(about["digest"])
            return _Kept(n_entries, digest, about["tables"], SumsReader(about["classes"], arrays))
        return None

    def _seal(self, content: bytes) -> bytes:
        own = hmac.digest(self.key, HEAD, "sha256")  # no other use of the key gives the same
        return hmac.digest(own, content, "sha256")


@dataclass(frozen=True, slots=True)
class _Kept:
    """What a file holds: sums of costs after a number of entries, by table."""

    n_entries: int
    digest: str
    tables: Mapping[str, Mapping[str, Any]]
    sums: SumsReader

    def recall_into(self, replay: Replay) -> None:
        """Take the sums as known, of each table where they are those of its rows."""
        for name, written in self.tables.items():
            with suppress(*NOT_AN_ENTRY):
                cost = replay.histories[name].cost
                cost.recall(self._checked(cost, written))

    def _checked(self, cost: CostState, written: Mapping[str, Any]) -> SummedCosts:
        """The sum of a table; ValueError if it is below what the rows cost at a cell."""
        functions = [self.sums.read(one) for one in written["functions"]]
        rows, sizes = cost.rows(), dict[str, int]()
        for function in functions:
            for axis, classes in zip(function.axes, function.classes, strict=True):
                sizes[axis] = classes.n_levels
        for cell in _drawn(sizes):
            if not is_below(rows, functions, cell, cost.rows_per_unit, cost.by):
                raise ValueError("costs of other rows")
        nothing = SummedCosts.nothing(cost.n_cells_max, cost.rows_per_unit, cost.by)
        n_rows, is_exact = int(written["n_rows"]), written["exact"] is True
        return nothing.of_kept(functions, n_rows, cost.n_cells_max, exact=is_exact)


def _drawn(sizes: Mapping[str, int]) -> Iterator[dict[str, int]]:
    """A few cells, from the system's entropy: whoever made a file cannot know them."""
    for _ in range(N_CELLS_COMPARED):
        yield {axis: secrets.randbelow(size) for axis, size in sizes.items()}
