"""The calls of another server's ledger, which has this server's tables in federation.

A request is read, and given to the gate of its table, which prices, charges and measures it. The
log has what it has of any call: the method, the caller's name and the cost.

Of a table whose history is private nothing is measured here: a price would tell the coordinator
what others have asked.
"""

# ruff: noqa: N802 - the protocol fixes the names of its methods

from collections.abc import Mapping
from fractions import Fraction
from importlib.metadata import version
from typing import Final

import grpc

from accountant.gate import Asked, schema_digest
from cube.encoding import declare
from cube.measurement import UNITS_PER_EPSILON
from cube.refusals import InvalidRequest
from proxy.api import Caller, unknown_table
from proxy.feature import Feature
from proxy.identity import caller_of
from proxy.protocol import tacit_pb2, tacit_pb2_grpc
from proxy.scheduling import CallSlots
from proxy.shared.amounts import exact_text
from proxy.shared.refusal_details import EPSILON_KEY
from proxy.tables import ServedTable

# A coordinator has few calls open (proxy/sources/holders/); others need some threads, too.
N_CALLS_OF_ONE_MAX: Final = 16
N_CALLS_MAX: Final = 32
EVERYBODY: Final = ""


class FederationCalls(tacit_pb2_grpc.FederationServicer):
    """The methods of `tacit.v1.Federation`.

    Parameters
    ----------
    tables : mapping of str to ServedTable
        The private tables of the server.
    """

    def __init__(self, tables: Mapping[str, ServedTable]) -> None:
        self._tables = tables
        self._of_one = CallSlots(N_CALLS_OF_ONE_MAX)
        self._of_all = CallSlots(N_CALLS_MAX)

    def DescribeHolder(
        self, request: tacit_pb2.DescribeHolderRequest, context: grpc.ServicerContext
    ) -> tacit_pb2.HolderDescription:
        """What the table is."""
        caller = caller_of(context)
        table = self._table(request.table, caller)
        schema = table.extent.whole_schema
        return tacit_pb2.HolderDescription(
            schema_digest=schema_digest(schema),
            declaration=declare(schema, version=version("tacit-dp")),
            state=table.gate.state,
            epsilon_left=exact_text(max(table.left(caller.payer), Fraction(0))),
            periods=_periods(table),
        )

    def PriceForLedger(
        self, request: tacit_pb2.ForLedgerRequest, context: grpc.ServicerContext
    ) -> tacit_pb2.PriceForLedgerReply:
        """What a request would cost."""
        caller = caller_of(context)
        with self._of_one.taken_by(caller.payer.analyst), self._of_all.taken_by(EVERYBODY):
            table = self._table(request.table, caller)
            epsilon = table.price_for(_read(request.asked), caller.payer)
        return tacit_pb2.PriceForLedgerReply(epsilon=exact_text(epsilon))

    def MeasureForLedger(
        self, request: tacit_pb2.ForLedgerRequest, context: grpc.ServicerContext
    ) -> tacit_pb2.MeasureForLedgerReply:
        """Charge and measure a request, once."""
        caller = caller_of(context)
        with self._of_one.taken_by(caller.payer.analyst), self._of_all.taken_by(EVERYBODY):
            table = self._table(request.table, caller)
            told = table.measure_for(_read(request.asked), caller.payer)
        epsilon = float(Fraction(told.units, UNITS_PER_EPSILON))
        context.set_trailing_metadata(((EPSILON_KEY, repr(epsilon)),))
        return tacit_pb2.MeasureForLedgerReply(told=told.text)

    def _table(self, name: str, caller: Caller) -> ServedTable:
        """A table that the caller may buy noisy rows of.

        Raises
        ------
        UnknownName
            If there is none of this name, or it is not the caller's to know of.
        InvalidRequest
            If it cannot be part of a federated table.
        """
        if name not in self._tables or not caller.opens(name):
            raise unknown_table(name, [one for one in self._tables if caller.opens(one)])
        table = self._tables[name]
        _check_can_be_held(table)
        return table


class Federation(Feature):
    """What a server does as a holder of federated tables.

    Parameters
    ----------
    tables : mapping of str to ServedTable
        The private tables of the server.
    """

    services = (tacit_pb2.DESCRIPTOR.services_by_name["Federation"].full_name,)

    def __init__(self, tables: Mapping[str, ServedTable]) -> None:
        super().__init__()
        self._held = tables

    def add_services(self, server: grpc.Server) -> None:
        """Add the service of holders."""
        tacit_pb2_grpc.add_FederationServicer_to_server(FederationCalls(self._held), server)


def _check_can_be_held(table: ServedTable) -> None:
    """Refuse a table that cannot be part of a federated one."""
    schema = table.extent.whole_schema
    what = ""
    if schema.holders is not None:
        what = "is a federated table itself"
    elif table.empty_history is not None:
        what = "has a private history, and prices would tell about it"
    if what:
        raise InvalidRequest(
            f"{schema.table} cannot be part of a federated table: it {what}.",
            hint="Declare a table of its own for the federation.",
        )


def _periods(table: ServedTable) -> list[tacit_pb2.HolderPeriod]:
    """The closed periods of a table that grows, each with the keyed digest of its rows."""
    growth = table.gate.history.growth
    return [
        tacit_pb2.HolderPeriod(start=one.start, end=one.end, digest=one.rows_fingerprint)
        for one in (() if growth is None else growth.periods)
    ]


def _read(text: str) -> Asked:
    """A request for something; InvalidRequest if it is none."""
    asked = Asked.read(text)
    if not asked.rows and not asked.statistics:
        raise InvalidRequest("The request asks for no row and no statistic.")
    return asked
