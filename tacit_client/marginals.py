"""Counts by several sets of columns, in tables that agree where they overlap.

A call of `tacit.v1` that has no form in SQL: a budget divided among tables. It goes over a
gRPC channel of its own, by the bytes of its messages; everything else goes through the driver.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

import pyarrow as pa

from tacit_client import protobuf
from tacit_client.accuracy import Accuracy, exact_text
from tacit_client.calling import channel_to, credentials_of
from tacit_client.connecting import Address, refused
from tacit_client.errors import missing_library, refusal_of_call

METHOD: Final = "/tacit.v1.Tacit/Marginals"


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
        call = channel.unary_stream(METHOD)
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
        raise refused(f"A set of columns is a list: [{one!r}], not {one!r}.")
    return one


def _target(accuracy: Accuracy) -> bytes:
    cap = accuracy.epsilon
    half_width = None if accuracy.half_width is None else float(accuracy.half_width)
    confidence = None if accuracy.confidence is None else float(accuracy.confidence)
    return protobuf.written(
        [(1, half_width), (2, confidence), (3, None if cap is None else exact_text(cap))]
    )
