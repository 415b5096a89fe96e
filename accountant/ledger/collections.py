"""Collections of randomised answers, as a ledger knows them: opened before an answer, and closed.

    collection_opened  what respondents are asked and how they randomise it, as the one text that
                       they read, too: what each of them loses at most follows from it alone
    collection_closed  how many answered, and a digest of the counts of their answers

A respondent loses epsilon on their own device, so nothing here is spent of a table's budget. Both
entries are about no table. Values only; what a campaign means is known to `local_dp` and, on its
own, to the auditor. Proof: local_dp/proofs/campaigns.md.
"""

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import astuple, dataclass, field, replace
from types import MappingProxyType
from typing import Any, Final, TypeAlias

from accountant.ledger.limits import check_name
from accountant.ledger.values import Fields, typed

_DIGEST: Final = re.compile("[0-9a-f]{64}", re.ASCII)


@dataclass(frozen=True, slots=True)
class CollectionOpened:
    """A collection is open for answers; who said so.

    Parameters
    ----------
    campaign : str
        The campaign's canonical text.
    n_respondents_max : int
        How many respondents may answer.
    is_by_invitation : bool
        Whether only tokens that the owner has handed out are answers' tokens.
    by : str
    """

    campaign: str
    n_respondents_max: int
    is_by_invitation: bool
    by: str

    def __post_init__(self) -> None:
        check_name(self.name)
        if self.n_respondents_max < 1:
            raise ValueError("a collection must allow at least one respondent")

    @property
    def name(self) -> str:
        """The campaign's own name for itself."""
        campaign = json.loads(self.campaign)
        if not isinstance(campaign, dict):
            raise TypeError("a campaign must be a JSON object")
        return str(typed(campaign["name"], str))

    @property
    def digest(self) -> str:
        """The name of the campaign for ever: the digest of its text."""
        return hashlib.sha256(self.campaign.encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class CollectionClosed:
    """A collection takes no answers any more; who said so.

    Parameters
    ----------
    name : str
    n_respondents : int
        How many answered.
    counts_digest : str
        A digest of the counts of their answers.
    by : str
    """

    name: str
    n_respondents: int
    counts_digest: str
    by: str

    def __post_init__(self) -> None:
        if self.n_respondents < 0 or not _DIGEST.fullmatch(self.counts_digest):
            raise ValueError(
                "a closed collection needs a number of answers and the digest of their counts"
            )


CollectionBody: TypeAlias = CollectionOpened | CollectionClosed
COLLECTION_BODIES: Final = (CollectionOpened, CollectionClosed)


@dataclass(frozen=True, slots=True)
class Collection:
    """One collection: how it was opened and, if it was, how it was closed."""

    opened: CollectionOpened
    closed: CollectionClosed | None = None


@dataclass(frozen=True)
class CollectionBook:
    """Every collection by its name, computed from the ledger's entries."""

    by_name: Mapping[str, Collection] = field(default_factory=lambda: MappingProxyType({}))

    def after(self, body: CollectionBody) -> "CollectionBook":
        """With one more entry; ValueError if it cannot follow."""
        if isinstance(body, CollectionOpened):
            digests = {one.opened.digest for one in self.by_name.values()}
            if body.name in self.by_name or body.digest in digests:
                raise ValueError("the collection was opened twice")
            return self._with(body.name, Collection(body))
        known = self.by_name.get(body.name)
        if known is None or known.closed is not None:
            raise ValueError("the closed collection is not open")
        if body.n_respondents > known.opened.n_respondents_max:
            raise ValueError("the collection has more answers than it allows")
        return self._with(body.name, replace(known, closed=body))

    def _with(self, name: str, collection: Collection) -> "CollectionBook":
        return CollectionBook(MappingProxyType({**self.by_name, name: collection}))


# Of each body, the names and types of its fields in an entry, in the order of its parameters.
_FIELDS: Final[dict[type[CollectionBody], dict[str, type[Any]]]] = {
    CollectionOpened: {"campaign": str, "respondents_max": int, "by_invitation": bool, "by": str},
    CollectionClosed: {"name": str, "respondents": int, "counts_digest": str, "by": str},
}


def write_collection(body: CollectionBody) -> Fields:
    """The fields of an entry about a collection."""
    return dict(zip(_FIELDS[type(body)], astuple(body), strict=True))


def read_opened(fields: Fields) -> CollectionOpened:
    """The body of a `collection_opened`."""
    return CollectionOpened(*_read(CollectionOpened, fields))


def read_closed(fields: Fields) -> CollectionClosed:
    """The body of a `collection_closed`."""
    return CollectionClosed(*_read(CollectionClosed, fields))


def _read(kind: type[CollectionBody], fields: Fields) -> Iterator[Any]:
    return (typed(fields[name], expected) for name, expected in _FIELDS[kind].items())
