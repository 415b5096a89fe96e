"""The port of a feature: the interface through which a folder adds tables, statements and chores.

A feature has tables that answer by themselves, views of `data_privacy`, statements that it carries
out, calls of the gRPC service, and work of its own in the background; each may be none. `bootstrap`
has the list of features. The engine, the wires and the start go through it.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from types import MappingProxyType
from typing import Any, ClassVar, TypeAlias

import grpc
import pyarrow as pa

from proxy.api import Caller, QueryResult
from proxy.monitoring import Background
from proxy.tables import SelfAnswering

Call: TypeAlias = Callable[[Any, grpc.ServicerContext], Any]  # a message, or several, to a reply


@dataclass(frozen=True, slots=True)
class View:
    """A relation of `data_privacy`.

    Parameters
    ----------
    rows : callable
        The rows that a caller may know of. They are declarations and losses, and no answer.
    """

    schema: pa.Schema
    rows: Callable[[Caller], Iterable[Mapping[str, object]]]

    def shown_to(self, caller: Caller) -> pa.Table:
        """The view, as a caller may see it."""
        return pa.Table.from_pylist(list(map(dict, self.rows(caller))), schema=self.schema)


class Feature:
    """What one folder brings to a server; what it does not have stays as it is here.

    Parameters
    ----------
    tables : mapping
        The tables that answer by themselves, by name, as they are at present. A private table of
        the same name is meant before one of them.
    views : mapping
        Views of `data_privacy`, by name.
    chores : sequence of Background
        What is done beside answering. Of several workers, the first does it.
    """

    statements: ClassVar[tuple[type, ...]] = ()  # the kinds of statements that it carries out
    services: ClassVar[tuple[str, ...]] = ()  # its gRPC services, by their full names

    def __init__(
        self,
        tables: Mapping[str, SelfAnswering] = MappingProxyType({}),
        views: Mapping[str, View] = MappingProxyType({}),
        chores: Sequence[Background] = (),
    ) -> None:
        self.tables = tables
        self.views = views
        self.chores = tuple(chores)

    def carry_out(self, statement: Any, caller: Caller) -> QueryResult:
        """Carry out one of its statements; what it gives. May charge.

        Raises
        ------
        Refused
        """
        raise NotImplementedError

    def columns_of(self, statement: Any) -> pa.Schema:
        """The columns of the result of one of its statements."""
        raise NotImplementedError

    def new_table(self, statement: Any) -> str | None:  # noqa: ARG002 - others need it
        """The name of the table that one of its statements would create, if it creates one."""
        return None

    def calls(self) -> Mapping[str, Call]:
        """Its methods of the service `tacit.v1.Tacit`, by their names in the protocol."""
        return {}

    def add_services(self, server: grpc.Server) -> None:
        """Add the gRPC services that are its own: `services` names them."""

    def take_rows(self, caller: Caller, table: str, sent: Callable[[], pa.Table]) -> int | None:  # noqa: ARG002 - others need it
        """Note rows that a client uploads to a table, durably; how many, or None if it takes none.

        Raises
        ------
        Refused
            Then no row was noted.
        """
        return None

    def close(self) -> None:
        """Release its resources; the server ends."""


def calls_of(servicer: object) -> dict[str, Call]:
    """The methods of an object that are named as those of a gRPC service, by name."""
    named = (name for name in dir(servicer) if name[0].isupper())
    return {name: getattr(servicer, name) for name in named}


class Features:
    """All features of a server.

    Parameters
    ----------
    features : sequence of Feature
        No two of their tables, views or kinds of statements have one name.
    """

    def __init__(self, features: Sequence[Feature] = ()) -> None:
        self._features = tuple(features)
        self.tables: Mapping[str, SelfAnswering] = _Tables([one.tables for one in features])
        self.views = {name: view for one in features for name, view in one.views.items()}

    def that_carries_out(self, statement: object) -> Feature | None:
        """The feature that a statement is for, if there is one."""
        for feature in self._features:
            if isinstance(statement, feature.statements):
                return feature
        return None

    def __iter__(self) -> Iterator[Feature]:
        return iter(self._features)


class _Tables(Mapping[str, SelfAnswering]):
    """The tables of all features. Of a name there may be no table just now: `get` says so."""

    def __init__(self, kinds: Sequence[Mapping[str, SelfAnswering]]) -> None:
        self._kinds = kinds

    def __getitem__(self, name: str) -> SelfAnswering:
        for kind in self._kinds:
            found = kind.get(name)
            if found is not None:
                return found
        raise KeyError(name)

    def __iter__(self) -> Iterator[str]:
        return chain(*self._kinds)

    def __len__(self) -> int:
        return sum(map(len, self._kinds))
