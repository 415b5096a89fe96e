"""A hostile coordinator with a token, over the wire: its limit holds, and others are served."""

import json
import random
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from typing import Any, Final

import grpc
import pytest

from accountant.auditor.verify import verify
from accountant.gate import Asked, Told
from accountant.gate.asked import AskedRows, Raised
from accountant.ledger import ChargedBlock
from accountant.ledger.credentials import Role
from accountant.noise import LatticeNoise
from cube.measurement import UNITS_PER_EPSILON, Weight
from cube.query import QueryBlock, counting
from proxy.identity.issuing import Grant, issue_token, revoke
from proxy.protocol import tacit_pb2
from proxy.protocol.tacit_pb2_grpc import FederationStub, TacitStub
from tests.proxy.federation.test_holder import request, shown, state
from tests.support.hospitals import COORDINATOR, COUNT, Hospital
from tests.support.identities import bearer, refusal, soon, token_for

LIMIT: Final = "0.7"
N_THREADS: Final = 12
N_CALLS_EACH: Final = 12
SERVICE: Final = "/tacit.v1.Federation/"
METHODS: Final = ("DescribeHolder", "PriceForLedger", "MeasureForLedger")
# What a holder may say to nonsense. INTERNAL is an error of its own, and UNKNOWN a crash.
MAY_BE: Final = {
    grpc.StatusCode.INVALID_ARGUMENT,
    grpc.StatusCode.FAILED_PRECONDITION,
    grpc.StatusCode.RESOURCE_EXHAUSTED,
    grpc.StatusCode.NOT_FOUND,
    grpc.StatusCode.UNAVAILABLE,
    grpc.StatusCode.DEADLINE_EXCEEDED,
    grpc.StatusCode.CANCELLED,
}
ODD: Final[tuple[Any, ...]] = (
    *(None, True, -1, 0, 2**31, 2**63, 10**40, "", "x", "1/0", "1e999", "0" * 5000, 1.5),
    *(float("nan"), float("inf"), [], {}, [[]], ["ward"], ["zz"], [2, 2], [2**21], [2**40]),
)


@pytest.fixture
def stub(north: Hospital) -> Iterator[FederationStub]:
    with north.channel() as channel:
        yield FederationStub(channel)


def paid_for(told: str) -> Fraction:
    return Fraction(Told.read(told).units, UNITS_PER_EPSILON)


def places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Every container of a JSON value with every key or place in it."""
    keys = (
        value if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
    )
    for key in keys:
        yield value, key
        yield from places(value[key])


def damaged(text: str, draw: random.Random) -> str:
    """A request with one to three values of other kinds, or cut, or with another letter."""
    how = draw.random()
    if how < 0.15:
        return text[: draw.randrange(len(text))]
    if how < 0.3:
        place = draw.randrange(len(text))
        return text[:place] + chr(draw.randrange(32, 0x3000)) + text[place + 1 :]
    value = json.loads(text)
    for _ in range(draw.choice((1, 1, 2, 3))):
        container, key = draw.choice(list(places(value)))
        container[key] = draw.choice(ODD)
    return json.dumps(value)


class Attacker:
    """One thread of the coordinator: a random call at a time; the codes of its answers."""

    def __init__(self, north: Hospital, channel: grpc.Channel, seed: int) -> None:
        self._draw = random.Random(seed)  # noqa: S311 - an attack of a test
        self._channel = channel
        self._stub = FederationStub(channel)
        self._shown = shown(north)
        self._state = state(north)
        self.codes: Counter[grpc.StatusCode] = Counter()
        self.told: list[str] = []

    def attack(self) -> None:
        ways = (self._fresh, self._again, self._damaged, self._bytes, self._huge, self._elsewhere)
        for _ in range(N_CALLS_EACH):
            try:
                self._draw.choice((*ways, self._damaged, self._hurried))()
                self.codes[grpc.StatusCode.OK] += 1
            except grpc.RpcError as error:
                is_no_message = error.details() == "Exception deserializing request!"  # by gRPC
                code = grpc.StatusCode.INVALID_ARGUMENT if is_no_message else error.code()
                self.codes[code] += 1

    def _measure(self, asked: tacit_pb2.ForLedgerRequest, timeout: float = 30.0) -> None:
        reply = self._stub.MeasureForLedger(asked, metadata=self._shown, timeout=timeout)
        self.told.append(reply.told)

    def _asked(self, reference: str) -> tacit_pb2.ForLedgerRequest:
        weight = Weight.at_least(Fraction(1, 50))
        return request(self._state, reference, weight)

    def _fresh(self) -> None:
        self._measure(self._asked(f"fresh{self._draw.random()}"))

    def _again(self) -> None:
        self._measure(self._asked(f"again{self._draw.randrange(5)}"))

    def _hurried(self) -> None:
        self._measure(self._asked(f"hurried{self._draw.random()}"), timeout=0.002)

    def _elsewhere(self) -> None:
        asked = self._asked("elsewhere")
        asked.table = self._draw.choice(("", "people", "patients;", "\x00", "x" * 10_000))
        self._measure(asked)

    def _damaged(self) -> None:
        asked = self._asked(f"damaged{self._draw.random()}")
        asked.asked = damaged(asked.asked, self._draw)
        if self._draw.random() < 1 / 2:
            self._stub.PriceForLedger(asked, metadata=self._shown, timeout=30)
        else:
            self._measure(asked)

    def _bytes(self) -> None:
        """Bytes that are no message, or a message that is cut or changed."""
        good = bytearray(self._asked("bytes").SerializeToString())
        for _ in range(self._draw.randrange(1, 5)):
            good[self._draw.randrange(len(good))] = self._draw.randrange(256)
        method = self._draw.choice(METHODS)
        call: Any = self._channel.unary_unary(SERVICE + method)
        sent = bytes(good[: self._draw.randrange(len(good))])
        call(sent, metadata=self._shown, timeout=30)

    def _huge(self) -> None:
        """As many rows, as large arrays or as long a text as fit into a message, or more."""
        fields = json.loads(self._asked("huge").asked)
        (row,) = fields["rows"]
        way = self._draw.randrange(4)
        if way == 0:
            fields["rows"] = [row] * self._draw.choice((500, 20_000))
        elif way == 1:
            wide = {"axes": ["ward"], "shape": [2**21], "runs": [1, 1, 2**21 - 1, 0]}
            terms = [{"scale": str(1 + k), "factors": [wide]} for k in range(50)]
            row["block"]["terms"] = terms
        elif way == 2:
            fields["reference"] = "x" * 5_000_000
        else:
            fields["rows"] = "[" * 1_000_000
        asked = self._asked("huge")
        asked.asked = json.dumps(fields)
        self._measure(asked)


def ask(channel: grpc.Channel, token: str) -> None:
    """Have a count answered as an analyst of the holder."""
    asked = tacit_pb2.QueryRequest(sql=COUNT)
    assert list(TacitStub(channel).Query(asked, metadata=bearer(token), timeout=60))


def test_a_storm_stays_within_the_limit_and_others_are_served(north: Hospital) -> None:
    north.limit(LIMIT)
    ann = token_for(north.service.ledger, "ann", "patients")
    with north.channel() as channel, north.channel() as own:
        ask(own, ann)
        paid_by_ann = north.spent()
        attackers = [Attacker(north, channel, seed) for seed in range(N_THREADS)]
        with ThreadPoolExecutor(N_THREADS) as pool:
            under_way = [pool.submit(one.attack) for one in attackers]
            n_served = 0
            while not all(one.done() for one in under_way):
                ask(own, ann)
                n_served += 1
            for one in under_way:
                one.result()
        codes: Counter[grpc.StatusCode] = Counter()
        for attacker in attackers:
            codes += attacker.codes
        assert set(codes) <= {grpc.StatusCode.OK, *MAY_BE}, codes
        assert codes[grpc.StatusCode.OK] > 0
        assert n_served > 1
        charged = north.spent() - paid_by_ann
        assert 0 < charged <= Fraction(LIMIT)
        # Every charge was told at most under its own name: distinct charges cost what was charged.
        told = {Told.read(text).entry: paid_for(text) for one in attackers for text in one.told}
        assert sum(told.values()) <= charged
        verdict = verify(north.service.ledger.entries(), has_columns=True)
        assert verdict.problem is None
        ask(own, ann)


def asked_for(north: Hospital, reference: str, *rows: AskedRows) -> tacit_pb2.ForLedgerRequest:
    asked = Asked(reference, state(north), rows)
    return tacit_pb2.ForLedgerRequest(table="patients", asked=asked.text)


def test_references_of_another_payer_are_not_there(north: Hospital, stub: FederationStub) -> None:
    mine = shown(north)
    other = bearer(token_for(north.service.ledger, "another", "patients", role=Role.FEDERATION))
    weight = Weight.at_least(Fraction(1, 2))
    noise = LatticeNoise.for_weight(weight)
    everybody = QueryBlock(counting())
    first = stub.MeasureForLedger(request(state(north)), metadata=mine)
    again = stub.MeasureForLedger(request(state(north)), metadata=other)
    assert Told.read(first.told).entry != Told.read(again.told).entry
    assert north.spent() == 1
    raised = ChargedBlock(everybody, noise.refined_to(Weight.at_least(Fraction(3, 4))))
    stub.MeasureForLedger(
        asked_for(north, "mine", AskedRows(raised, Raised("r1", 0))), metadata=mine
    )
    spent = north.spent()
    for reference in ("mine", "r9", ""):
        asked = asked_for(north, "theirs", AskedRows(raised, Raised(reference, 0)))
        code, _ = refusal(lambda: stub.MeasureForLedger(asked, metadata=other))  # noqa: B023 - called here
        assert code is grpc.StatusCode.INVALID_ARGUMENT
    assert north.spent() == spent


def test_a_revoked_token_buys_nothing_more(north: Hospital, stub: FederationStub) -> None:
    grant = Grant(analyst=COORDINATOR, role=Role.FEDERATION, tables=("patients",))
    issued, token = issue_token(north.service.ledger, grant, by="a test")
    mine = bearer(token)
    stub.MeasureForLedger(request(state(north)), metadata=mine)
    revoke(north.service.ledger, issued.id, by="a test")

    def is_shut() -> bool:
        try:
            stub.MeasureForLedger(request(state(north)), metadata=mine)
        except grpc.RpcError as error:
            return error.code() is grpc.StatusCode.UNAUTHENTICATED
        return False

    assert soon(is_shut)
    spent = north.spent()
    calls: tuple[Callable[[], object], ...] = (
        lambda: stub.MeasureForLedger(request(state(north), "r2"), metadata=mine),
        lambda: stub.PriceForLedger(request(state(north), "r2"), metadata=mine),
        lambda: stub.DescribeHolder(
            tacit_pb2.DescribeHolderRequest(table="patients"), metadata=mine
        ),
    )
    for call in calls:
        assert refusal(call)[0] is grpc.StatusCode.UNAUTHENTICATED
    assert north.spent() == spent
    north.grant()  # the same coordinator, with another token, is told what was paid for
    stub.MeasureForLedger(request(state(north)), metadata=shown(north))
    assert north.spent() == spent
