"""Connects to a Tacit server: DBAPI 2.0, and `sql` for answers with intervals.

The statement that makes a synthetic table is written here from Python values. No privacy decision
is made here: what may be answered, and at what price, the server decides.
"""

from collections.abc import Iterable, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any, Self

import pyarrow as pa
from adbc_driver_flightsql import dbapi as flight_sql
from adbc_driver_manager import AdbcStatusCode

from tacit_client.accuracy import Accuracy, exact_text
from tacit_client.address import Address, address_of
from tacit_client.calls import (
    BestReport,
    Collected,
    Marginals,
    Prior,
    ask_best,
    ask_collected,
    ask_marginals,
    observe_users,
)
from tacit_client.catalog import Catalog, Table
from tacit_client.cursor import Cursor, Parameters, fetched
from tacit_client.errors import InterfaceError, translated
from tacit_client.result import Result


def create_statement(  # noqa: PLR0913 - the statement's options
    source: str,
    name: str,
    *,
    epsilon: float | Decimal | str,
    delta: float | Decimal | str | None,
    method: str | None,
    rows: int | None,
    seed: int | None,
    columns: Sequence[str],
    replace: bool,
    target: Sequence[str] = (),
    workload: str | None = None,
    evaluate: float | Decimal | str | None = None,
) -> str:
    """The statement.

    >>> asked = dict(delta=None, method=None, rows=None, seed=7, columns=("b",), replace=True)
    >>> create_statement("t", "s", epsilon=0.5, **asked)  # doctest: +NORMALIZE_WHITESPACE
    'CREATE OR REPLACE SYNTHETIC TABLE "s" FROM "t" WITH (epsilon => 0.5, seed => 7,
    columns => ("b"))'
    """
    options: dict[str, Any] = {
        "epsilon": exact_text(epsilon),
        "delta": None if delta is None else exact_text(delta),
        "method": None if method is None else _text(method),
        "rows": rows,
        "seed": seed,
        "columns": _list(columns),
        "target": _list(target),
        "workload": None if workload is None else _text(workload),
        "evaluate": None if evaluate is None else exact_text(evaluate),
    }
    given = [f"{option} => {value}" for option, value in options.items() if value is not None]
    create = "CREATE OR REPLACE" if replace else "CREATE"
    return (
        f"{create} SYNTHETIC TABLE {quoted(name)} FROM {quoted(source)} WITH ({', '.join(given)})"
    )


def _list(names: Sequence[str]) -> str | None:
    return f"({', '.join(map(quoted, names))})" if names else None


def _text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"


def quoted(name: str) -> str:
    """A name as SQL has it, whatever is in it."""
    return '"' + name.replace('"', '""') + '"'


def connect(  # noqa: PLR0913 - what a connection is made of, by name
    server: str | None = None,
    *,
    token: str | None = None,
    user: str | None = None,
    tls: bool | None = None,
    tls_root_certs: str | Path | None = None,
    tls_cert: str | Path | None = None,
    tls_key: str | Path | None = None,
    half_width: float | None = None,
    relative: float | None = None,
    at_least: float | None = None,
    confidence: float | None = None,
    epsilon: float | Decimal | str | None = None,
    fallback: str | None = None,
) -> "Connection":
    """Connect to a server.

    Parameters
    ----------
    server : str, optional
        ``host:port``, ``grpc://host:port`` or ``grpc+tls://host:port``; if left out, TACIT_SERVER
        in the environment, or this machine.
    token : str, optional
        If left out, TACIT_TOKEN in the environment.
    user : str, optional
        The analyst's name, for the server to compare with the token's.
    tls : bool, optional
        Whether to use TLS; if left out, whether the address or a certificate says so.
    tls_root_certs, tls_cert, tls_key : str or Path, optional
        Files or PEM texts: the CA to trust, your own certificate and its key.
    half_width, relative, at_least, confidence, epsilon, fallback : optional
        How accurate every answer is to be that does not say; see `Connection.sql`.

    Raises
    ------
    InterfaceError
        If the address cannot be read, or the token would cross a network in plain text.
    """
    address = address_of(
        server,
        token=token,
        user=user,
        tls=tls,
        tls_root_certs=tls_root_certs,
        tls_cert=tls_cert,
        tls_key=tls_key,
    )
    accuracy = Accuracy(
        half_width=half_width,
        relative=relative,
        at_least=at_least,
        confidence=confidence,
        epsilon=epsilon,
        fallback=fallback,
    )
    return Connection(address, accuracy)


class Connection:
    """A connection; `connect` makes them.

    Parameters
    ----------
    address : Address
    accuracy : Accuracy
        What statements are asked with that do not say.
    """

    def __init__(self, address: Address, accuracy: Accuracy) -> None:
        self._address = address
        self._accuracy = accuracy
        self._opened: flight_sql.Connection | None = None
        with translated():
            self._opened = flight_sql.connect(
                address.uri, db_kwargs=address.options, autocommit=True
            )

    def __repr__(self) -> str:
        state = "closed" if self._opened is None else f"to {self._address.uri}"
        return f"<tacit_client.Connection {state}>"

    def sql(  # noqa: PLR0913 - one parameter for each part of a target
        self,
        query: str,
        parameters: Parameters | None = None,
        *,
        half_width: float | None = None,
        relative: float | None = None,
        at_least: float | None = None,
        confidence: float | None = None,
        epsilon: float | Decimal | str | None = None,
        fallback: str | None = None,
    ) -> Result:
        """Answer a statement: from earlier answers if they suffice, otherwise by spending epsilon.

        Parameters
        ----------
        query : str
        parameters : sequence or mapping, optional
            The values of its ``?``, or by name of its ``:name``.
        half_width : float, optional
            How far an answer may be from the true value, up or down.
        relative, at_least : float, optional
            The half-width as a fraction of the answer instead, and the size that an answer is taken
            to have at least.
        confidence : float, optional
            The probability of staying within the half-width.
        epsilon : float, optional
            The most that the statement may cost; 0 allows only what is free.
        fallback : str, optional
            What answers if it cannot be paid: ``history``, ``model`` or ``none``.

        Raises
        ------
        Refused
            If the server does not answer; `NotCovered` has numbers for what could be had instead.
        """
        accuracy = Accuracy(
            half_width=half_width,
            relative=relative,
            at_least=at_least,
            confidence=confidence,
            epsilon=epsilon,
            fallback=fallback,
        )
        return Result(self._fetched(query, parameters, accuracy))

    def explain(  # noqa: PLR0913 - one parameter for each part of a target
        self,
        query: str,
        parameters: Parameters | None = None,
        *,
        half_width: float | None = None,
        relative: float | None = None,
        at_least: float | None = None,
        confidence: float | None = None,
    ) -> Result:
        """What a statement would cost, and where its answers would come from. Spends nothing.

        Its parameters are those of `sql`.
        """
        accuracy = Accuracy(
            half_width=half_width, relative=relative, at_least=at_least, confidence=confidence
        )
        return Result(self._fetched(f"EXPLAIN PRIVACY {query}", parameters, accuracy))

    def budget(self) -> Result:
        """What is spent of each private table's budget, and what is left."""
        return Result(self._fetched("SELECT * FROM data_privacy.budgets"))

    def synthesize(  # noqa: PLR0913 - the statement's options
        self,
        source: str,
        name: str,
        *,
        epsilon: float | Decimal | str = 0,
        delta: float | Decimal | str | None = None,
        method: str | None = None,
        rows: int | None = None,
        seed: int | None = None,
        columns: Sequence[str] = (),
        replace: bool = False,
        target: Sequence[str] = (),
        workload: str | None = None,
        evaluate: float | Decimal | str | None = None,
    ) -> Result:
        """Make a synthetic table of a private one; what SQL asks of it is free.

        Parameters
        ----------
        source : str
            The private table.
        name : str
        epsilon : float, optional
            The most that it may cost; 0 makes it from known answers.
        delta, method, rows, seed, columns : optional
            See the reference of synthetic tables.
        replace : bool, optional
            Whether to replace a synthetic table of that name.
        target : sequence of str, optional
            Columns to be learned from the others.
        workload : str, optional
            SELECTs on the private table, separated by semicolons, that the rows are to answer well.
        evaluate : float, optional
            What an evaluation of the rows may cost beside `epsilon`: the column ``evaluated``.
        """
        statement = create_statement(
            source,
            name,
            epsilon=epsilon,
            delta=delta,
            method=method,
            rows=rows,
            seed=seed,
            columns=columns,
            replace=replace,
            target=target,
            workload=workload,
            evaluate=evaluate,
        )
        return Result(fetched(self._driver, statement, None, Accuracy()))

    def marginals(  # noqa: PLR0913 - what the message has
        self,
        table: str,
        sets: Iterable[Sequence[str]],
        *,
        budget: float | str | None = None,
        half_width: float | None = None,
        confidence: float | None = None,
        epsilon: float | Decimal | str | None = None,
        consistency: str = "exact",
        public_total: int | None = None,
    ) -> Marginals:
        """Count by several sets of columns, in tables that agree where they overlap.

        Parameters
        ----------
        table : str
        sets : iterable of sequence of str
            The columns of each table; an empty one is the number of records.
        budget : float, optional
            Epsilon to divide among the tables so that their total error is least; 0 to use only
            what is known. If left out, every cell meets `half_width`.
        half_width, confidence, epsilon : optional
            As in `sql`.
        consistency : str, optional
            ``raw``, ``exact``, ``nonnegative`` or ``global``.
        public_total : int, optional
            The number of records, if it is public.
        """
        asked = Accuracy(half_width=half_width, confidence=confidence, epsilon=epsilon)
        self._check_open()
        return ask_marginals(
            self._address,
            table,
            sets,
            accuracy=asked if budget is not None else asked.over(self._accuracy),
            budget=budget,
            consistency=consistency,
            public_total=public_total,
        )

    def best(  # noqa: PLR0913 - what the message has
        self,
        query: str,
        prior: Prior,
        *,
        loss: str | Sequence[Sequence[float]] = "absolute",
        power: float | None = None,
        half_width: float | None = None,
        confidence: float | None = None,
        epsilon: float | Decimal | str | None = None,
    ) -> BestReport:
        """Answer one count, and say which number is best to report for it under a prior.

        The count costs what it costs in `sql`. The report is free, and changes nothing for others.

        Parameters
        ----------
        query : str
            A SELECT of one count.
        prior : mapping, sequence or str
            The probability of each count, by count or from 0 on; they sum to 1. Or a SELECT: of
            public tables, giving counts, or counts and weights; or of one count of another private
            table that its history knows, whose law is the prior. It is yours: do not take it from
            the private data.
        loss : str or sequence of sequence of float, optional
            What a wrong report costs: ``absolute``, ``squared``, ``zero_one`` (1 for every report
            but the truth) or ``power``; or ``losses[truth][report]``, from 0 to the largest count.
        power : float, optional
            Of the loss ``power``, ``|truth - report| ** power``: from 1 to 16.
        half_width, confidence, epsilon : optional
            As in `sql`; the interval under the prior has the same confidence.

        Raises
        ------
        Refused
            If the server does not answer, or the prior or the loss is not valid.
        """
        self._check_open()
        asked = Accuracy(half_width=half_width, confidence=confidence, epsilon=epsilon)
        return ask_best(
            self._address,
            query,
            prior,
            loss=loss,
            power=power,
            accuracy=asked.over(self._accuracy),
        )

    def collected(
        self,
        collection: str,
        by: Sequence[str],
        *,
        confidence: float | None = None,
        likeliest: bool = False,
    ) -> Collected:
        """The share of a collection's respondents in each cell of some attributes. Free.

        Parameters
        ----------
        collection : str
        by : sequence of str
            Attributes that were asked about together.
        confidence : float, optional
            Of the intervals; 0.95 if left out.
        likeliest : bool, optional
            The likeliest shares instead of unbiased ones: none is below 0, and they have no
            intervals.
        """
        self._check_open()
        return ask_collected(
            self._address, collection, by, confidence=confidence, likeliest=likeliest
        )

    def observe(
        self,
        stream: str,
        ids: Iterable[int],
        *,
        where: str | Sequence[str] = (),
        left: bool = False,
    ) -> None:
        """Tell a stream who came; all of them are on the server's disk once this returns.

        Parameters
        ----------
        stream : str
        ids : iterable of int
            If it fails, tell them all again: a user counts once, however often they come. In a
            stream that counts visits, each id is a visit, and those that were noted count twice.
        where : str or sequence of str, optional
            Predicates of the stream that held for all of them.
        left : bool, optional
            They left; for a stream that was declared with departures.
        """
        self._check_open()
        held = [where] if isinstance(where, str) else where
        observe_users(self._address, stream, ids, held, left=left)

    def tables(self) -> list[Table]:
        """The tables and views that SQL may name, with their columns."""
        return self.catalog.tables()

    @property
    def catalog(self) -> Catalog:
        """What the server lists of schemas, tables and columns."""
        return Catalog(self._driver)

    def cursor(self) -> Cursor:
        """A DBAPI cursor."""
        return Cursor(self._driver, self._accuracy)

    def commit(self) -> None:
        """Do nothing: every statement stands for itself."""

    def rollback(self) -> None:
        """Do nothing: what was charged stays charged."""

    def close(self) -> None:
        """Close the connection, and end its session."""
        if self._opened is not None:
            opened, self._opened = self._opened, None
            with translated():
                opened.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _fetched(
        self,
        query: str,
        parameters: Parameters | None = None,
        accuracy: Accuracy | None = None,
    ) -> pa.Table:
        asked = self._accuracy if accuracy is None else accuracy.over(self._accuracy)
        return fetched(self._driver, query, parameters, asked)

    @property
    def _driver(self) -> Any:
        self._check_open()
        return self._opened

    def _check_open(self) -> None:
        if self._opened is None:
            raise InterfaceError(
                "The connection is closed.", status_code=AdbcStatusCode.INVALID_STATE
            )
