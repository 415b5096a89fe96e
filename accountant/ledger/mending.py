"""What an owner can do about a ledger that lacks entries, and about one whose clock was wrong.

Nothing is repaired: an entry is added that says what is not known, or not so, and what follows goes
on from it. Entries that were lost stay lost, and what they spent is in no sum.

Proof: proofs/ledger.md, "What an owner accepts", and proofs/gate.md, "Limits".
"""

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from accountant.ledger.ledger import Ledger
from accountant.ledger.ledger_events import ClockCorrected, LedgerEnd, RollbackAccepted
from accountant.ledger.open_ledger import open_unmarked
from accountant.ledger.stores.key_file import is_marked, note_marked
from accountant.ledger.stores.mark import MarkFile, Position, mark_beside
from cube.refusals import InvalidRequest, LedgerLost


@dataclass(frozen=True, slots=True)
class Loss:
    """What is known of entries that are gone.

    Parameters
    ----------
    vouched : Position, optional
        The furthest that anything vouches for and the ledger does not hold; None if its mark is
        missing or damaged, and nothing else tells.
    found : Position
        Where the ledger ends.
    """

    vouched: Position | None
    found: Position


def accept_rollback(
    location: str,
    key: Path | None,
    heads: Sequence[Position],
    *,
    by: str,
    confirm: Callable[[Loss], bool],
) -> Loss | None:
    """Go on with a ledger that lacks entries: say so in it, and let its mark be what it is.

    Parameters
    ----------
    location, key
        As for `open_unmarked`.
    heads : sequence of Position
        What the owner has signed, signatures checked.
    by : str
        Who accepts it.
    confirm : callable
        Is shown the loss; only if it says so, anything is written.

    Returns
    -------
    Loss or None
        What was accepted; None if it was not confirmed.

    Raises
    ------
    InvalidRequest
        If nothing is missing.
    """
    store, key_bytes, key_path = open_unmarked(location, key)
    with Ledger(store, key_bytes) as ledger:
        mark = MarkFile(mark_beside(key_path))
        loss = _loss(ledger, mark, heads, is_marked=is_marked(key_path))
        if loss is None:
            raise InvalidRequest(
                f"The ledger {location} holds all that is vouched for: nothing is to be accepted.",
                hint="If a signed head says otherwise, name it, and the owner's public key.",
            )
        if not confirm(loss):
            return None
        ledger.append_event(lambda end: _accepted(loss, end, by), max)
        # Killed before this, the mark still refuses, and the loss is accepted once more.
        mark.give_up(Position(*ledger.position))
        note_marked(key_path)
    return loss


def correct_clock(ledger: Ledger, *, by: str) -> None:
    """Say in a ledger that the clock is right now, whatever its last entry is stamped with."""
    ledger.append_event(lambda end: ClockCorrected(end.at, by), lambda now, _last: now)


def _loss(
    ledger: Ledger, mark: MarkFile, heads: Sequence[Position], *, is_marked: bool
) -> Loss | None:
    vouched = list(heads)
    is_unknown = is_marked
    with suppress(LedgerLost):  # it is missing or damaged: then nobody knows how far it had come
        vouched.append(mark.read())
        is_unknown = False
    missing = [one for one in vouched if not ledger.holds(one)]
    if not missing and not is_unknown:
        return None
    furthest = max(missing, key=lambda one: one.n_entries, default=None)
    return Loss(furthest, Position(*ledger.position))


def _accepted(loss: Loss, end: LedgerEnd, by: str) -> RollbackAccepted:
    if (end.n_entries, end.digest) != (loss.found.n_entries, loss.found.digest):
        raise LedgerLost(
            "The ledger was written to meanwhile.", hint="Stop its servers, and begin again."
        )
    vouched = loss.vouched
    return RollbackAccepted(
        None if vouched is None else vouched.n_entries,
        None if vouched is None else vouched.digest,
        end.n_entries,
        end.digest,
        by,
    )
