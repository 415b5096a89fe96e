"""What an owner can do about a ledger that lacks entries, or whose clock was wrong.

Nothing is repaired: an entry is added that states the loss or the correction, and the ledger
continues from there. Lost entries stay lost, and what they spent is in no sum.

Proof: proofs/ledger.md, "What an owner accepts", and proofs/gate.md, "Limits".
"""

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from accountant.ledger.entries import ClockCorrected, LedgerEnd, RollbackAccepted
from accountant.ledger.ledger import Ledger
from accountant.ledger.opening import open_unmarked
from accountant.ledger.stores import MarkFile, Position, is_marked, mark_beside, note_marked
from cube.refusals import InvalidRequest, LedgerLost


@dataclass(frozen=True, slots=True)
class Loss:
    """What is known about lost entries.

    Parameters
    ----------
    vouched : Position, optional
        The furthest position that is vouched for and missing from the ledger; None if the mark is
        missing or damaged, and nothing else vouches for one.
    found : Position
        The last entry that the ledger has.
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
    """Continue with a ledger that lacks entries: record that in it, and set its mark to its end.

    Parameters
    ----------
    location, key
        As for `open_unmarked`.
    heads : sequence of Position
        The heads that the owner signed, with checked signatures.
    by : str
        Who accepts the loss; recorded in the ledger.
    confirm : callable
        Is called with the loss; nothing is written unless it returns true.

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
                f"The ledger {location} has every entry that its mark and the given "
                "heads vouch for: there is no loss to accept.",
                hint="If a signed head vouches for more entries, name that head and the "
                "owner's public key.",
            )
        if not confirm(loss):
            return None
        ledger.append_event(lambda end: _accepted(loss, end, by), max)
        # If killed before this, the mark still refuses, and the loss has to be accepted again.
        mark.give_up(Position(*ledger.position))
        note_marked(key_path)
    return loss


def correct_clock(ledger: Ledger, *, by: str) -> None:
    """Record in a ledger that the clock is right now, whatever the time of its last entry."""
    ledger.append_event(lambda end: ClockCorrected(end.at, by), lambda now, _last: now)


def _loss(
    ledger: Ledger, mark: MarkFile, heads: Sequence[Position], *, is_marked: bool
) -> Loss | None:
    vouched = list(heads)
    is_unknown = is_marked
    with suppress(LedgerLost):  # the mark is missing or damaged: the last position is not known
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
            "The ledger changed while the loss was being accepted.",
            hint="Stop the ledger's servers, and run the command again.",
        )
    vouched = loss.vouched
    return RollbackAccepted(
        None if vouched is None else vouched.n_entries,
        None if vouched is None else vouched.digest,
        end.n_entries,
        end.digest,
        by,
    )
