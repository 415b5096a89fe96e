"""Reads statements about streams; the proxy carries them out.

    CREATE STREAM name (column UNIVERSE 100000 [, predicate BOOLEAN ..])
        [WITH (epsilon => 1, epochs => 'day', bits => 10000, departures => true, budget => 30,
               sample => 'any text')]
    CREATE STREAM name (column UNIVERSE 100000 [, predicate BOOLEAN ..])
        WITH (visits => 10 [, epsilon => 1, epochs => 'day', releases => 4, bits => 10000, ..])
    CREATE STREAM name (column BUCKETS 100000 [, predicate BOOLEAN ..])
        [WITH (epsilon => 1, epochs => 'day', budget => 30)]
    DROP STREAM [IF EXISTS] name

A universe is known: its users are 0 to one less than its number, and each has a bit, or a sample of
`bits` of them: the same users wherever `sample` is the same text. Buckets are for an unknown
universe: any 64-bit id is a user. A predicate is told with each arrival; who came while it held is
counted too. With `visits`, a user's visits are counted up to that number, and `releases` divides an
epoch into as many equal parts, each with a release.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Final, TypeAlias

from sqlglot.tokenizer_core import Token, TokenType

from accountant.ledger import LEVELS_MAX, N_PREDICATES_MAX, N_RELEASES_MAX
from cube.axis import NAME_LENGTH_MAX
from cube.refusals import InvalidTarget
from planner.sql.messages import shortened
from planner.sql.words import StatementReader, whole

EPOCHS: Final = ("never", "day", "week", "month", "quarter", "year")
UNIVERSE_MAX: Final = 2**32
BITS_MAX: Final = 2**27  # a state of 16 MB, made in a second
BITS_OF_COUNTER: Final = 8
EPOCH: Final = "epoch"  # the column with the names of epochs
LEFT: Final = "left"  # of an upload: who left
VISITS: Final = "visits"  # the column with the number of a user's visits
OPTION_NAMES: Final = (
    "epsilon",
    "epochs",
    "bits",
    "departures",
    "budget",
    VISITS,
    "releases",
    "sample",
)
_Value: TypeAlias = Fraction | str | bool


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateStream:
    """A stream to be observed, as it was written.

    Parameters
    ----------
    name : str
        An identifier.
    column : str
        What its users are called.
    universe : int, optional
        The number of users; None if it is unknown.
    n_bits : int
        Of everybody, of a sample, or buckets; for each predicate as many again.
    predicates : tuple of str
        Those whose users are counted too.
    epsilon : Fraction
        What an epoch loses, over all that is counted.
    epochs : str
        The window after which an epoch ends; ``never`` if with its release.
    has_departures : bool
    budget : Fraction, optional
        The most that all epochs lose together.
    visits : int
        Up to which number a user's visits are counted; 0 if only users are.
    n_releases : int
        How many releases an epoch has.
    sample : str, optional
        A text from which the sample is drawn; None if it is drawn at random.
    """

    name: str
    column: str
    universe: int | None
    n_bits: int
    predicates: tuple[str, ...] = ()
    epsilon: Fraction = Fraction(1)
    epochs: str = "never"
    has_departures: bool = False
    budget: Fraction | None = None
    visits: int = 0
    n_releases: int = 1
    sample: str | None = None
    verb: ClassVar[str] = "CREATE"


@dataclass(frozen=True, slots=True, kw_only=True)
class DropStream:
    """A stream to be taken away, with its states; with `if_exists`, if it is there."""

    name: str
    if_exists: bool = False
    verb: ClassVar[str] = "DROP"


StreamStatement: TypeAlias = CreateStream | DropStream


def read_stream(words: Sequence[Token]) -> StreamStatement | None:
    """The statement about a stream; None if the words begin otherwise.

    Raises
    ------
    InvalidSql, InvalidTarget
        If it is one, and is malformed.
    """
    reader = _Reader(words)
    if reader.passed("CREATE", "STREAM"):
        return reader.create()
    if reader.passed("DROP", "STREAM"):
        if_exists = reader.passed("IF", "EXISTS")
        name = reader.name("a stream")
        reader.expect_end()
        return DropStream(name=name, if_exists=if_exists)
    return None


class _Reader(StatementReader):
    """Reads a statement about a stream."""

    example = "CREATE STREAM visits (user UNIVERSE 100000, paid BOOLEAN) WITH (epsilon => 1)"

    def create(self) -> CreateStream:
        name = self.new_name("stream", "a stream")
        self.expect("(")
        column = self._column(set(), "a column")
        is_known = self.passed("UNIVERSE")
        if not is_known and not self.passed("BUCKETS"):
            raise self.what_is_next("UNIVERSE or BUCKETS")
        size = self.number("UNIVERSE" if is_known else "BUCKETS")
        predicates = self._predicates(column)
        found = self.options(OPTION_NAMES, self._value)
        self.expect_end()
        return _created(name, column, size, predicates, found, is_known=is_known)

    def _predicates(self, column: str) -> tuple[str, ...]:
        """The columns behind the first one, up to the closing bracket."""
        names = [column]
        while self.passed(","):
            if len(names) > N_PREDICATES_MAX:
                raise InvalidTarget(
                    f"A stream has at most {N_PREDICATES_MAX} predicates.",
                    hint="Each takes a part of epsilon: declare only those you will ask about.",
                )
            names.append(self._column({one.casefold() for one in names}, "a predicate"))
            self.expect("BOOLEAN")
        self.expect(")")
        return tuple(names[1:])

    def _column(self, taken: set[str], what: str) -> str:
        name = self.name(what)
        if not 0 < len(name) <= NAME_LENGTH_MAX or not name.isprintable() or name != name.strip():
            raise InvalidTarget(
                f"{shortened(name)!a} cannot be the name of {what}.",
                hint=f"Use 1 to {NAME_LENGTH_MAX} printable characters, with no space at the ends.",
            )
        if name.casefold() in taken | {EPOCH, LEFT}:
            raise InvalidTarget(
                f"A column of a stream cannot be named {shortened(name)!a}.",
                hint=f"{EPOCH} and {LEFT} are reserved, and no two columns may have the same name.",
            )
        return name

    def _value(self, option: str) -> _Value:
        if option == "departures":
            return self.truth(option)
        if option == "sample":
            return self._text(option)
        if option != "epochs":
            return self.number(option)
        word = self.next_expected("a window").text.lower()
        if word not in EPOCHS:
            raise InvalidTarget(
                f"epochs must be a window of time, not {shortened(word)!a}.",
                hint=f"The windows are {', '.join(EPOCHS)}.",
            )
        return word

    def _text(self, option: str) -> str:
        word = self.next_expected("a text")
        if word.token_type != TokenType.STRING or not 0 < len(word.text) <= NAME_LENGTH_MAX:
            raise InvalidTarget(
                f"{option} must be a text of 1 to {NAME_LENGTH_MAX} characters between quotes.",
                hint="Agree on any text with the other servers, as in sample => 'survey of 2026'.",
            )
        return word.text


def _created(  # noqa: PLR0913 - the parts of a statement, each read by itself
    name: str,
    column: str,
    size: Fraction,
    predicates: tuple[str, ...],
    found: dict[str, _Value],
    *,
    is_known: bool,
) -> CreateStream:
    """The statement, once its numbers are in range."""
    universe: int | None = None
    if is_known:
        universe = n_bits = whole("UNIVERSE", size, 1, UNIVERSE_MAX)
        if "bits" in found:
            n_bits = whole("bits", found["bits"], 1, min(universe, BITS_MAX))
    else:
        n_bits = whole("BUCKETS", size, 2, BITS_MAX)
        if {"bits", "sample"} & found.keys() or found.get("departures"):
            raise InvalidTarget(
                "A stream with BUCKETS cannot have bits, a sample or departures: each bucket is "
                "one bit, and users share it.",
                hint="Use UNIVERSE if you know the number of users. Otherwise leave out bits, "
                "sample and departures.",
            )
    visits, n_releases = _counters(column, predicates, found, is_known=is_known)
    n_bits_max = BITS_MAX // (1 + len(predicates)) // (BITS_OF_COUNTER if visits else 1)
    if n_bits > n_bits_max:
        each = " for all users and for each predicate" if predicates else ""
        each += f", each of {BITS_OF_COUNTER} for visits," if visits else ""
        sampled = (
            f"Observe a sample of users: bits => 1000000, or another number up to {n_bits_max}."
        )
        raise InvalidTarget(
            f"{n_bits} bits{each} are too many for a state.",
            hint=sampled if is_known else f"Use at most {n_bits_max} buckets.",
        )
    sample = found.get("sample")
    if sample is not None and n_bits == universe:
        raise InvalidTarget(
            "sample says which users have a bit, and here all of them have one.",
            hint="Leave it out: such streams of several servers need no agreement on a sample.",
        )
    epsilon, budget = Fraction(found.get("epsilon", 1)), found.get("budget")
    if isinstance(budget, Fraction) and budget < epsilon:
        raise InvalidTarget(
            "budget is the limit for all epochs together, so it must be at least epsilon.",
            hint="Raise budget, or leave it out: then each epoch begins when its time comes.",
        )
    return CreateStream(
        name=name,
        column=column,
        universe=universe,
        n_bits=n_bits,
        predicates=predicates,
        epsilon=epsilon,
        epochs=str(found.get("epochs", "never")),
        has_departures=bool(found.get("departures", False)),
        budget=budget if isinstance(budget, Fraction) else None,
        visits=visits,
        n_releases=n_releases,
        sample=sample if isinstance(sample, str) else None,
    )


def _counters(
    column: str, predicates: tuple[str, ...], found: dict[str, _Value], *, is_known: bool
) -> tuple[int, int]:
    """Up to which number visits are counted, and how often an epoch is released."""
    visits = whole(VISITS, found[VISITS], 2, LEVELS_MAX) if VISITS in found else 0
    n_releases = 1
    if "releases" in found:
        n_releases = whole("releases", found["releases"], 1, N_RELEASES_MAX)
    if n_releases > 1 and (not visits or found.get("epochs", "never") == "never"):
        raise InvalidTarget(
            "Several releases of an epoch need counters of visits, and epochs that end by the "
            "clock.",
            hint="As in WITH (visits => 10, epochs => 'day', releases => 4). Distinct users alone "
            "are released once an epoch: take shorter epochs.",
        )
    if not visits:
        return 0, n_releases
    if not is_known or found.get("departures"):
        raise InvalidTarget(
            "A stream that counts visits cannot have BUCKETS or departures: the visits of users "
            "who share a bucket would add up, and a visit cannot be taken back.",
            hint="Use UNIVERSE without departures, or leave out visits to count distinct users.",
        )
    if VISITS in {name.casefold() for name in (column, *predicates)}:
        raise InvalidTarget(
            f"{VISITS} is the column of a stream with the number of a user's visits.",
            hint="Give the users' column and the predicates other names.",
        )
    return visits, n_releases
