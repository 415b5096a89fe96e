"""Collections, served: created and closed by owners, answered by anybody whom they admit.

Opening is an entry of the ledger before there is anything to count in; an answer is durable before
it is acknowledged. Answers were randomised where they were given, so that what they say is free for
every analyst to whom the collection is open, at any time.

Thread-safe; with several processes of one ledger on a machine, each serves every collection. The
argument for who may submit is in docs/threat_model.md.
"""

import threading
import time
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import Final, Protocol

from accountant.ledger.collections import (
    CollectionBody,
    CollectionBook,
    CollectionClosed,
    CollectionOpened,
)
from accountant.ledger.stream_book import StreamBook
from cube.refusals import (
    CannotStart,
    InvalidRequest,
    NotAllowed,
    StoreUnavailable,
    TooLarge,
)
from local_dp.campaign_text import read_campaign
from local_dp.columns import CollectedAxes
from local_dp.estimates.collection import CollectionEstimates
from local_dp.estimates.tally import Tally
from local_dp.submission import read_submission
from proxy.api.requests import Caller
from proxy.collections.known import KnownCollection
from proxy.collections.names import check_new_name
from proxy.collections.refused import (
    check_owner,
    check_taken,
    name_taken,
    no_place,
    unknown_collection,
)
from proxy.collections.status import Assignment, CollectionStatus
from proxy.collections.store import Counts, CountStore, Outcome
from proxy.collections.tokens import check_token

N_RESPONDENTS_MOST: Final = 10**8
N_INVITATIONS_MAX: Final = 10_000  # in one call
REFRESH_SECONDS: Final = 1.0  # between two looks into the ledger for a name that is not known


class CollectionLedger(Protocol):
    """The part of a ledger that collections need."""

    @property
    def collections(self) -> CollectionBook:
        """Every collection, as far as this process has seen."""
        ...

    @property
    def streams(self) -> StreamBook:
        """Every stream, whose names are taken."""
        ...

    @property
    def key(self) -> bytes:
        """The key that readers of the ledger do not have."""
        ...

    def append_collection(
        self, build: Callable[[CollectionBook], CollectionBody | None]
    ) -> int | None:
        """Make an entry durable; ValueError if it cannot follow those before it."""
        ...

    def refresh(self) -> None:
        """Take in what other processes have appended."""
        ...


class CollectionService:
    """The collections of one ledger.

    Parameters
    ----------
    ledger : CollectionLedger
    path : Path, optional
        The file of counts, which is made with the first collection. None if this server has no
        place for one: then it offers no collections.
    reserved : sequence of str
        Names that are a table's here already.

    Raises
    ------
    CannotStart
        If the file is damaged, or is gone while the ledger has collections, or one of them has the
        name of a table.
    """

    def __init__(
        self, ledger: CollectionLedger, path: Path | None, reserved: Sequence[str] = ()
    ) -> None:
        self._ledger = ledger
        self._path = path
        self._reserved = {name.lower() for name in reserved}
        self._lock = threading.Lock()
        self._store: CountStore | None = None
        self._read: dict[str, KnownCollection] = {}
        self._refreshed = 0.0
        taken = [one for one in ledger.collections.by_name if one.lower() in self._reserved]
        if taken:
            raise CannotStart(
                f"{taken[0]} is the name of a collection in this ledger.",
                hint="Give the table another name: what respondents answered keeps its own.",
            )
        if ledger.collections.by_name and path is not None:
            self._store = _existing(path)

    def create(
        self,
        caller: Caller,
        text: str,
        *,
        n_respondents_max: int,
        is_by_invitation: bool = False,
        synthetic: Collection[str] = (),
    ) -> CollectionStatus:
        """Open a collection, for owners to whom its name is open.

        Parameters
        ----------
        caller : Caller
        text : str
            The campaign's one canonical text, with its name.
        n_respondents_max : int
        is_by_invitation : bool
        synthetic : collection of str
            The names of synthetic tables that the caller may know of.

        Raises
        ------
        InvalidRequest, NameTaken, NotAllowed, StoreUnavailable
        """
        campaign = read_campaign(text)
        check_owner(caller, campaign.name)
        check_new_name(campaign.name, synthetic)
        if not 1 <= n_respondents_max <= N_RESPONDENTS_MOST:
            raise InvalidRequest(f"A collection is for 1 to {N_RESPONDENTS_MOST} respondents.")
        if campaign.name.lower() in self._reserved:
            raise name_taken(campaign.name)
        try:
            CollectedAxes.of(campaign).schema(campaign.name)
        except ValueError as error:
            raise InvalidRequest(
                f"What this campaign asks cannot be the columns of a table: {error}.",
                hint="Give its attributes other names or levels: answers are read by SQL.",
            ) from None
        try:
            opened = CollectionOpened(
                text, n_respondents_max, is_by_invitation, caller.payer.analyst
            )
        except ValueError as error:
            raise InvalidRequest(f"This is no collection: {error}.") from None
        self._make_store()

        def build(book: CollectionBook) -> CollectionOpened:
            taken = {one.lower() for one in (*book.by_name, *self._ledger.streams.streams)}
            if campaign.name.lower() in taken:
                raise ValueError("a name that SQL does not tell from another")
            return opened

        try:
            self._ledger.append_collection(build)
        except ValueError:
            raise name_taken(campaign.name) from None
        return self.status(caller, campaign.name)

    def invitations(self, caller: Caller, name: str, n: int) -> list[str]:
        """Fresh tokens of a collection by invitation, for its owner to hand out; none is kept."""
        known = self._opened(caller, name)
        check_owner(caller, name)
        if not known.opened.is_by_invitation:
            raise InvalidRequest(
                f"Anybody may answer {name}.", hint="Each respondent makes a token of their own."
            )
        if not 1 <= n <= N_INVITATIONS_MAX:
            raise TooLarge(f"1 to {N_INVITATIONS_MAX} invitations are made at once.")
        return [known.tokens.invitation() for _ in range(n)]

    def assignment(self, name: str, token: str, *, is_for_kept: bool = False) -> Assignment:
        """What a respondent is asked; for whoever has a token, without a credential.

        Refused where an answer would not be counted, so that nobody loses epsilon for nothing. A
        token that was counted gets it again; and with `is_for_kept` everybody does, who has an
        answer from before and wants to know whether it was counted.
        """
        known = self._admitted(name, token)
        if not is_for_kept:
            spent = known.tokens.spent_digest(token)
            opened = known.opened
            outcome = self._counting().why_not(
                opened.digest, spent, n_respondents_max=opened.n_respondents_max
            )
            check_taken(name, outcome)
        return Assignment(known.opened.campaign, known.opened.digest)

    def submit(self, name: str, token: str, answer: str) -> bool:
        """Count an answer once for its token.

        Parameters
        ----------
        name : str
        token : str
        answer : str
            As `local_dp.respondent` makes it.

        Returns
        -------
        bool
            Whether it was counted now; False if an answer with this token was counted before.

        Raises
        ------
        InvalidRequest, NotAllowed, StoreUnavailable, TooLarge, UnknownName
            Nothing was counted, or it is not known; the same may be sent again.
        """
        known = self._admitted(name, token)
        submission = read_submission(known.campaign, known.opened.digest, answer)
        outcome = self._counting().count(
            known.opened.digest,
            known.tokens.spent_digest(token),
            submission.counted_at(known.campaign),
            n_respondents_max=known.opened.n_respondents_max,
        )
        check_taken(name, outcome)
        return outcome is Outcome.COUNTED

    def close_collection(self, caller: Caller, name: str) -> CollectionStatus:
        """Take no further answers, and note in the ledger what was counted. Twice does no harm."""
        known = self._opened(caller, name)
        check_owner(caller, name)
        store, opened = self._counting(), known.opened
        store.close_collection(opened.digest)
        counts = store.counts(opened.digest)
        closed = CollectionClosed(name, counts.n_respondents, counts.digest, caller.payer.analyst)

        def build(book: CollectionBook) -> CollectionClosed | None:
            return None if book.by_name[name].closed is not None else closed

        self._ledger.append_collection(build)
        store.forget_order()
        return self.status(caller, name)

    def status(self, caller: Caller, name: str) -> CollectionStatus:
        """One collection; UnknownName unless it is open to the caller."""
        return self._status(self._opened(caller, name))

    def listed(self, caller: Caller) -> tuple[CollectionStatus, ...]:
        """The collections that the caller may know of, by name."""
        self._refresh()
        names = sorted(one for one in self._ledger.collections.by_name if caller.opens(one))
        return tuple(self._status(self._known(name)) for name in names)

    def names(self) -> tuple[str, ...]:
        """Every collection that this process knows of: what no table may be called."""
        return tuple(self._ledger.collections.by_name)

    def estimates(self, caller: Caller, name: str) -> CollectionEstimates:
        """What the answers to a collection say so far, or said in the end. Free.

        Raises
        ------
        StoreUnavailable
            If the counts cannot be read, or are not those with which it was closed.
        UnknownName
        """
        known = self._opened(caller, name)
        counts = self._counts(known)
        tallies = {
            place: [Tally(one.channel, n_answers, counts.of(place, one.channel.n_tallies))]
            for place, one in enumerate(known.campaign.combinations)
            if (n_answers := counts.n_answers.get(place, 0))
        }
        return CollectionEstimates(known.campaign, tallies, counts.n_respondents)

    def close(self) -> None:
        """Close the file of counts. Closing twice does no harm."""
        with self._lock:
            store, self._store = self._store, None
        if store is not None:
            store.close()

    def _counts(self, known: KnownCollection) -> Counts:
        counts = self._counting().counts(known.opened.digest)
        closed = known.closed
        if closed is not None and (closed.n_respondents, closed.counts_digest) != (
            counts.n_respondents,
            counts.digest,
        ):
            raise StoreUnavailable(
                f"The counts of {known.campaign.name} are not those with which it was closed.",
                hint="The server's owner has to restore the file of counts from a backup.",
            )
        return counts

    def _status(self, known: KnownCollection) -> CollectionStatus:
        return CollectionStatus(
            known.campaign,
            known.opened.digest,
            known.opened.n_respondents_max,
            known.opened.is_by_invitation,
            known.closed is not None,
            self._counting().n_respondents(known.opened.digest),
            known.opened.by,
        )

    def _admitted(self, name: str, token: str) -> KnownCollection:
        """A collection, for a respondent whose token it takes."""
        check_token(token)
        known = self._known(name)
        if known.opened.is_by_invitation and not known.tokens.is_invitation(token):
            raise NotAllowed(
                f"{name} takes answers by invitation, and this token is none.",
                hint="Ask who sent you here for a token.",
            )
        return known

    def _opened(self, caller: Caller, name: str) -> KnownCollection:
        if not caller.opens(name):
            raise unknown_collection(name)
        return self._known(name)

    def _known(self, name: str) -> KnownCollection:
        """A collection by its name, wherever it was created."""
        found = self._ledger.collections.by_name.get(name)
        if found is None:
            self._refresh()
            found = self._ledger.collections.by_name.get(name)
        if found is None:
            raise unknown_collection(name)
        known = self._read.get(name)
        if known is None or known.collection is not found:
            known = KnownCollection(found, self._ledger.key)
            self._counting().begin(known.opened.digest)  # which a crash may have left out
            if known.closed is not None:  # and a backup may be from before
                self._counting().close_collection(known.opened.digest)
            self._read[name] = known
        return known

    def _refresh(self) -> None:
        """Look into the ledger for what others created or closed, at most once a second."""
        with self._lock:
            if time.monotonic() < self._refreshed + REFRESH_SECONDS:
                return
            self._refreshed = time.monotonic()
        self._ledger.refresh()

    def _counting(self) -> CountStore:
        """The file of counts, which is there since a collection is."""
        with self._lock:
            if self._store is None:
                if self._path is None:
                    raise no_place()
                try:
                    self._store = _existing(self._path)
                except CannotStart as error:
                    raise StoreUnavailable(error.message, hint=error.hint) from None
            return self._store

    def _make_store(self) -> None:
        """Make the file of counts, if this is the first collection of the ledger."""
        if self._path is None:
            raise no_place()
        with self._lock:
            if self._store is None:
                try:
                    has_some = bool(self._ledger.collections.by_name)
                    self._store = _existing(self._path) if has_some else CountStore(self._path)
                except CannotStart as error:
                    raise StoreUnavailable(error.message, hint=error.hint) from None


def _existing(path: Path) -> CountStore:
    """The file of counts that a ledger's collections have: a new one would forget all answers."""
    if not path.exists():
        raise CannotStart(
            f"The ledger has collections, and the answers to them, {path}, are gone.",
            hint="Restore the file from a backup.",
        )
    return CountStore(path)
