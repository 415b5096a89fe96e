"""The respondents of `benchmarks.randomised_collections`: how they answer, send, and send again.

A thread is one respondent after another. Each checks the campaign's text once a process, draws an
answer by the code of a respondent's device, and sends it over gRPC or over the HTTP endpoint of web
pages, with a connection for each answer there as pages have. What breaks is sent again, the same
answer with the same token, until it is acknowledged.
"""

import http.client
import json
import math
import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TypeAlias

import grpc

from local_dp.respondent import Asked, Entropy, check_campaign, randomised
from proxy.collections.tokens import new_token
from proxy.protocol import tacit_pb2
from proxy.protocol.tacit_pb2_grpc import RespondentsStub

CALL_SECONDS_MAX = 30.0
PAUSE_SECONDS = (0.1, 0.5)  # before the same is sent again: shorter, and nobody could start
AGAIN_SECONDS_MAX = 300.0  # then it counts as lost
SHARE_AGAIN = 0.05  # of acknowledged answers that are sent once more
BROKEN = frozenset({grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.RESOURCE_EXHAUSTED})
RECONNECT = (("grpc.initial_reconnect_backoff_ms", 50), ("grpc.max_reconnect_backoff_ms", 200))


class Wire(StrEnum):
    """What respondents speak."""

    GRPC = "grpc"
    HTTP = "http"


class Broken(Exception):
    """It is not known whether an answer was counted; the same is to be sent again."""


@dataclass(frozen=True, slots=True)
class Respondents:
    """What the respondents of one process are to do.

    Parameters
    ----------
    wire : Wire
    address : str
    name : str
        Of the collection.
    campaign : str
        Its text.
    first, end : int
        Their numbers.
    n_threads : int
    """

    wire: Wire
    address: str
    name: str
    campaign: str
    first: int
    end: int
    n_threads: int


@dataclass(slots=True)
class Sent:
    """What respondents sent, and what they were told.

    Parameters
    ----------
    cells : Counter of (int, int)
        The acknowledged answers at each cell of each combination.
    n_counted, n_counted_before : int
        First acknowledgements, by what they said: a respondent whose acknowledgement was lost hears
        that their answer was counted before.
    n_again, n_counted_again : int
        Acknowledged answers that were sent once more, and how many of these were said to be counted
        now, which would be twice.
    n_broken : int
        Calls that broke, and were made again.
    began : float
        When the first of them began, by a clock that all processes share.
    at, ms : list of float
        When each was acknowledged, by the same clock, and how long each call took that was.
    failures : list of str
        What went wrong otherwise.
    processor_seconds : float
        What these processes took.
    """

    cells: "Counter[tuple[int, int]]" = field(default_factory=Counter)
    n_counted: int = 0
    n_counted_before: int = 0
    n_again: int = 0
    n_counted_again: int = 0
    n_broken: int = 0
    began: float = math.inf
    at: list[float] = field(default_factory=list)
    ms: list[float] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)
    processor_seconds: float = 0.0

    @property
    def n_acknowledged(self) -> int:
        """Respondents who know that they are counted."""
        return self.n_counted + self.n_counted_before

    @property
    def seconds(self) -> float:
        """From the first beginning to the last acknowledgement."""
        return max(self.at) - self.began

    def add(self, other: "Sent") -> None:
        """Take in what others sent."""
        self.cells.update(other.cells)
        self.n_counted += other.n_counted
        self.n_counted_before += other.n_counted_before
        self.n_again += other.n_again
        self.n_counted_again += other.n_counted_again
        self.n_broken += other.n_broken
        self.began = min(self.began, other.began)
        self.at += other.at
        self.ms += other.ms
        self.failures += other.failures
        self.processor_seconds += other.processor_seconds


Send: TypeAlias = Callable[[str, str], bool]  # a token and an answer; whether it was counted before


def together(parts: Iterable[Sent]) -> Sent:
    """What all of them sent."""
    whole = Sent()
    for one in parts:
        whole.add(one)
    return whole


def taking_part(orders: Respondents) -> Sent:
    """Let the respondents of this process answer, each until they know that they are counted."""
    began, started = time.monotonic(), time.process_time()
    asked = check_campaign(orders.campaign)
    numbers, parts = iter(range(orders.first, orders.end)), []
    lock = threading.Lock()

    def respond(own: Sent) -> None:
        with _sending(orders) as send:
            while True:
                with lock:
                    number = next(numbers, None)
                if number is None:
                    return
                _respond(number, asked, send, own)

    threads = []
    for _ in range(orders.n_threads):
        parts.append(Sent())
        threads.append(threading.Thread(target=respond, args=(parts[-1],)))
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    whole = together(parts)
    whole.began, whole.processor_seconds = began, time.process_time() - started
    return whole


def _respond(number: int, asked: Asked, send: Send, own: Sent) -> None:
    """One respondent, from the draw to the acknowledgement, and perhaps once more."""
    rng = random.Random(number)  # noqa: S311 - who answers and whether twice, not how
    row = {name: rng.choice(levels) for name, levels in asked.levels.items()}
    token, answer = new_token(), randomised(asked, row, Entropy().below)
    try:
        was_counted = _sent_until_known(send, token, answer, own)
        own.at.append(time.monotonic())
        own.n_counted_before += was_counted
        own.n_counted += not was_counted
        own.cells.update((place, int(cell, 16)) for place, cell in json.loads(answer)["answers"])
        if rng.random() < SHARE_AGAIN:
            own.n_again += 1
            own.n_counted_again += not _sent_until_known(send, token, answer, own)
    except Exception as error:  # noqa: BLE001 - the respondents after this one still answer
        own.failures.append(f"{type(error).__name__}: {error}"[:200])


def _sent_until_known(send: Send, token: str, answer: str, own: Sent) -> bool:
    """Send the same until it is acknowledged; whether it was counted before."""
    until = time.monotonic() + AGAIN_SECONDS_MAX
    while True:
        started = time.monotonic()
        try:
            was_counted = send(token, answer)
        except Broken:
            if time.monotonic() > until:
                raise
            own.n_broken += 1
            time.sleep(random.uniform(*PAUSE_SECONDS))  # noqa: S311 - a pause
        else:
            own.ms.append(1e3 * (time.monotonic() - started))
            return was_counted


@contextmanager
def _sending(orders: Respondents) -> Iterator[Send]:
    """How a thread of respondents sends."""
    if orders.wire is Wire.HTTP:
        yield lambda token, answer: _over_http(orders, token, answer)
        return
    with grpc.insecure_channel(orders.address, RECONNECT) as channel:
        stub = RespondentsStub(channel)
        yield lambda token, answer: _over_grpc(stub, orders.name, token, answer)


def _over_grpc(stub: RespondentsStub, name: str, token: str, answer: str) -> bool:
    request = tacit_pb2.SubmitAnswerRequest(name=name, token=token, answer=answer)
    try:
        return stub.SubmitAnswer(request, timeout=CALL_SECONDS_MAX).counted_before
    except grpc.RpcError as error:
        if error.code() in BROKEN:
            raise Broken from None
        raise


def _over_http(orders: Respondents, token: str, answer: str) -> bool:
    headers = {"Authorization": f"Bearer {token}"}
    connection = http.client.HTTPConnection(orders.address, timeout=CALL_SECONDS_MAX)
    try:
        with closing(connection):
            connection.request("POST", f"/collections/{orders.name}/answers", answer, headers)
            reply = connection.getresponse()
            text = reply.read()
    except (OSError, http.client.HTTPException):
        raise Broken from None
    if reply.status == http.client.SERVICE_UNAVAILABLE:
        raise Broken
    if reply.status != http.client.OK:
        raise ValueError(f"status {reply.status}")
    try:
        return bool(json.loads(text)["counted_before"])
    except ValueError:  # the end of it did not come
        raise Broken from None
