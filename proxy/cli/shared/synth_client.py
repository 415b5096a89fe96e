"""The command line's client for synthetic tables in `tacit.v1`: messages only, no terminal."""

from collections.abc import Iterator

import pyarrow as pa

from proxy.cli.shared.client import ServerAddress, calling, ipc_table
from proxy.protocol import tacit_pb2


def create(
    server: ServerAddress, request: tacit_pb2.CreateSyntheticRequest
) -> Iterator[tacit_pb2.SyntheticProgress]:
    """Make a table: its steps, and last the table's record."""
    with calling(server) as stub:
        yield from stub.CreateSynthetic(request, metadata=server.metadata)


def preview(
    server: ServerAddress, request: tacit_pb2.CreateSyntheticRequest
) -> tacit_pb2.PreviewSyntheticReply:
    """The most that making a table would cost."""
    with calling(server) as stub:
        return stub.PreviewSynthetic(request, metadata=server.metadata)


def listed(server: ServerAddress, name: str = "") -> list[tacit_pb2.SyntheticTable]:
    """Every table, or the one with a name."""
    with calling(server) as stub:
        request = tacit_pb2.ListSyntheticRequest(name=name)
        return list(stub.ListSynthetic(request, metadata=server.metadata).tables)


def rows(server: ServerAddress, name: str) -> pa.Table:
    """The rows of a table."""
    with calling(server) as stub:
        request = tacit_pb2.ReadSyntheticRequest(name=name)
        pieces = [reply.ipc for reply in stub.ReadSynthetic(request, metadata=server.metadata)]
    return ipc_table(b"".join(pieces))


def model(server: ServerAddress, name: str) -> bytes:
    """The model of a table, as the content of a file."""
    with calling(server) as stub:
        request = tacit_pb2.ReadSyntheticRequest(name=name, model=True)
        return b"".join(one.model for one in stub.ReadSynthetic(request, metadata=server.metadata))


def report(server: ServerAddress, name: str) -> bytes:
    """The page that compares a table with what is known, as HTML."""
    with calling(server) as stub:
        request = tacit_pb2.ReportSyntheticRequest(name=name)
        pieces = [one.chunk for one in stub.ReportSynthetic(request, metadata=server.metadata)]
    return b"".join(pieces)


def law(
    server: ServerAddress, request: tacit_pb2.SyntheticLawRequest
) -> tuple[pa.Table, tacit_pb2.SyntheticLawBasis]:
    """The law of columns given values of others, and how it was obtained."""
    pieces, basis = [], tacit_pb2.SyntheticLawBasis()
    with calling(server) as stub:
        for reply in stub.SyntheticLaw(request, metadata=server.metadata):
            pieces.append(reply.ipc)
            if reply.HasField("basis"):
                basis = reply.basis
    return ipc_table(b"".join(pieces)), basis


def resample(
    server: ServerAddress, request: tacit_pb2.ResampleSyntheticRequest
) -> tacit_pb2.SyntheticTable:
    """Another table drawn from the same model."""
    with calling(server) as stub:
        return stub.ResampleSynthetic(request, metadata=server.metadata)


def drop(server: ServerAddress, name: str) -> None:
    """Drop a table."""
    with calling(server) as stub:
        stub.DropSynthetic(tacit_pb2.DropSyntheticRequest(name=name), metadata=server.metadata)
