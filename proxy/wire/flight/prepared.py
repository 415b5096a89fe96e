"""Prepared statements, and the values that clients bind to their parameters.

A prepared statement is kept as its text; what is bound to it holds until something else is bound.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import pyarrow as pa

from cube.refusals import InvalidRequest
from planner.sql.parameters import Parameters, parameter_of
from proxy.protocol import flight_pb2
from proxy.wire.arrow_ipc import sent_table


@dataclass(slots=True)
class PreparedStatement:
    """The text of a statement, and the values that are bound to it.

    Parameters
    ----------
    text : str
    names : tuple of str
        The names of its parameters: numbers from 1, or words.
    bound : tuple of Parameter
    """

    text: str
    names: tuple[str, ...] = ()
    bound: Parameters = ()

    @property
    def parameter_schema(self) -> pa.Schema:
        """One column of no particular type for each parameter."""
        return pa.schema([pa.field(name, pa.null()) for name in self.names])

    def bind(self, messages: Iterable[flight_pb2.FlightData]) -> None:
        """Bind the one row of a table that a client sends.

        Raises
        ------
        InvalidRequest
            If it has several rows, or is no table.
        InvalidSql, TooLarge
            If a value is of no type that a parameter can have; if they are too many.
        """
        table = sent_table(messages)
        if table.num_rows != 1:
            raise InvalidRequest(
                f"{table.num_rows} rows of values came for the parameters of one statement.",
                hint="Execute it once for each row of values.",
            )
        self.bound = tuple(
            parameter_of(column[0].as_py(), name)
            for name, column in zip(table.column_names, table.columns, strict=True)
        )
