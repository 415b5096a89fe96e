"""The content of each kind of entry, read from its JSON and checked by itself.

An entry of an unknown kind is wrong: an auditor who skips what they cannot read has audited
something else. Whether entries about a table agree with each other is checked in book.py.

Entries about credentials, who was given access and whose ended, are here with the rule between
them: each credential is issued once, and only a valid one can be revoked. What is said about a
collection, a stream, a generation or the ledger itself is read where its rules are.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Final, TypeAlias

from accountant.auditor.chain import EventBody, read_clock, read_rollback
from accountant.auditor.collections import CollectionBody, closed_collection, opened_collection
from accountant.auditor.costs import AtLevel
from accountant.auditor.fields import (
    EPSILON_MAX,
    Fields,
    Json,
    Wrong,
    check_name,
    check_set,
    fields_of,
    fraction,
    list_of,
    moment,
    one_of,
    optional,
    text,
    whole,
)
from accountant.auditor.generations import Begun, begun
from accountant.auditor.noise import Noise, RowNoise, Terms, noise_of, row_noise_of, terms_of
from accountant.auditor.rows import Block, BlockReader
from accountant.auditor.statistics import Gaussian, Statistic, statistic_of
from accountant.auditor.streams import READERS as STREAM_READERS
from accountant.auditor.streams import StreamBody
from cube.axis import N_LEVELS_MAX
from cube.measurement import UNITS_PER_EPSILON
from cube.schema import N_ROWS_PER_UNIT_MAX

ROLES: Final = ("analyst", "owner", "auditor", "collector", "federation")
REFERENCE_LENGTH_MAX: Final = 100
PROOFS: Final = ("token", "certificate")
_KEY: Final = re.compile("[0-9a-f]{64}", re.ASCII)


@dataclass(frozen=True, slots=True)
class Granted:
    """A credential was issued."""

    id: str
    shown: tuple[str, str]


@dataclass(frozen=True, slots=True)
class Revoked:
    """A credential gives no access any more."""

    id: str


def granted(value: Json) -> Granted:
    """A credential that was issued; Wrong if it is not a valid one."""
    required = ("id", "analyst", "groups", "role", "tables", "proof", "shown_as", "expires", "by")
    fields = fields_of(value, required, ("scram",))
    for name in (text(fields, "analyst"), *check_set(list_of(fields, "groups", str), "groups")):
        check_name(name)
    check_set(list_of(fields, "tables", str), "tables")
    one_of(fields, "role", ROLES)
    text(fields, "by")
    optional(fields, "expires", text)
    shown_as = text(fields, "shown_as")
    if not shown_as:
        raise Wrong("the credential has no secret, so anybody could use it")
    proof = one_of(fields, "proof", PROOFS)
    if "scram" in fields:
        _check_scram(fields["scram"], proof)
    return Granted(check_name(text(fields, "id")), (proof, shown_as))


def _check_scram(value: Json, proof: str) -> None:
    """A password is a token, and two keys stand for it."""
    if proof != "token":
        raise Wrong("only a credential with a token can have a password")
    names = ("stored_key", "server_key")
    keys = fields_of(value, names)
    for name in names:
        if _KEY.fullmatch(text(keys, name)) is None:
            raise Wrong(f"{name} is not 64 hexadecimal digits")


def revoked(value: Json) -> Revoked:
    """A credential that was revoked; Wrong if it is not a valid one."""
    fields = fields_of(value, ("id", "by"))
    text(fields, "by")
    return Revoked(text(fields, "id"))


N_WIDTHS: Final = 5  # bins of the share of the promised width, by which answers are counted
VALUE_MAX: Final = 2**63 - 1  # noisy values are clamped within it
WINDOWS: Final = ("day", "week", "month", "quarter", "year", "never")
SUBJECTS: Final = ("analyst", "group", "each_analyst")


@dataclass(frozen=True, slots=True)
class Opened:
    """A table, its data by a keyed fingerprint, and its budget."""

    data_fingerprint: str
    budget: Fraction
    is_pinned: bool  # it also records what is read from the data
    rows_per_unit: int = 1  # at most, among what is read
    shared_budget: str = ""  # the name of the budget, if tables share it
    grows: str = ""  # the axis along which it grows, if it does
    grows_levels: int = 0  # how many levels it has
    rows_at_level: AtLevel | None = None  # at most, of a unit, at each level of a column
    rows_fingerprint: str = (
        ""  # the fingerprint of the rows read from the data; empty if not recorded
    )
    renews: str = "never"  # the window in which the budget may be spent
    holders: str = ""  # the axis of the holders: a unit has rows at one level of it, or see above


@dataclass(frozen=True, slots=True)
class Joined:
    """A table spends from a shared budget from now on."""

    shared_budget: str


@dataclass(frozen=True, slots=True)
class Advanced:
    """More of a growing table is readable: these levels, from the first to before the second."""

    periods: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class Accepted:
    """Closed rows of some periods are others now; what their cells have cost, and all together."""

    periods: tuple[tuple[int, int], ...]
    weight_units: int
    units_before: int
    units_after: int


@dataclass(frozen=True, slots=True)
class Pinned:
    """The rows read from a table's data, by a keyed fingerprint, recorded after its opening."""

    rows_fingerprint: str


@dataclass(frozen=True, slots=True)
class Budget:
    """Another budget, and the window in which it may be spent."""

    budget: Fraction
    renews: str


@dataclass(frozen=True, slots=True)
class Limit:
    """The limit of a subject from now on; without numbers, the limit is removed."""

    subject: str
    epsilon: Fraction | None
    window: str
    per_query: Fraction | None


@dataclass(frozen=True, slots=True)
class Bought:
    """Rows that were paid for; perhaps finer, or again, for rows that were measured before."""

    block: Block
    noise: Noise | RowNoise
    raised_from: int | None


@dataclass(frozen=True, slots=True)
class Charge:
    """A payment."""

    analyst: str
    groups: tuple[str, ...]
    bought: tuple[Bought, ...]
    units_before: int
    units_after: int
    statistics: tuple[Statistic, ...]
    terms: Terms | None
    reference: str = ""  # by which another ledger asked for it

    @property
    def is_gaussian(self) -> bool:
        """Whether any row or statistic of the charge has Gaussian noise."""
        return any(isinstance(one.noise, RowNoise) for one in self.bought) or any(
            isinstance(one, Gaussian) for one in self.statistics
        )

    @property
    def accounts(self) -> tuple[str, ...]:
        """The accounts on which it counts."""
        return (f"analyst:{self.analyst}", *(f"group:{name}" for name in self.groups))


@dataclass(frozen=True, slots=True)
class TakenOver:
    """Another attempt to measure a charge; values drawn before it do not count."""

    charge: int


@dataclass(frozen=True, slots=True)
class Measured:
    """The noisy values of the rows and statistics of one charge, drawn in one of its turns."""

    charge: int
    values: tuple[tuple[int, ...], ...]
    turn: int
    released: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class GivenUp:
    """A charge that will never be measured, since the holder of its rows refused it."""

    charge: int


@dataclass(frozen=True, slots=True)
class InformationalEntry:
    """A declaration or a tally: well-formed, and nothing depends on it."""


AccessBody: TypeAlias = Granted | Revoked
TableBody: TypeAlias = (
    Opened
    | Pinned
    | Budget
    | Joined
    | Advanced
    | Accepted
    | Begun
    | Limit
    | Charge
    | TakenOver
    | Measured
    | GivenUp
    | InformationalEntry
)
Body: TypeAlias = AccessBody | TableBody | EventBody | CollectionBody | StreamBody


def body_of(kind: str, value: Json, blocks: BlockReader) -> Body:
    """The content of an entry; Wrong if it is not a valid one of its kind."""
    if kind == "charge":
        return _charge(value, blocks)
    if kind not in _READERS:
        raise Wrong(f"the kind of entry {kind!r} does not exist")
    return _READERS[kind](value)


def units_of(epsilon: Fraction) -> int:
    """An epsilon in whole units, rounded down."""
    units: int = epsilon.numerator * UNITS_PER_EPSILON // epsilon.denominator
    return units


def _opened(value: Json) -> Opened:
    required = ("schema_digest", "data_fingerprint", "budget")
    optional_ones = (
        "rows_fingerprint",
        "rows_per_unit",
        "rows_per_unit_by",
        "shared_budget",
        "grows",
        "grows_levels",
        "renews",
        "holders",
    )
    fields = fields_of(value, required, optional_ones)
    text(fields, "schema_digest")
    is_pinned = "rows_fingerprint" in fields
    rows = text(fields, "rows_fingerprint") if is_pinned else ""
    n_rows = (
        whole(fields, "rows_per_unit", 2, N_ROWS_PER_UNIT_MAX) if "rows_per_unit" in fields else 1
    )
    shared = check_name(text(fields, "shared_budget")) if "shared_budget" in fields else ""
    data, budget = text(fields, "data_fingerprint"), _epsilon(fields, "budget")
    at_level = _at_level(fields["rows_per_unit_by"]) if "rows_per_unit_by" in fields else None
    if at_level is not None and at_level.n_rows >= n_rows:
        raise Wrong("the bound on a unit's rows at one level must be below its bound on all rows")
    grows = check_name(text(fields, "grows")) if "grows" in fields else ""
    if ("grows_levels" in fields) != bool(grows):
        raise Wrong("a table must have grows_levels exactly if it grows")
    n_levels = whole(fields, "grows_levels", 1, N_LEVELS_MAX) if grows else 0
    if grows and is_pinned:
        raise Wrong("a table that grows cannot have the fingerprint of all its rows")
    is_pinned = is_pinned or bool(grows)
    growing = grows, n_levels
    holders = check_name(text(fields, "holders")) if "holders" in fields else ""
    if holders and grows:
        raise Wrong("a table that grows names no holders")
    renews = _renews(fields)
    return Opened(
        data, budget, is_pinned, n_rows, shared, *growing, at_level, rows, renews, holders
    )


def _at_level(value: Json) -> AtLevel:
    if not isinstance(value, dict) or len(value) != 1:
        raise Wrong("the rows of a unit must be bounded along exactly one column")
    (column,) = value
    return AtLevel(check_name(column), whole(value, column, 1))


def _advanced(value: Json) -> Advanced:
    fields = fields_of(value, ("periods", "by"))
    text(fields, "by")
    return Advanced(_periods(fields))


def _accepted(value: Json) -> Accepted:
    spending = ("weight_units", "units_before", "units_after")
    fields = fields_of(value, ("periods", *spending, "by"))
    text(fields, "by")
    return Accepted(_periods(fields), *(whole(fields, name) for name in spending))


def _periods(fields: Fields) -> tuple[tuple[int, int], ...]:
    periods = []
    for one in list_of(fields, "periods", dict):
        period = fields_of(one, ("start", "end", "rows_fingerprint"))
        text(period, "rows_fingerprint")
        start = whole(period, "start")
        periods.append((start, whole(period, "end", start + 1, N_LEVELS_MAX)))
    if not periods:
        raise Wrong("the entry names no period")
    return tuple(periods)


def _joined(value: Json) -> Joined:
    return Joined(check_name(text(fields_of(value, ("shared_budget",)), "shared_budget")))


def _pinned(value: Json) -> Pinned:
    return Pinned(text(fields_of(value, ("rows_fingerprint",)), "rows_fingerprint"))


def _declared(value: Json) -> InformationalEntry:
    text(fields_of(value, ("declaration",)), "declaration")
    return InformationalEntry()


def _budget(value: Json) -> Budget:
    fields = fields_of(value, ("budget",), ("renews",))
    return Budget(_epsilon(fields, "budget"), _renews(fields))


def _renews(fields: Fields) -> str:
    """The window of a budget; one that never renews is written without it."""
    return one_of(fields, "renews", WINDOWS[:-1]) if "renews" in fields else WINDOWS[-1]


def _limit(value: Json) -> Limit:
    fields = fields_of(value, ("for", "epsilon", "window", "per_query", "by"))
    text(fields, "by")
    subject = text(fields, "for")
    kind, _, name = subject.partition(":")
    if kind not in SUBJECTS or (kind == "each_analyst") != (subject == kind):
        raise Wrong(f"the limit is for {subject!r}, which is not a valid subject")
    if name or kind != "each_analyst":
        check_name(name)
    epsilon = optional(fields, "epsilon", _epsilon)
    per_query = optional(fields, "per_query", _epsilon)
    return Limit(subject, epsilon, one_of(fields, "window", WINDOWS), per_query)


def _charge(value: Json, blocks: BlockReader) -> Charge:
    required = ("analyst", "blocks", "units_before", "units_after")
    fields = fields_of(value, required, ("groups", "statistics", "normal", "reference"))
    reference = text(fields, "reference") if "reference" in fields else ""
    if "reference" in fields and not 0 < len(reference) <= REFERENCE_LENGTH_MAX:
        raise Wrong(f"a reference must have 1 to {REFERENCE_LENGTH_MAX} characters")
    bought = tuple(_bought(one, blocks) for one in list_of(fields, "blocks", dict))
    groups: tuple[str, ...] = ()
    if "groups" in fields:
        groups = check_set(list_of(fields, "groups", str), "groups")
    for name in groups:
        check_name(name)
    statistics: tuple[Statistic, ...] = ()
    if "statistics" in fields:
        asked = list_of(fields, "statistics", dict)
        statistics = tuple(statistic_of(one, blocks) for one in asked)
    terms = terms_of(fields["normal"]) if "normal" in fields else None
    before, after = whole(fields, "units_before"), whole(fields, "units_after")
    analyst = check_name(text(fields, "analyst"))
    charge = Charge(analyst, groups, bought, before, after, statistics, terms, reference)
    if (terms is not None) != charge.is_gaussian:
        raise Wrong(
            "a charge must have terms if it pays for Gaussian noise, and must not otherwise"
        )
    return charge


def _bought(value: Json, blocks: BlockReader) -> Bought:
    is_gaussian = "precision_units" in value
    paid = "precision_units" if is_gaussian else "weight_units"
    fields = fields_of(value, ("block", "lattice_bits", "noise_scale", paid), ("raised_from",))
    raised_from = whole(fields, "raised_from") if "raised_from" in fields else None
    noise = row_noise_of(fields) if is_gaussian else noise_of(fields)
    return Bought(blocks.block(fields["block"]), noise, raised_from)


def _given_up(value: Json) -> GivenUp:
    return GivenUp(whole(fields_of(value, ("charge",)), "charge", 1))


def _check_receipt(value: Json) -> None:
    """Wrong unless it names a charge of a holder, and a later entry with its digest."""
    fields = fields_of(value, ("entry", "head_entry", "head"))
    whole(fields, "head_entry", whole(fields, "entry", 1) + 1)
    if _KEY.fullmatch(text(fields, "head")) is None:
        raise Wrong("the head of a holder's ledger is not 64 hexadecimal digits")


def _taken_over(value: Json) -> TakenOver:
    return TakenOver(whole(fields_of(value, ("charge",)), "charge", 1))


def _measured(value: Json) -> Measured:
    fields = fields_of(value, ("charge", "lattice_values"), ("turn", "released", "receipt"))
    if "receipt" in fields:
        _check_receipt(fields["receipt"])
    values = list_of(fields, "lattice_values", list)
    released = list_of(fields, "released", int) if "released" in fields else []
    for of_block in (*values, released):
        if any(type(one) is not int or abs(one) > VALUE_MAX for one in of_block):
            raise Wrong("a noisy value is not a whole number of at most 64 bits")
    turn = whole(fields, "turn", 1) if "turn" in fields else 0
    charge = whole(fields, "charge", 1)
    return Measured(charge, tuple(map(tuple, values)), turn, tuple(released))


def _served(value: Json) -> InformationalEntry:
    fields = fields_of(value, ("since", "tallies"))
    moment(fields, "since")
    numbers = ("n_free", "n_paid", "plain_units_free", "plain_units_paid")
    for one in list_of(fields, "tallies", dict):
        tally = fields_of(one, ("analyst", "widths", *numbers))
        text(tally, "analyst")
        for name in numbers:
            whole(tally, name)
        widths = list_of(tally, "widths", int)
        if len(widths) != N_WIDTHS or min(widths) < 0:
            raise Wrong("the tally has a negative number of answers or the wrong number of widths")
    return InformationalEntry()


def _epsilon(fields: Fields, name: str) -> Fraction:
    found = fraction(fields, name)
    if found < 0:
        raise Wrong(f"{name} is below zero")
    if found > EPSILON_MAX:
        raise Wrong(f"{name} is above {EPSILON_MAX}")
    return found


_READERS: Final[dict[str, Callable[[Json], Body]]] = {
    "table_opened": _opened,
    "data_pinned": _pinned,
    "table_declared": _declared,
    "budget_set": _budget,
    "budget_joined": _joined,
    "changes_accepted": _accepted,
    "horizon_advanced": _advanced,
    "generation_begun": begun,
    "limit_set": _limit,
    "taken_over": _taken_over,
    "measurement": _measured,
    "charge_given_up": _given_up,
    "served": _served,
    "access_granted": granted,
    "access_revoked": revoked,
    "rollback_accepted": read_rollback,
    "clock_corrected": read_clock,
    "collection_opened": opened_collection,
    "collection_closed": closed_collection,
    **STREAM_READERS,
}


@dataclass(slots=True)
class Access:
    """Credentials by their names, and by their proofs."""

    issued: set[str] = field(default_factory=set)
    in_force: dict[str, tuple[str, str]] = field(default_factory=dict)

    def take(self, body: AccessBody) -> None:
        """Apply an entry; Wrong if it cannot follow those before it."""
        if isinstance(body, Granted):
            if body.id in self.issued:
                raise Wrong("a credential was issued before under the same name")
            if body.shown in self.in_force.values():
                raise Wrong("another credential in force has the same secret")
            self.issued.add(body.id)
            self.in_force[body.id] = body.shown
        elif self.in_force.pop(body.id, None) is None:
            raise Wrong("the revoked credential is not in force")
