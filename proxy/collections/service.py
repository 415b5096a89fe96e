"""Collections, served, with the file of counts that their ledger has.

The file of counts that a ledger's collections have, and why calls about it are refused.

Why calls about collections are refused: texts for people, with no token or answer in them.

The file of counts that a ledger's collections have: there from the first collection on.

Collections, served: created and closed by owners, answered by anybody who may.

What collections need of a ledger.

A collection whose campaign was read: what a call about it needs, made once.

What is counted of a collection: read as it stands, checked, and made into estimates later.

Collections, served: created and closed by owners, answered by anybody whom they admit.

Opening is an entry of the ledger before there is anything to count in; an answer is durable before
it is acknowledged. Answers were randomised where they were given, so that what they say is free for
every analyst to whom the collection is open, at any time.

Thread-safe; with several processes of one ledger on a machine, each serves every collection. The
argument for who may submit is in docs/threat_model.md.

What a closing left behind is cleared away: the order in which answers came, after a crash.

A closing does it itself (`traces`). Where the process ends before, or the disk is full, or the file
is a backup from before the closing, this is found here, and the closing need not be repeated.
"""

import logging
import threading
import time
from collections.abc import Callable, KeysView, Sequence
from collections.abc import Collection as AnyCollection
from contextlib import suppress
from pathlib import Path
from typing import Final, Protocol

from accountant.ledger import (
    Collection,
    CollectionBody,
    CollectionBook,
    CollectionClosed,
    CollectionOpened,
    Role,
    StreamBook,
)
from cube.refusals import (
    CannotStart,
    InvalidRequest,
    LedgerUnavailable,
    NameTaken,
    NotAllowed,
    StoreUnavailable,
    TacitError,
    TooLarge,
    UnknownName,
)
from local_dp.campaign import Campaign, read_campaign
from local_dp.columns import CollectedAxes
from local_dp.estimates import ByPlace, CollectionEstimates, Tally
from local_dp.submission import read_submission
from proxy.api import Caller
from proxy.collections.status import Assignment, CollectionStatus, check_new_name, check_size
from proxy.collections.store import Counts, CountStore, Outcome
from proxy.collections.tokens import TokenKey, check_token
from proxy.monitoring import UNEXPECTED, Background, write_log


def check_owner(caller: Caller, name: str) -> None:
    """Raise NotAllowed unless the caller owns what has this name."""
    if caller.role is not Role.OWNER or not caller.opens(name):
        raise NotAllowed(
            f"Only an owner to whom {name} is open may do this.",
            hint="Ask the server's owner for a credential that names it, or every table.",
        )


def name_taken(name: str) -> NameTaken:
    """The refusal of a name that something has."""
    return NameTaken(
        f"The name {name} is taken here, or this campaign was opened before.",
        hint="Choose another name: a collection keeps its name, even when closed.",
    )


def unknown_collection(name: str) -> UnknownName:
    """The refusal of a collection that is not there, or not open to the caller: the same text."""
    return UnknownName(f"There is no collection {name[:64]!a}.", hint="Ask its owner for the name.")


def unknown_to_respondent(name: str) -> UnknownName:
    """The refusal of a collection that is not there, or takes other tokens: the same text."""
    return UnknownName(
        f"There is no collection {name[:64]!a} that takes this token.",
        hint="Ask who sent you here for the name; a collection by invitation takes the tokens "
        "that its owner hands out.",
    )


def check_taken(name: str, outcome: Outcome | None) -> None:
    """Raise InvalidRequest or TooLarge if an answer comes too late, or is one too many."""
    if outcome is Outcome.CLOSED:
        raise InvalidRequest(f"{name} is closed and takes no more answers.")
    if outcome is Outcome.FULL:
        raise TooLarge(f"{name} has as many answers as its owner asked for.")


def no_place() -> StoreUnavailable:
    """The refusal of a server that was given no place for answers."""
    return StoreUnavailable(
        "This server has no file for answers.",
        hint="Its owner can name one in the configuration: collections_file under [server].",
    )


class KeptCounts:
    """The file of counts of one ledger. Thread-safe.

    Parameters
    ----------
    path : Path, optional
        None if the server has no place for one.
    has_some : bool
        Whether the ledger has collections: then the file is opened at once.

    Raises
    ------
    CannotStart
        If it is damaged, or is gone while the ledger has collections.
    """

    def __init__(self, path: Path | None, *, has_some: bool) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._store = _existing(path) if has_some and path is not None else None

    @property
    def store(self) -> CountStore:
        """The file, which is there since a collection is.

        Raises
        ------
        StoreUnavailable
        """
        return self._opened(has_some=True)

    def make(self, *, has_some: bool) -> None:
        """Make the file, if there is no collection yet.

        Raises
        ------
        StoreUnavailable
        """
        self._opened(has_some=has_some)

    def close(self) -> None:
        """Close the file. Closing twice does no harm."""
        with self._lock:
            store, self._store = self._store, None
        if store is not None:
            store.close()

    def _opened(self, *, has_some: bool) -> CountStore:
        if self._path is None:
            raise no_place()
        with self._lock:
            if self._store is None:
                try:
                    self._store = _existing(self._path) if has_some else CountStore(self._path)
                except CannotStart as error:
                    raise StoreUnavailable(error.message, hint=error.hint) from None
            return self._store


def _existing(path: Path) -> CountStore:
    """The file that collections have already: a new one would forget all answers."""
    if not path.exists():
        raise CannotStart(
            f"The ledger has collections, but the file of their answers, {path}, is missing.",
            hint="Restore the file from a backup.",
        )
    return CountStore(path)


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


class KnownCollection:
    """A collection with its campaign read, and the key of its tokens."""

    def __init__(self, collection: Collection, ledger_key: bytes) -> None:
        self.collection = collection
        self.opened = collection.opened
        self.closed = collection.closed
        self.campaign: Campaign = read_campaign(collection.opened.campaign)
        self.tokens = TokenKey(ledger_key, collection.opened.digest)


def counts_of(known: KnownCollection, store: CountStore) -> Counts:
    """The counts of a collection; of one that is closed, those with which it was.

    Raises
    ------
    StoreUnavailable
        If they cannot be read, or are others.
    """
    counts = store.counts(known.opened.digest)
    closed = known.closed
    if closed is not None and (closed.n_respondents, closed.counts_digest) != (
        counts.n_respondents,
        counts.digest,
    ):
        raise StoreUnavailable(
            f"The counts of {known.campaign.name} have changed since it was closed.",
            hint="The server's owner has to restore the file of counts from a backup.",
        )
    return counts


def estimates_of(campaign: Campaign, counts: Counts) -> CollectionEstimates:
    """What counts say: tallies are made when they are asked for, each time anew."""
    combinations = campaign.combinations
    n_answers = {
        place: n for place, n in counts.n_answers.items() if n and place < len(combinations)
    }

    def tallies(place: int) -> tuple[Tally, ...]:
        channel = combinations[place].channel
        return (Tally(channel, n_answers[place], counts.of(place, channel.n_tallies)),)

    later = ByPlace(n_answers, tallies, is_kept=False)
    return CollectionEstimates(campaign, later, counts.n_respondents, n_answers)


N_RESPONDENTS_MOST: Final = 10**8
N_INVITATIONS_MAX: Final = 10_000  # in one call
REFRESH_SECONDS: Final = 1.0  # between two looks into the ledger for what others wrote there


class CollectionService:
    """The collections of one ledger.

    Parameters
    ----------
    path : Path, optional
        The file of counts, which is made with the first collection. None if this server has no
        place for one: then it offers no collections.
    reserved : sequence of str
        Names that are a table's here already.
    tell_others : callable
        Has the other processes of this server read the ledger again.

    Raises
    ------
    CannotStart
        If the file is damaged, or is gone while the ledger has collections, or one of them has the
        name of a table.
    """

    def __init__(
        self,
        ledger: CollectionLedger,
        path: Path | None,
        reserved: Sequence[str] = (),
        tell_others: Callable[[], None] = lambda: None,
    ) -> None:
        self._ledger = ledger
        self._reserved = {name.lower() for name in reserved}
        self._tell_others = tell_others
        self._lock = threading.Lock()
        self._nobodys = TokenKey(ledger.key, "")
        self._read: dict[str, KnownCollection] = {}
        self._begun: dict[str, KnownCollection] = {}
        self._refreshed: dict[bool, float] = {}  # by whether it was for a stranger
        taken = [one for one in ledger.collections.by_name if one.lower() in self._reserved]
        if taken:
            raise CannotStart(
                f"{taken[0]} is the name of a collection in this ledger.",
                hint="Give the table another name: a collection keeps its name.",
            )
        self._kept = KeptCounts(path, has_some=bool(ledger.collections.by_name))

    def create(
        self,
        caller: Caller,
        text: str,
        *,
        n_respondents_max: int,
        is_by_invitation: bool = False,
        synthetic: AnyCollection[str] = (),
    ) -> CollectionStatus:
        """Open a collection, for owners to whom its name is open.

        Parameters
        ----------
        text : str
            The campaign's one canonical text, with its name.
        synthetic : collection of str
            The names of synthetic tables that the caller may know of.

        Raises
        ------
        InvalidRequest, NameTaken, NotAllowed, StoreUnavailable, TooLarge
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
                f"The questions of this campaign cannot be columns of a table: {error}.",
                hint="Give its attributes other names or levels: answers are read by SQL.",
            ) from None
        try:
            opened = CollectionOpened(
                text, n_respondents_max, is_by_invitation, caller.payer.analyst
            )
        except ValueError as error:
            raise InvalidRequest(f"This is not a valid collection: {error}.") from None
        check_size(campaign)
        self._kept.make(has_some=bool(self._ledger.collections.by_name))

        def build(book: CollectionBook) -> CollectionOpened:
            taken = {one.lower() for one in (*book.by_name, *self._ledger.streams.streams)}
            if campaign.name.lower() in taken:
                raise ValueError("SQL cannot distinguish the name from another")
            return opened

        try:
            self._ledger.append_collection(build)
        except ValueError:
            raise name_taken(campaign.name) from None
        self._tell_others()
        return self._status(self._opened(caller, campaign.name))

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
        """The questions for a respondent; a token is enough, without a credential.

        Refused if an answer would not be counted, so that no respondent loses epsilon for nothing.
        A token that was counted gets it again; and with `is_for_kept` everybody does, who has an
        answer from before and wants to know whether it was counted.
        """
        known = self._admitted(name, token)
        if not is_for_kept:
            spent = known.tokens.spent_digest(token)
            opened = known.opened
            outcome = self._kept.store.why_not(
                opened.digest, spent, n_respondents_max=opened.n_respondents_max
            )
            check_taken(name, outcome)
        return Assignment(known.opened.campaign, known.opened.digest)

    def submit(self, name: str, token: str, answer: str) -> bool:
        """Count an answer once for its token.

        Parameters
        ----------
        answer : str
            As `local_dp.respondent` makes it.

        Returns
        -------
        bool
            Whether it was counted now; False if an answer with this token was counted before.

        Raises
        ------
        InvalidRequest, StoreUnavailable, TooLarge, UnknownName
            Nothing was counted, or it is not known; the same may be sent again.
        """
        known = self._admitted(name, token)
        submission = read_submission(known.campaign, known.opened.digest, answer)
        outcome = self._kept.store.count(
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
        store, opened = self._kept.store, known.opened
        store.close_collection(opened.digest)
        counts = store.counts(opened.digest)
        closed = CollectionClosed(name, counts.n_respondents, counts.digest, caller.payer.analyst)

        def build(book: CollectionBook) -> CollectionClosed | None:
            return None if book.by_name[name].closed is not None else closed

        self._ledger.append_collection(build)
        self._tell_others()
        store.forget_order()
        return self._status(self._opened(caller, name))

    def status(self, caller: Caller, name: str) -> CollectionStatus:
        """One collection; UnknownName unless it is open to the caller."""
        if caller.opens(name):
            self._refresh()  # another server may have closed it
        return self._status(self._opened(caller, name))

    def listed(self, caller: Caller) -> tuple[CollectionStatus, ...]:
        """The collections that the caller may know of, by name."""
        self._refresh()
        names = sorted(one for one in self._ledger.collections.by_name if caller.opens(one))
        return tuple(self._status(self._known(name)) for name in names)

    def names(self) -> KeysView[str]:
        """Every collection that this process knows of: what no table may be called."""
        return self._ledger.collections.by_name.keys()

    def asked(self, caller: Caller, name: str) -> KnownCollection:
        """What respondents are asked, and whether they still are; reads no counts.

        Raises
        ------
        UnknownName
        """
        self._check_opens(caller, name)
        return self._in_ledger(name)

    def n_respondents(self, caller: Caller, name: str) -> int:
        """How many have answered until now.

        Raises
        ------
        StoreUnavailable, UnknownName
        """
        return self._kept.store.n_respondents(self._opened(caller, name).opened.digest)

    def answered(self, caller: Caller, name: str) -> tuple[int, dict[int, int]]:
        """How many have answered, and how many answers combinations have, by their places.

        Raises
        ------
        StoreUnavailable, UnknownName
        """
        return self._kept.store.answered(self._opened(caller, name).opened.digest)

    def estimates(self, caller: Caller, name: str) -> CollectionEstimates:
        """What the answers to a collection say so far, or said in the end. Free.

        Counts are read now, and tallies are made of them when they are asked for, each time anew.

        Raises
        ------
        StoreUnavailable
            If the counts cannot be read, or are not those with which it was closed.
        UnknownName
        """
        known = self._opened(caller, name)
        return estimates_of(known.campaign, counts_of(known, self._kept.store))

    def read_again(self) -> None:
        """Another process of this server has written to the ledger."""
        with suppress(LedgerUnavailable):  # every question reads it again, too
            self._ledger.refresh()

    @property
    def left_to_forget(self) -> frozenset[int]:
        """What was closed, and may have left the order of its answers in the file: by numbers.

        Raises
        ------
        StoreUnavailable
        """
        known = self._ledger.collections.by_name
        for name, one in known.items():
            if one.closed is not None:
                self._known(name)  # the file may be a backup from before the closing
        return self._kept.store.left_to_forget if known else frozenset()

    def forget_order(self) -> bool:
        """Leave nothing of the order in which closed collections were answered; whether it is done.

        Raises
        ------
        StoreUnavailable
        """
        return self._kept.store.forget_order()

    def close(self) -> None:
        """Close the file of counts. Closing twice does no harm."""
        self._kept.close()

    def _status(self, known: KnownCollection) -> CollectionStatus:
        return CollectionStatus(
            known.campaign,
            known.opened.digest,
            known.opened.n_respondents_max,
            known.opened.is_by_invitation,
            known.closed is not None,
            self._kept.store.n_respondents(known.opened.digest),
            known.opened.by,
        )

    def _admitted(self, name: str, token: str) -> KnownCollection:
        """A collection, for a respondent whose token it takes.

        Where a token is no invitation, the collection is unknown: by the same words and after the
        same work, so that strangers learn no names.
        """
        check_token(token)
        found = self._ledger.collections.by_name.get(name)
        if found is None or self._is_uninvited(name, token):
            self._refresh(by_stranger=True)
            found = self._ledger.collections.by_name.get(name)
        if found is None:
            self._nobodys.is_invitation(token)  # as long as a look at a token of a collection
        if found is None or self._is_uninvited(name, token):
            raise unknown_to_respondent(name)
        return self._known(name)

    def _is_uninvited(self, name: str, token: str) -> bool:
        known = self._in_ledger(name)
        return known.opened.is_by_invitation and not known.tokens.is_invitation(token)

    def _opened(self, caller: Caller, name: str) -> KnownCollection:
        self._check_opens(caller, name)
        return self._known(name)

    def _check_opens(self, caller: Caller, name: str) -> None:
        if not caller.opens(name):
            raise unknown_collection(name)

    def _known(self, name: str) -> KnownCollection:
        """A collection that has counts, wherever it was created."""
        known = self._in_ledger(name)
        if self._begun.get(name) is not known:
            store = self._kept.store
            store.begin(known.opened.digest)  # which a crash may have left out
            if known.closed is not None and store.close_collection(known.opened.digest):
                store.forget_order()  # the file is a backup from before
            self._begun[name] = known
        return known

    def _in_ledger(self, name: str) -> KnownCollection:
        found = self._ledger.collections.by_name.get(name)
        if found is None:
            self._refresh()
            found = self._ledger.collections.by_name.get(name)
        if found is None:
            raise unknown_collection(name)
        known = self._read.get(name)
        if known is None or known.collection is not found:
            known = self._read[name] = KnownCollection(found, self._ledger.key)
        return known

    def _refresh(self, *, by_stranger: bool = False) -> None:
        """Look into the ledger for what other servers created or closed, at most once a second.

        Strangers, who may ask for any names, do not use up the look of who has a credential.
        """
        with self._lock:
            now = time.monotonic()
            if now < self._refreshed.get(by_stranger, -REFRESH_SECONDS) + REFRESH_SECONDS:
                return
            self._refreshed[by_stranger] = now
        self._ledger.refresh()


LOOK_SECONDS: Final = 10.0
RETRY_SECONDS: Final = 600.0  # after a failure: each try lays out the whole file


class Forgetting(Background):
    """A thread that forgets the order of answers to closed collections; a context manager.

    Of several processes with one file, one does it.
    """

    def __init__(self, collections: CollectionService) -> None:
        super().__init__("forgetting", LOOK_SECONDS)
        self._collections = collections
        self._seen: frozenset[int] = frozenset()
        self._waits_until = 0.0

    @property
    def has_work(self) -> bool:
        """Always: a collection may be closed at any time."""
        return True

    def look(self) -> None:
        """Forget what was left at the last look already: a closing just now is at it itself."""
        if time.monotonic() < self._waits_until:
            return
        try:
            left = self._collections.left_to_forget
            is_done = not (left & self._seen) or self._collections.forget_order()
            self._seen = left
        except Exception as error:  # noqa: BLE001 - it has a line of its own, and waits long
            code = error.code if isinstance(error, TacitError) else UNEXPECTED
            write_log(logging.WARNING, "order_not_forgotten", code=code)
            is_done = False
        if not is_done:
            self._waits_until = time.monotonic() + RETRY_SECONDS
