"""A holder of several workers: one request is charged once, whichever of them it reaches."""

from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from fractions import Fraction
from pathlib import Path

import grpc

from accountant.auditor.verify import verify
from accountant.gate import Asked, Told
from accountant.gate.asked import AskedRows
from accountant.ledger import ChargedBlock, Role
from accountant.ledger.opening import open_reader
from accountant.noise import LatticeNoise
from cube.measurement import Weight
from cube.query import QueryBlock, counting
from proxy.admin.ledger_admin import open_configured
from proxy.config.settings import load
from proxy.identity.issuing import Grant, issue_token
from proxy.protocol import tacit_pb2
from proxy.protocol.tacit_pb2_grpc import FederationStub
from tests.support.identities import bearer
from tests.support.serving_workers import WAIT_SECONDS, serving_workers, written

N_CONNECTIONS = 12  # each reaches a worker by chance: all the same one once in 2048
OWN = (("grpc.use_local_subchannel_pool", 1),)


def test_workers_charge_a_request_once(tmp_path: Path) -> None:
    configuration = written(tmp_path, server="")
    with open_configured(load(configuration).ledger) as ledger:
        grant = Grant(analyst="clinics", role=Role.FEDERATION, tables=("people",))
        shown = bearer(issue_token(ledger, grant, by="a test")[1])
    noise = LatticeNoise.for_weight(Weight.at_least(Fraction(1, 2)))
    rows = (AskedRows(ChargedBlock(QueryBlock(counting(), None), noise)),)
    with serving_workers(configuration) as served, ExitStack() as stack:
        channels = [
            stack.enter_context(grpc.insecure_channel(served.address, options=OWN))
            for _ in range(N_CONNECTIONS)
        ]
        states = {
            FederationStub(channel)
            .DescribeHolder(
                tacit_pb2.DescribeHolderRequest(table="people"),
                metadata=shown,
                timeout=WAIT_SECONDS,
            )
            .state
            for channel in channels
        }
        (state,) = states
        asked = tacit_pb2.ForLedgerRequest(table="people", asked=Asked("r", state, rows).text)

        def measured(channel: grpc.Channel) -> Told:
            stub = FederationStub(channel)
            reply = stub.MeasureForLedger(asked, metadata=shown, timeout=WAIT_SECONDS)
            return Told.read(reply.told)

        with ThreadPoolExecutor(N_CONNECTIONS) as pool:
            told = list(pool.map(measured, channels))
    assert len({(one.values, one.entry) for one in told}) == 1
    reader = open_reader(str(tmp_path / "people.ledger"))
    try:
        entries = list(reader.entries_after(0))
    finally:
        reader.close()
    assert verify(entries).problem is None
    kinds = [one.kind for one in entries]
    assert (kinds.count("charge"), kinds.count("measurement")) == (1, 1)
