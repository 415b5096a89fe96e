"""Each field of each kind of entry, forged with extreme values: a plain verdict and refusal.

Whoever can write a ledger can put anything into it, and link it so that the chain is intact. The
auditor and the start of a server must then say what is wrong: no other exception, no number that is
believed before it is bounded, in a time and a memory that do not depend on what is written.
"""

import gzip
import json
import random
import tracemalloc
from collections.abc import Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any, Final

import pytest

from accountant.auditor.verify import verify
from accountant.gate.opening import open_table
from accountant.ledger.collections import CollectionClosed, CollectionOpened
from accountant.ledger.entries import Entry
from accountant.ledger.history.replay import Replay
from accountant.ledger.limits import Payer
from accountant.ledger.opening import open_ledger
from accountant.ledger.stores.sqlite_store import SqliteReader
from accountant.noise.lattice_noise import SystemNoise
from cube.encoding import canonical_json
from cube.measurement import PlannedMeasurement, Precision
from tests.support.a_stream import ledger_on, write_a_stream
from tests.support.audited import rechained, write_ledger
from tests.support.campaigns import TEXTS
from tests.support.fakes import KnownTable
from tests.support.gaussian import TERMS
from tests.support.seven_people import BY_SEX, RECORDS
from tests.support.seven_people import SCHEMA as PEOPLE

ROOT: Final = Path(__file__).parents[2]
INNER: Final = "#"  # a step from a text into the JSON that it holds
MEMORY_MAX: Final = 2**27
N_FAST: Final = 12

Step = str | int


def nested(depth: int, *, is_object: bool) -> Any:
    value: Any = 0
    for _ in range(depth):
        value = {"a": value} if is_object else [value]
    return value


EXTREMES: Final[tuple[Any, ...]] = (
    *(
        0,
        1,
        -1,
        2**31,
        2**52 + 1,
        2**63 - 1,
        2**63,
        2**64,
        2**64 + 1,
        2**128 + 1,
        10**18,
        10**400,
        -(10**30),
    ),
    *(10**4200, True, None, "", [], {}, "0", "-1", "1/3", "1/0", "9" * 3999, "1/" + "9" * 3999),
    *("1e999999999", "1e-999999999", "nan", "inf", "-inf", "Infinity", "0x1p1023", "0x1p-1074"),
    *("0x1.0000000000000p+1023", "0x1.0000000000000p-1022", "x" * 100_000, "\ud800", "\x00"),
    *("2026-13-45T00:00:00.000+00:00", "9999-12-31T23:59:59.999+00:00"),
    *("0001-01-01T00:00:00.000+00:00", [[]] * 3, {"a": 1}, [0] * 50_000, [2**62] * 3, [-1, -1]),
    *(nested(400, is_object=False), nested(400, is_object=True)),
)
# Bodies that no JSON library would write.
TEXTS_OF_BODIES: Final = (
    *("", "null", "[]", "NaN", "{", '{"a":NaN}', '{"a":1e400}', '{"a":1,"a":2}', "\x00", "\ud800"),
    *('{"a":' * 100_000, "[" * 100_000, '{"a":' + "9" * 5000 + "}", '{"a":-0}', '{"a":1.0}'),
)


def kept(name: str, folder: Path) -> list[Entry]:
    path = folder / f"{name}.ledger"
    path.write_bytes(gzip.decompress((ROOT / "end_to_end" / name / "ledger.gz").read_bytes()))
    return entries_of(path)


def entries_of(path: Path) -> list[Entry]:
    with closing(SqliteReader(path)) as reader:
        return list(reader.entries_after(0))


def ledgers(folder: Path) -> Iterator[list[Entry]]:
    """Ledgers that have an entry of every kind between them, the short ones first."""
    with ledger_on(folder / "streams.ledger", "2026-11-24") as ledger:
        write_a_stream(ledger)
    yield entries_of(folder / "streams.ledger")
    with open_ledger(folder / "collections.ledger") as ledger:
        opened = CollectionOpened(TEXTS[0], 1000, is_by_invitation=True, by="owner")
        ledger.append_collection(lambda _book: opened)
        closed = CollectionClosed(opened.name, 3, "cd" * 32, "owner")
        ledger.append_collection(lambda _book: closed)
    yield entries_of(folder / "collections.ledger")
    with open_ledger(folder / "gaussian.ledger") as ledger:
        gate = open_table(ledger, PEOPLE, Fraction(2), KnownTable(PEOPLE, RECORDS), SystemNoise())
        for precision, raised_from in ((2**90, None), (2**91, 0)):
            plan = PlannedMeasurement(BY_SEX, Precision(precision), raised_from, TERMS)
            gate.measure([plan], Payer("ann"), epsilon_cap=None)
    yield entries_of(folder / "gaussian.ledger")
    write_ledger(folder / "audited.ledger")
    yield entries_of(folder / "audited.ledger")
    yield kept("kept_shop", folder)
    yield kept("kept_ledger", folder)


@dataclass(frozen=True, slots=True)
class Place:
    """A field of an entry of a ledger; an empty path is the whole body."""

    entries: Sequence[Entry]
    place: int
    path: tuple[Step, ...]

    @property
    def shape(self) -> tuple[object, ...]:
        """What fields of one meaning have in common."""
        steps = tuple("*" if isinstance(step, int) else step for step in self.path)
        return self.entries[self.place].kind, *steps

    def forged(self, value: Any) -> list[Entry] | None:
        """The ledger with another value there; None if it has no text."""
        body = json.loads(self.entries[self.place].body)
        try:
            return self.with_body(canonical_json(_with(body, self.path, value)))
        except ValueError:  # a number of more digits than Python writes
            return None

    def with_body(self, body: str) -> list[Entry]:
        """The ledger with another text of the entry."""
        before, after = self.entries[: self.place], self.entries[self.place + 1 :]
        return rechained([*before, replace(self.entries[self.place], body=body), *after])


def _with(body: Any, path: tuple[Step, ...], value: Any) -> Any:
    if not path:
        return value
    step, *rest = path
    if step == INNER:
        return canonical_json(_with(json.loads(body), tuple(rest), value))
    body[step] = _with(body[step], tuple(rest), value)
    return body


def paths(value: Any, path: tuple[Step, ...] = ()) -> Iterator[tuple[Step, ...]]:
    yield path
    if isinstance(value, dict):
        for name, one in value.items():
            yield from paths(one, (*path, name))
    elif isinstance(value, list):
        for at, one in enumerate(value[:4]):  # those after it mean the same
            yield from paths(one, (*path, at))
    elif isinstance(value, str) and value.startswith(("{", "[")):
        yield from paths(json.loads(value), (*path, INNER))


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> list[Place]:
    """One place of each meaning."""
    found: dict[tuple[object, ...], Place] = {}
    for entries in ledgers(tmp_path_factory.mktemp("ledgers")):
        for at, entry in enumerate(entries):
            for path in paths(json.loads(entry.body)):
                place = Place(entries, at, path)
                found.setdefault(place.shape, place)
    return list(found.values())


def examine(forged: Sequence[Entry]) -> None:
    """The auditor gives a verdict, and a server that starts opens the ledger or refuses it."""
    verdict = verify(forged, has_columns=True)
    assert verdict.problem is None or len(verdict.problem) < 500
    for table in verdict.tables:
        float(table.spent)
    with suppress(ValueError):  # what a ledger is refused with
        Replay().read(forged)


def test_the_ledgers_have_an_entry_of_every_kind(places: list[Place]) -> None:
    fields = {place.shape[-1] for place in places}
    assert {"precision_units", "rho_units", "weight_units", "candidates", "reference"} <= fields
    kinds = {place.entries[place.place].kind for place in places}
    assert len(kinds) >= 19


def test_a_field_that_is_forged_is_named_or_means_nothing(places: list[Place]) -> None:
    """A few of all combinations, others each time that this file changes its seed."""
    draw = random.Random(35)  # noqa: S311 - no secret
    short = [place for place in places if len(place.entries) < 40]
    for _ in range(N_FAST):
        forged = draw.choice(short).forged(draw.choice(EXTREMES))
        if forged is not None:
            examine(forged)


@pytest.mark.parametrize("text", TEXTS_OF_BODIES, ids=range(len(TEXTS_OF_BODIES)))
def test_a_body_that_no_library_writes_is_refused(places: list[Place], text: str) -> None:
    forged = replace(places[0].entries[0], body=text)
    if "\ud800" not in text:  # of which there is no digest
        (forged,) = rechained([forged])
    assert verify([forged]).problem is not None
    with pytest.raises(ValueError, match="entry 1"):
        Replay().read([forged])


def test_levels_of_a_table_that_grows_are_bounded_before_they_are_laid_out(
    places: list[Place],
) -> None:
    (levels,) = (one for one in places if one.shape == ("table_opened", "grows_levels"))
    for number in (2**20 + 1, 2**33, 2**40, 2**62):
        forged = levels.forged(number)
        assert forged is not None
        tracemalloc.start()
        try:
            problem = verify(forged).problem or ""
            with pytest.raises(ValueError, match=f"entry {levels.place + 1}"):
                Replay().read(forged)
            _, most = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        assert problem.startswith(f"entry {levels.place + 1}: grows_levels")
        assert most < MEMORY_MAX


@pytest.mark.slow
def test_every_field_of_every_kind_with_every_extreme(places: list[Place]) -> None:
    for place in places:
        for value in EXTREMES:
            forged = place.forged(value)
            if forged is not None:
                examine(forged)
