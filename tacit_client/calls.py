"""Calls `tacit.v1` for what SQL cannot express: marginals, shares of collections, streams.

    ask_marginals    counts by several sets of columns, in tables that agree where they overlap: a
                     budget divided among tables
    ask_collected    what a collection of randomised answers says, the share of its respondents in
                     each cell: all shares at once, or the likeliest ones; free
    ask_best         the best number to report for one count, under a prior and a loss
    observe_users    telling a stream who came

Each goes over a gRPC channel of its own, by the bytes of its messages; everything else goes through
the driver.
"""

import json
import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final

import pyarrow as pa

from tacit_client import protobuf
from tacit_client.accuracy import Accuracy, exact_text
from tacit_client.address import Address, channel_to, credentials_of, refused
from tacit_client.errors import missing_library, refusal_of_call

MARGINALS_METHOD: Final = "/tacit.v1.Tacit/Marginals"


@dataclass(frozen=True, slots=True, eq=False)
class Marginals:
    """Tables of counts, one for each set of columns.

    Parameters
    ----------
    data : pyarrow.Table
        A row for each cell: marginal (the place of its set), columns, keys (as text), value, low,
        high, standard_error, source. Where a cell has no interval, the last three but one are NULL.
    consistency : str
    epsilon_spent, confidence : float
    misfit : float, optional
        How far cells were moved to agree, in units of their noise; noise alone moves them less
        than 1.
    notes : tuple of str
    """

    data: pa.Table
    consistency: str
    epsilon_spent: float
    confidence: float
    misfit: float | None
    notes: tuple[str, ...]

    def table(self, *columns: str) -> pa.Table:
        """The table of one set: its columns as text, value, low, high and source.

        Raises
        ------
        KeyError
            If there is no such set.
        """
        rows = [row for row in self.data.to_pylist() if tuple(row["columns"]) == columns]
        if not rows:
            raise KeyError(columns)
        keys = {name: [row["keys"][place] for row in rows] for place, name in enumerate(columns)}
        found = {name: pa.array(values, pa.string()) for name, values in keys.items()}
        numbers = ("value", "low", "high")
        found |= {name: pa.array([row[name] for row in rows], pa.float64()) for name in numbers}
        return pa.table({**found, "source": [row["source"] for row in rows]})


def ask_marginals(  # noqa: PLR0913 - what the message has
    address: Address,
    table: str,
    sets: Iterable[Sequence[str]],
    *,
    accuracy: Accuracy,
    budget: float | str | None,
    consistency: str,
    public_total: int | None,
) -> Marginals:
    """Ask for marginals; see `Connection.marginals`."""
    try:
        import grpc  # noqa: PLC0415 - nothing else here needs it
    except ImportError as missing:
        raise missing_library("marginals()", "grpcio") from missing
    request = protobuf.written(
        [
            (1, table),
            *((2, protobuf.written((1, name) for name in _columns(one))) for one in sets),
            (3, _target(accuracy)),
            (4, None if budget is None else exact_text(budget)),
            (5, consistency),
            (6, public_total),
        ]
    )
    pieces: list[bytes] = []
    summary: dict[int, list[protobuf.Value]] = {}
    with channel_to(grpc, address) as channel:
        call = channel.unary_stream(MARGINALS_METHOD)
        try:
            for reply in call(request, metadata=credentials_of(address)):
                values = protobuf.fields(reply)
                pieces += [one for one in values.get(2, ()) if isinstance(one, bytes)]
                summary = next(protobuf.messages_of(values, 3), summary)
        except grpc.RpcError as error:
            raise refusal_of_call(error) from None
    with pa.ipc.open_stream(b"".join(pieces)) as reader:
        data = reader.read_all()
    return _marginals(data, summary)


def _marginals(data: pa.Table, summary: dict[int, list[protobuf.Value]]) -> Marginals:
    notes = summary.get(6, ())
    return Marginals(
        data=data,
        consistency=protobuf.text_of(summary, 1) or "",
        epsilon_spent=protobuf.double_of(summary, 2) or 0.0,
        confidence=protobuf.double_of(summary, 3) or 0.0,
        misfit=protobuf.double_of(summary, 4),
        notes=tuple(one.decode() for one in notes if isinstance(one, bytes)),
    )


def _columns(one: Sequence[str]) -> Sequence[str]:
    if isinstance(one, str):
        raise refused(f"A set of columns must be a list: [{one!r}], not {one!r}.")
    return one


def _target(accuracy: Accuracy) -> bytes:
    cap = accuracy.epsilon
    half_width = None if accuracy.half_width is None else float(accuracy.half_width)
    confidence = None if accuracy.confidence is None else float(accuracy.confidence)
    return protobuf.written(
        [(1, half_width), (2, confidence), (3, None if cap is None else exact_text(cap))]
    )


COLLECTION_METHOD: Final = "/tacit.v1.Tacit/EstimateCollection"


@dataclass(frozen=True, slots=True, eq=False)
class Collected:
    """Shares of the respondents of a collection.

    Parameters
    ----------
    data : pyarrow.Table
        A row for each cell: a column for each attribute, by name; share, low, high and method. The
        likeliest shares have no intervals: the last three are NULL.
    estimator : str
        ``unbiased``, so that a small share may be below 0, or ``likeliest``.
    n_respondents : int
    confidence : float, optional
        Of each interval, like the next of all of them.
    half_width_together : float, optional
        All shares at once are this near the truth.
    combination : tuple of str
        Of the likeliest shares, like the next two: by the answers to which attributes they are.
    n_answers : int, optional
    likelihood_gap : float, optional
        By how much the logarithm of the likelihood may at most be below its greatest.
    """

    data: pa.Table
    estimator: str
    n_respondents: int
    confidence: float | None
    half_width_together: float | None
    combination: tuple[str, ...]
    n_answers: int | None
    likelihood_gap: float | None


def ask_collected(
    address: Address,
    collection: str,
    by: Sequence[str],
    *,
    confidence: float | None,
    likeliest: bool,
) -> Collected:
    """Ask for shares; see `Connection.collected`."""
    try:
        import grpc  # noqa: PLC0415 - nothing else here needs it
    except ImportError as missing:
        raise missing_library("collected()", "grpcio") from missing
    if isinstance(by, str):
        raise refused(f"by must be a list of attributes: [{by!r}], not {by!r}.")
    request = protobuf.written(
        [
            (1, collection),
            *((2, name) for name in by),
            (3, None if confidence is None else float(confidence)),
            (4, int(likeliest)),
        ]
    )
    with channel_to(grpc, address) as channel:
        try:
            reply = channel.unary_unary(COLLECTION_METHOD)(
                request, metadata=credentials_of(address)
            )
        except grpc.RpcError as error:
            raise refusal_of_call(error) from None
    return _collected(protobuf.fields(reply), sorted(set(by)))


def _collected(reply: dict[int, list[protobuf.Value]], names: Sequence[str]) -> Collected:
    cells = list(protobuf.messages_of(reply, 1))
    levels = [
        [json.loads(one) for one in cell.get(1, ()) if isinstance(one, bytes)] for cell in cells
    ]
    found = {name: _column([row[place] for row in levels]) for place, name in enumerate(names)}
    for number, name in ((2, "share"), (3, "low"), (4, "high")):
        # A share of 0 is left out of a message; the ends of an interval are only if there is none.
        missing = 0.0 if name == "share" else None
        values = [protobuf.double_of(cell, number) for cell in cells]
        found[name] = pa.array([missing if one is None else one for one in values], pa.float64())
    found["method"] = pa.array([protobuf.text_of(cell, 5) or None for cell in cells], pa.string())
    basis = next(protobuf.messages_of(reply, 6), None)
    of_basis = {} if basis is None else basis
    return Collected(
        data=pa.table(list(found.values()), names=list(found)),
        estimator=protobuf.text_of(reply, 4) or "",
        n_respondents=protobuf.integer_of(reply, 2) or 0,
        confidence=protobuf.double_of(reply, 3) or None,
        half_width_together=protobuf.double_of(reply, 5),
        combination=tuple(one.decode() for one in of_basis.get(1, ()) if isinstance(one, bytes)),
        n_answers=None if basis is None else protobuf.integer_of(basis, 2) or 0,
        likelihood_gap=None if basis is None else protobuf.double_of(basis, 3) or 0.0,
    )


def _column(levels: Sequence[Any]) -> pa.Array:
    """The levels of an attribute; those of several types as JSON text."""
    if len({type(one) for one in levels if one is not None}) > 1:
        return pa.array([json.dumps(one, ensure_ascii=False) for one in levels], pa.string())
    return pa.array(levels)


BEST_METHOD: Final = "/tacit.v1.Tacit/BestReport"
Prior = Mapping[int, float] | Sequence[float] | str


@dataclass(frozen=True, slots=True)
class BestReport:
    """The best number to report for a count.

    Parameters
    ----------
    value : int
        Of least expected loss under the prior and the answer.
    expected_loss : float
    low, high : int, optional
        The shortest interval of counts that has the confidence under the prior. None, like the next
        two, from a server that is older than this interval.
    confidence : float, optional
    probability : float, optional
        What that interval really has: counts are whole, so it may be more.
    answer : float
        The noisy count.
    answer_low, answer_high : float, optional
        Its interval, which uses no prior.
    epsilon_spent : float
        What the count cost; the report is free.
    notes : tuple of str
    """

    value: int
    expected_loss: float
    low: int | None
    high: int | None
    confidence: float | None
    probability: float | None
    answer: float
    answer_low: float | None
    answer_high: float | None
    epsilon_spent: float
    notes: tuple[str, ...]


def ask_best(  # noqa: PLR0913 - what the message has
    address: Address,
    query: str,
    prior: Prior,
    *,
    loss: str | Sequence[Sequence[float]],
    power: float | None,
    accuracy: Accuracy,
) -> BestReport:
    """Ask for the best report of a count; see `Connection.best`."""
    try:
        import grpc  # noqa: PLC0415 - nothing else here needs it
    except ImportError as missing:
        raise missing_library("best()", "grpcio") from missing
    losses = [] if isinstance(loss, str) else [[float(one) for one in row] for row in loss]
    request = protobuf.written(
        [
            (1, query),
            (2, _target(accuracy)),
            *((3, point) for point in _points(prior)),
            (4, loss if isinstance(loss, str) else "table"),
            *((5, protobuf.written((1, one) for one in row)) for row in losses),
            (6, None if power is None else float(power)),
            (7, prior if isinstance(prior, str) else None),
        ]
    )
    with channel_to(grpc, address) as channel:
        try:
            reply = channel.unary_unary(BEST_METHOD)(request, metadata=credentials_of(address))
        except grpc.RpcError as error:
            raise refusal_of_call(error) from None
    return _best(protobuf.fields(reply))


def _points(prior: Prior) -> Iterator[bytes]:
    if isinstance(prior, str):
        return
    pairs = prior.items() if isinstance(prior, Mapping) else enumerate(prior)
    for count, probability in pairs:
        if int(count) != count:
            raise refused(f"A prior is about whole counts, not {count!r}.")
        yield protobuf.written([(1, int(count)), (2, float(probability))])


def _best(reply: dict[int, list[protobuf.Value]]) -> BestReport:
    receipt = next(protobuf.messages_of(reply, 4), {})
    column = next(protobuf.messages_of(receipt, 3), {})
    told = next(protobuf.messages_of(reply, 5), None)
    interval = {} if told is None else told
    missing = None if told is None else 0  # what a message leaves out is 0
    low, high = protobuf.doubles_of(column, 5), protobuf.doubles_of(column, 6)
    return BestReport(
        value=protobuf.integer_of(reply, 1) or 0,
        expected_loss=protobuf.double_of(reply, 2) or 0.0,
        low=protobuf.integer_of(interval, 1) or missing,
        high=protobuf.integer_of(interval, 2) or missing,
        confidence=protobuf.double_of(interval, 3) or missing,
        probability=protobuf.double_of(interval, 4) or missing,
        answer=protobuf.double_of(reply, 3) or 0.0,
        answer_low=low[0] if low else None,
        answer_high=high[0] if high else None,
        epsilon_spent=protobuf.double_of(receipt, 2) or 0.0,
        notes=tuple(one.decode() for one in receipt.get(5, ()) if isinstance(one, bytes)),
    )


OBSERVE_METHOD: Final = "/tacit.v1.Tacit/Observe"
N_IDS_IN_MESSAGE: Final = 2**16


def observe_users(
    address: Address, stream: str, ids: Iterable[int], where: Sequence[str], *, left: bool
) -> None:
    """Note users; see `Connection.observe`."""
    try:
        import grpc  # noqa: PLC0415 - nothing else here needs it
    except ImportError as missing:
        raise missing_library("observe()", "grpcio") from missing
    # All of them before the call: whatever is wrong with ids is told first.
    messages = list(_messages(stream, ids, where, left=left))
    with channel_to(grpc, address) as channel:
        try:
            channel.stream_unary(OBSERVE_METHOD)(iter(messages), metadata=credentials_of(address))
        except grpc.RpcError as error:
            raise refusal_of_call(error) from None


def _messages(
    stream: str, ids: Iterable[int], where: Sequence[str], *, left: bool
) -> Iterator[bytes]:
    held = [(4, predicate) for predicate in where]
    every = iter(ids)
    while some := tuple(islice(every, N_IDS_IN_MESSAGE)):
        try:
            packed = struct.pack(f"<{len(some)}q", *some)
        except (struct.error, TypeError):
            raise refused("An id is not a 64-bit integer.") from None
        yield protobuf.written([(1, stream), (2, packed), (3, int(left)), *held])
