"""A coordinator and its holders, each a process of its own that dies at a named step.

Holders answer on a socket, as their servers would: what is asked and told is text. The coordinator
asks a session of statements until each is answered, and notes what it cost. All of them offer
Gaussian noise if the folder has a file `delta`.
"""

import json
import multiprocessing as mp
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from fractions import Fraction
from multiprocessing.connection import Client, Connection, Listener
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Final

import numpy as np

from accountant.gate import Asked, Gate, Told, open_table
from accountant.ledger import Charge, Ledger, Measured
from accountant.ledger.entries import Body
from accountant.noise import SystemNoise
from cube.measurement import GaussianTerms
from cube.refusals import Refused, SourceUnavailable
from planner.measuring import GaussianOffer
from proxy.api import LOCAL, QueryRequest
from proxy.engine.engine import Engine
from proxy.monitoring import UNWATCHED
from proxy.tables import ServedTable
from proxy.tables.in_flight import Purchases
from tests.support.fakes import DyingLedger, DyingNoise, DyingSource, KnownTable, die
from tests.support.federated import COORDINATOR, federated_schema
from tests.support.square_tables import BUDGET, DEFAULT, records_of, schema_of

SIZES: Final = {"a": 3, "b": 2}
NAMES: Final = ("north", "south")
COUNTS: Final = {
    "north": np.array([[50, 700], [110, 20], [400, 90]], dtype=np.int64),
    "south": np.array([[5, 70], [11, 0], [40, 9]], dtype=np.int64),
}
OPTIONS: Final = "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(half_width => {})"
COUNT: Final = "COUNT(*) AS n FROM rows WHERE a = 'a0'"
SESSION: Final = (
    f"{OPTIONS.format(40)} {COUNT}",
    f"{OPTIONS.format(60)} b, COUNT(*) AS n FROM rows GROUP BY b ORDER BY b",
    f"{OPTIONS.format(20)} {COUNT}",  # a raise of the first
)
BEFORE_AND_AFTER: Final = (
    "before charge",
    "after charge",
    "before measurement",
    "after measurement",
)
STEPS: Final = {
    "coordinator": BEFORE_AND_AFTER,
    "south": (*BEFORE_AND_AFTER, "before read", "after read", "after noise", "before reply"),
}
PATIENCE_SECONDS: Final = 60.0
OFFER: Final = GaussianOffer(Fraction(1, 10**9), Fraction(4), is_declared=True)
CONTEXT = mp.get_context("forkserver")


@dataclass(frozen=True, slots=True)
class Fate:
    """At which time that it comes to a step a process dies."""

    step: str = ""
    time: int = 1


class _Steps:
    """Kills this process at the step that its fate names."""

    def __init__(self, fate: Fate) -> None:
        self._fate = fate
        self._left = fate.time
        self._lock = threading.Lock()

    def at(self, name: str) -> Callable[[], None]:
        def happen() -> None:
            if name == self._fate.step:
                with self._lock:
                    self._left -= 1
                    if not self._left:
                        die()

        return happen

    def ledger(self, path: Path) -> Ledger:
        entry: type[Body] = Charge if self._fate.step.endswith("charge") else Measured
        kind = "charge" if entry is Charge else "measurement"
        return DyingLedger(path, entry, self.at(f"before {kind}"), self.at(f"after {kind}"))


def offer_in(folder: Path) -> GaussianOffer | None:
    return OFFER if (folder / "delta").exists() else None


def hold(folder: str, name: str, fate: Fate) -> None:
    """Answer as a holder, for ever."""
    steps, place = _Steps(fate), Path(folder)
    schema = schema_of(SIZES)
    known = KnownTable(schema, records_of(COUNTS[name]))
    source = DyingSource(known, steps.at("before read"), steps.at("after read"))
    noise = DyingNoise(SystemNoise(), steps.at("after noise"))
    with steps.ledger(place / f"{name}.ledger") as ledger:
        gate = open_table(ledger, schema, BUDGET, source, noise)
        purchases, offer = Purchases(gate, UNWATCHED), offer_in(place)
        terms = None if offer is None else offer.first_terms
        (place / name).unlink(missing_ok=True)
        with Listener(str(place / name), "AF_UNIX", backlog=16) as listener:
            while True:
                caller = listener.accept()
                told = (caller, gate, purchases, terms, steps.at("before reply"))
                threading.Thread(target=_answer, args=told, daemon=True).start()


def _answer(
    caller: Connection,
    gate: Gate,
    purchases: Purchases,
    terms: GaussianTerms | None,
    before_reply: Callable[[], None],
) -> None:
    """Answer one call."""
    with caller, suppress(OSError):  # the coordinator may be dead
        method, text = caller.recv()
        try:
            if method == "state":
                caller.send(gate.state)
            elif method == "price":
                gate.price_for(Asked.read(text), COORDINATOR, terms)
                caller.send("")
            else:
                told = purchases.measure_for(Asked.read(text), COORDINATOR, terms)
                before_reply()
                caller.send(told.text)
        except Refused as refusal:
            caller.send(refusal)


class HoldersElsewhere:
    """Holders that are other processes: a `RemoteGates`."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._states = {name: self._asked_until_told(name) for name in NAMES}

    def fingerprint(self, key: bytes, like: str = "") -> str:  # noqa: ARG002 - of the port
        return "+".join(NAMES)

    def rows_fingerprint(self, key: bytes, like: str = "") -> str:  # noqa: ARG002 - of the port
        return ";".join(f"{name}={state}" for name, state in self._states.items())

    def generation(self, level: int) -> str:
        return self._states[NAMES[level]]

    def left(self) -> list[Fraction | None]:
        raise NotImplementedError("nobody asks the holders for this")

    def check(self, level: int, asked: Asked) -> None:
        self._told(NAMES[level], "price", asked.text)

    def measure(self, level: int, asked: Asked) -> Told:
        return Told.read(self._told(NAMES[level], "measure", asked.text))

    def _asked_until_told(self, name: str) -> str:
        end = time.monotonic() + PATIENCE_SECONDS
        while True:
            try:
                return self._told(name, "state", "")
            except SourceUnavailable:
                if time.monotonic() > end:
                    raise
                time.sleep(0.02)

    def _told(self, name: str, method: str, text: str) -> str:
        try:
            with Client(str(self._folder / name), "AF_UNIX") as connection:
                connection.send((method, text))
                told = connection.recv()
        except (OSError, EOFError) as error:
            raise SourceUnavailable(f"The holder {name} cannot be reached.") from error
        if isinstance(told, Refused):
            raise told
        return str(told)


def coordinate(folder: str, fate: Fate) -> None:
    """Ask until everything is answered, and once more; write what it was and what it cost."""
    place = Path(folder)
    schema = federated_schema(SIZES, NAMES)
    with _Steps(fate).ledger(place / "coordinator.ledger") as ledger:
        gate = open_table(ledger, schema, BUDGET, HoldersElsewhere(place), SystemNoise())
        engine = Engine({"rows": ServedTable(schema, DEFAULT, gate, gaussian=offer_in(place))})
        for sql in SESSION:
            _answered(engine, sql)
        again = [_answered(engine, sql) for sql in SESSION]
    (place / "answers.json").write_text(json.dumps(again))


def _answered(engine: Engine, sql: str) -> tuple[list[float], float]:
    """The numbers of an answer, and what it cost."""
    end = time.monotonic() + PATIENCE_SECONDS
    while True:
        try:
            found = engine.answer(QueryRequest(sql=sql, caller=LOCAL))
        except SourceUnavailable:
            if time.monotonic() > end:
                raise
            time.sleep(0.02)
            continue
        if found.receipt is None:
            raise RuntimeError("an answer must have a receipt")
        numbers = [float(row["n"]) for row in found.data.to_pylist()]
        return numbers, float(found.receipt.epsilon_spent)


@contextmanager
def holding(folder: Path, fates: dict[str, Fate]) -> Iterator[dict[str, BaseProcess]]:
    """The processes of the holders, which can be replaced in the dictionary."""
    CONTEXT.set_forkserver_preload([__name__])
    running = {name: started(hold, str(folder), name, fates.get(name, Fate())) for name in NAMES}
    try:
        yield running
    finally:
        for one in running.values():
            one.kill()
            one.join()


def started(target: Callable[..., None], *arguments: object) -> BaseProcess:
    process = CONTEXT.Process(target=target, args=arguments, daemon=True)
    process.start()
    return process
