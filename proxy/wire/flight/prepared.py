"""Prepared statements, and the values that clients bind to their parameters.

A prepared statement is kept as its text; what is bound to it holds until something else is bound.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

import pyarrow as pa

from cube.refusals import InvalidRequest
from planner.sql.parameter_types import LIST
from planner.sql.parameters import Parameter, Parameters, list_of, parameter_of
from proxy.api.arrow_types import arrow_type
from proxy.protocol import flight_pb2
from proxy.wire.arrow_ipc import sent_table

VALUES_BYTES_MAX: Final = 2**20


@dataclass(slots=True)
class PreparedStatement:
    """The text of a statement, and the values that are bound to it.

    Parameters
    ----------
    text : str
    parameters : mapping
        The SQL types of its parameters by their names: numbers from 1, or words.
    bound : tuple of Parameter
    """

    text: str
    parameters: Mapping[str, str] = field(default_factory=dict)
    bound: Parameters = ()

    @property
    def parameter_schema(self) -> pa.Schema:
        """One column for each parameter."""
        return pa.schema(
            [pa.field(name, _bound_as(kind)) for name, kind in self.parameters.items()]
        )

    def bind(self, messages: Iterable[flight_pb2.FlightData]) -> None:
        """Bind the one row of a table that a client sends.

        Raises
        ------
        InvalidRequest
            If it has several rows, or is no table.
        InvalidSql, TooLarge
            If a value is of no type that a parameter can have; if they are too many.
        """
        table = sent_table(
            messages, VALUES_BYTES_MAX, "the values of parameters", "Send one value for each."
        )
        if table.num_rows != 1:
            raise InvalidRequest(
                f"{table.num_rows} rows of values came for the parameters of one statement.",
                hint="Execute it once for each row of values.",
            )
        self.bound = tuple(
            _parameter(column[0].as_py(), name)
            for name, column in zip(table.column_names, table.columns, strict=True)
        )


def _bound_as(sql_type: str) -> pa.DataType:
    """The Arrow type of the values for a parameter; a decimal number of any digits is a double."""
    if sql_type.endswith(LIST):
        return pa.list_(_bound_as(sql_type.removesuffix(LIST)))
    return pa.float64() if sql_type == "DECIMAL" else arrow_type(sql_type)


def _parameter(value: object, name: str) -> Parameter:
    return list_of(value, name) if isinstance(value, list) else parameter_of(value, name)
