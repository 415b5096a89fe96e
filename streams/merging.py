"""Adds up the releases of several servers whose users are disjoint: files, and what they give.

A user comes to one of the servers, or to none. Each server has a stream of its own, declared with
the same public numbers and, if it watches a sample, the same sample; each releases its own epoch
with its own noise. The sum of the released numbers is one number for all of them, and has the law
of the number of one server that had a state for each. What leaves a server is a release, which is
public: no state does, so the one look that each epsilon covers is still left, at every server.

Proof, and why no state is handed over: proofs/pan_privacy.md, "Several servers".
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Final, TypeAlias

from cube.encoding import canonical_json
from cube.measurement import UNITS_PER_EPSILON
from cube.refusals import InvalidRequest, TooLarge
from streams.counters import RATE_MIN, CounterMechanism
from streams.declared import counters_of, mechanism_of, population_of
from streams.estimates import ReleasedCount
from streams.mechanism import Mechanism
from streams.population import UNIVERSE_MAX
from streams.visit_estimates import ReleasedVisits

KIND: Final = "tacit release of a stream"
VERSION: Final = 2
FILE_BYTES_MAX: Final = 2**16
N_SERVERS_MAX: Final = 1000
N_PLACES_MAX: Final = 2**27  # of all estimators, as a stream may have
NUMBER_MAX: Final = 2**53
NAME_LENGTH_MAX: Final = 200
N_PREDICATES_MAX: Final = 16
DIGEST_LENGTH: Final = 64
AGREEMENT_LENGTH: Final = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerRelease:
    """The release of one epoch of one server's stream, and what is public about the stream.

    Parameters
    ----------
    stream, epoch : str
    epochs : str
        The window of an epoch.
    universe, n_places, p1, alpha, levels, n_releases : int
        As declared; see `declared.DeclaredStream`.
    has_departures : bool
    predicates : tuple of str
    key : str
        Who is in the sample; empty if everybody has a bit.
    noisy_ones : tuple of int
        Of everybody, then of each predicate. If visits are counted, each has a number for every
        level, of ones less zeros; those of the last release of the epoch.
    opened, released : str
        The digests of the entries in the server's ledger that opened the stream, and that have
        these numbers.
    entry : int
        The number of the latter.
    """

    stream: str
    epoch: str
    epochs: str
    universe: int
    n_places: int
    p1: int
    alpha: int
    levels: int
    n_releases: int
    has_departures: bool
    predicates: tuple[str, ...]
    key: str
    noisy_ones: tuple[int, ...]
    opened: str
    released: str
    entry: int

    def __post_init__(self) -> None:
        if not 1 <= self.universe <= UNIVERSE_MAX:
            raise ValueError("the universe is out of range")
        if not 1 <= self.n_places <= N_PLACES_MAX // (1 + len(self.predicates)):
            raise ValueError("the number of bits is out of range")
        self._check_numbers()
        if any(abs(one) > NUMBER_MAX for one in self.noisy_ones):
            raise ValueError("a number is out of range")
        if (self.universe == self.n_places) != (not self.key):
            raise ValueError("there is a sample exactly if some users have no bit")
        names = (self.stream, self.epoch, self.epochs, *self.predicates)
        if not all(0 < len(one) <= NAME_LENGTH_MAX and one.isprintable() for one in names):
            raise ValueError("a name is out of range")
        if {len(self.opened), len(self.released)} != {DIGEST_LENGTH} or self.entry < 1:
            raise ValueError("the entries in the ledger are not named")
        population_of(self)
        if self.mechanism.output.rate < RATE_MIN:
            raise ValueError("the noise is out of range")

    def _check_numbers(self) -> None:
        """Check the number of numbers."""
        n_numbers = self.n_estimators * max(1, self.levels)
        if len(self.predicates) > N_PREDICATES_MAX or len(self.noisy_ones) != n_numbers:
            raise ValueError("there are not the numbers of all users and of each predicate")
        if not self.levels and self.n_releases != 1:
            raise ValueError("an epoch of distinct users has one release")
        if self.levels and self.has_departures:
            raise ValueError("users whose visits are counted cannot leave")

    @property
    def n_estimators(self) -> int:
        """One for everybody, and one for each predicate."""
        return 1 + len(self.predicates)

    @property
    def mechanism(self) -> Mechanism | CounterMechanism:
        """The laws of its bits and of its noise."""
        return counters_of(self) if self.levels else mechanism_of(self)

    @property
    def epsilon(self) -> float:
        """What a user of this server loses in the epoch, by one look and all releases together."""
        return float(self.n_estimators * self.mechanism.epsilon_units / UNITS_PER_EPSILON)


# What has to be equal, and what a refusal calls it.
AGREED: Final[Mapping[str, str]] = {
    "universe": "universe",
    "n_places": "number of bits",
    "key": "sample",
    "p1": "law of the bits, which follows from epsilon, the bits and the predicates",
    "alpha": "noise, which follows from epsilon, the bits and the predicates",
    "predicates": "predicates",
    "has_departures": "departures",
    "levels": "number up to which visits are counted",
    "n_releases": "number of releases of an epoch",
    "epochs": "window of an epoch",
}


def agreement(declared: Mapping[str, Any]) -> str:
    """A short digest of all that has to be equal in streams whose releases are to be added.

    Parameters
    ----------
    declared : mapping
        The values of `AGREED`, by their names.
    """
    values = [declared[name] for name in AGREED]
    digest = hashlib.sha256(canonical_json([VERSION, *values]).encode()).hexdigest()
    return digest[:AGREEMENT_LENGTH]


def release_file(release: ServerRelease) -> bytes:
    """The content of a file with a release; of the same release, always the same."""
    content = {one.name: getattr(release, one.name) for one in fields(release)}
    content |= {"kind": KIND, "version": VERSION}
    content["predicates"], content["noisy_ones"] = (
        list(release.predicates),
        list(release.noisy_ones),
    )
    content["digest"] = _digest(content)
    return (json.dumps(content, indent=1, sort_keys=True) + "\n").encode()


def release_in(content: bytes, name: str) -> ServerRelease:
    """The release in a file.

    Parameters
    ----------
    content : bytes
    name : str
        What a refusal calls the file.

    Raises
    ------
    TooLarge, InvalidRequest
        If it is longer than any such file, or is not one, or was damaged.
    """
    if len(content) > FILE_BYTES_MAX:
        raise TooLarge(
            f"{name} is longer than any release of a stream.",
            hint="Name files that tacit stream export has written.",
        )
    try:
        return _release(json.loads(content))
    except (ValueError, RecursionError) as error:
        why = f": {error}" if type(error) is ValueError else ""
        raise InvalidRequest(
            f"{name} is not a release of a stream{why}.",
            hint="Write it again with tacit stream export: a release never changes.",
        ) from None


def _release(found: Any) -> ServerRelease:
    """What the fields of a file make; ValueError if they make nothing."""
    if not isinstance(found, dict) or found.pop("kind", None) != KIND:
        raise ValueError("it says so nowhere")
    if found.pop("version", None) != VERSION:
        raise ValueError("another version of Tacit wrote it")
    digest = found.pop("digest", None)
    if digest != _digest(found | {"kind": KIND, "version": VERSION}):
        raise ValueError("it was changed, or is damaged")
    kinds = {one.name: one.type for one in fields(ServerRelease)}
    if found.keys() != kinds.keys():
        raise ValueError("fields are missing, or are too many")
    for name, of_items in (("predicates", str), ("noisy_ones", int)):
        items = found[name]
        if type(items) is not list or any(type(one) is not of_items for one in items):
            raise ValueError(f"{name} is of the wrong kind")
        found[name] = tuple(items)
    for name, value in found.items():
        if type(value) is not tuple and type(value) is not kinds[name]:
            raise ValueError(f"{name} is of the wrong kind")
    return ServerRelease(**found)


def _digest(content: Mapping[str, Any]) -> str:
    return hashlib.sha256(canonical_json(dict(content)).encode()).hexdigest()


Merged: TypeAlias = ReleasedCount | ReleasedVisits


def merged(releases: Mapping[str, ServerRelease]) -> dict[str | None, Merged]:
    """The users who came to any of the servers, or their visits: of all, and of each predicate.

    Parameters
    ----------
    releases : mapping of str to ServerRelease
        By what a refusal calls each: the name of its file.

    Returns
    -------
    dict
        By the predicate, None for everybody. Right if no user came to two of the servers: one who
        did counts once for each.

    Raises
    ------
    InvalidRequest, TooLarge
        If they cannot be added up.
    """
    if not 2 <= len(releases) <= N_SERVERS_MAX:  # noqa: PLR2004 - one is no sum
        raise TooLarge(
            f"{len(releases)} releases cannot be added up.",
            hint=f"Name 2 to {N_SERVERS_MAX} files, each of another server.",
        )
    (first_name, first), *others = releases.items()
    seen = {first.opened: first_name}
    for name, other in others:
        if other.opened in seen:
            raise InvalidRequest(
                f"{seen[other.opened]} and {name} are of the same stream of the same server.",
                hint="Name one file of each server: users would count twice.",
            )
        seen[other.opened] = name
        _check_alike(first_name, first, name, other)
    sums = tuple(map(sum, zip(*(one.noisy_ones for one in releases.values()), strict=True)))
    n_each = max(1, first.levels)
    return {
        predicate: _summed(first, sums[n_each * place : n_each * (place + 1)], len(releases))
        for place, predicate in enumerate((None, *first.predicates))
    }


def _summed(declared: ServerRelease, sums: tuple[int, ...], n_servers: int) -> Merged:
    """The sums of one estimator's numbers."""
    population, mechanism = population_of(declared), declared.mechanism
    if isinstance(mechanism, CounterMechanism):
        return ReleasedVisits(population, mechanism, sums, n_servers)
    (ones,) = sums
    return ReleasedCount(population, mechanism, ones, n_servers)


def _check_alike(one_name: str, one: ServerRelease, name: str, other: ServerRelease) -> None:
    differs = [
        said for field, said in AGREED.items() if getattr(one, field) != getattr(other, field)
    ]
    if differs:
        raise InvalidRequest(
            f"The streams of {one_name} and {name} were not declared alike: they differ in the "
            f"{'; in the '.join(differs)}.",
            hint="Create streams with one statement on all servers, with the same sample => '...' "
            "if not everybody has a bit. These two have answers of their own, which you can add.",
        )
    if one.epoch != other.epoch:
        raise InvalidRequest(
            f"{one_name} is of the epoch {one.epoch}, and {name} of {other.epoch}.",
            hint="Write one of them again, with --epoch.",
        )
