"""One client's session: it carries statements out, one after another, and keeps what they set.

Statements about the session are answered here; all others go to the engine, whose `answer` is the
only call that may charge. No message of the protocol is known here.
"""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Final

import pyarrow as pa

from cube.refusals import TargetNotReached
from planner.sql import (
    NOTICES,
    ClientSetting,
    CloseCursor,
    ConfigCall,
    CopyOut,
    CreateStream,
    CreateSynthetic,
    Deallocate,
    DeclareCursor,
    DiscardAll,
    DropStream,
    DropSynthetic,
    ExecutePrepared,
    Explain,
    FetchRows,
    Parameters,
    PrepareQuery,
    Query,
    ResetAll,
    ResetSetting,
    Savepoint,
    SessionStatement,
    SetSetting,
    ShowAll,
    ShowClientSetting,
    ShowSetting,
    Statement,
    TransactionWord,
    Unlisten,
    check_alone,
    config_calls,
    not_answered,
    read_text,
    setting_of,
)
from proxy.api import Caller, QueryEngine, QueryRequest, Receipt, notice_lines
from proxy.wire.postgres.client_settings import (
    DEFAULTS,
    USER,
    SessionSettings,
    Transaction,
    canonical,
    checked,
    shown,
    style_of,
)
from proxy.wire.postgres.pg_types import PgType, type_of_sql
from proxy.wire.postgres.portals import (
    HELD_BYTES_MAX,
    N_PORTALS_MAX,
    N_PREPARED_MAX,
    UNNAMED,
    Portal,
    Prepared,
    Shelf,
    has_untyped,
)
from proxy.wire.postgres.sqlstates import (
    NO_TRANSACTION,
    NOTICE,
    SUCCESS,
    WARNED,
    WARNING,
    StateError,
)
from proxy.wire.sessions import applied

N_CAVEATS_MAX: Final = 1000  # of those told, which are not told again

Notice = tuple[str, str, str]  # severity, SQLSTATE, text
Working = Callable[[], AbstractContextManager[object]]
Setting = SetSetting | ResetSetting | ClientSetting | ResetAll
CursorOrPrepared = (
    DeclareCursor | FetchRows | CloseCursor | PrepareQuery | ExecutePrepared | Deallocate | CopyOut
)


@dataclass(frozen=True, slots=True)
class _Done:
    """What a statement gave: rows or none, and the tag of its command."""

    rows: pa.Table | None
    tag: str


class Session:
    """The session of one connection. For one thread.

    Parameters
    ----------
    caller : callable
        Who is asking; a refusal once their credential is no longer in force.
    working : callable
        What the work for one statement happens within: its share of the process, and its time.
    settings : SessionSettings
        How it begins.
    """

    def __init__(
        self,
        engine: QueryEngine,
        caller: Callable[[], Caller],
        working: Working,
        settings: SessionSettings,
    ) -> None:
        self._engine = engine
        self._caller = caller
        self._working = working
        self.transaction = Transaction(settings)
        self.prepared: Shelf[Prepared] = Shelf(
            "prepared statement", "26000", "42P05", N_PREPARED_MAX
        )
        self.portals: Shelf[Portal] = Shelf("portal or cursor", "34000", "42P03", N_PORTALS_MAX)
        self.notices: list[Notice] = []
        self._epsilon = Fraction(0)
        self._cautioned: dict[str, None] = {}

    def read(self, sql: str) -> Prepared:
        """Read the one statement of a text, which is to run at once: its answer has its columns."""
        found = read_text(sql)
        check_alone(found)
        statement = found[0].statement if found else None
        if statement is not None:
            self._check_usable(statement)
        return Prepared(sql, statement)

    def prepare(self, sql: str, types: tuple[PgType | None, ...] = ()) -> Prepared:
        """Read the one statement of a text, and learn its parameters and columns. Free."""
        read = self.read(sql)
        statement = read.statement
        if statement is None:
            return read
        if isinstance(statement, Query | Explain):
            return self._prepared_query(sql, statement, types)
        return Prepared(sql, statement, schema=self._schema(sql, statement))

    def run(self, portal: Portal) -> None:
        """Run the statement of a portal, which holds the answer then. May charge."""
        statement = portal.prepared.statement
        if statement is None:
            portal.fill(None, "")
            return
        self._check_usable(statement)
        done = self._done(portal, statement)
        portal.fill(done.rows, done.tag, style_of(self.transaction.settings.client))

    def end_of_sequence(self) -> None:
        """Outside of a transaction, what was left open ends."""
        if not self.transaction.is_open:
            self._close_portals()

    def taken_epsilon(self) -> Fraction:
        """What statements spent since this was last asked."""
        spent, self._epsilon = self._epsilon, Fraction(0)
        return spent

    def _check_usable(self, statement: Statement) -> None:
        ends = statement in (TransactionWord.COMMIT, TransactionWord.ROLLBACK)
        if not ends and not isinstance(statement, Savepoint):
            self.transaction.check_usable()

    def _prepared_query(
        self, sql: str, statement: Query | Explain, types: tuple[PgType | None, ...]
    ) -> Prepared:
        """A query with the types of its parameters: those that are named, else the likely ones."""
        description = self._engine.describe(self._request(sql, ()))
        likely = [type_of_sql(name) for name in description.parameters.values()]
        named = [*types[: len(likely)], *(None for _ in likely[len(types) :])]
        return Prepared(
            sql,
            statement,
            tuple(description.parameters),
            tuple(known or guess for known, guess in zip(named, likely, strict=True)),
            description.schema,
            tuple(likely),
        )

    def describe(self, portal: Portal) -> None:
        """Learn the columns of a portal that depend on its values."""
        prepared = portal.prepared
        is_open = prepared.schema is None or has_untyped(prepared.schema)
        if is_open and isinstance(prepared.statement, Query | Explain):
            portal.schema = self._engine.result_schema(self._request(prepared.sql, portal.values))

    def _schema(self, sql: str, statement: Statement) -> pa.Schema | None:
        """The columns of the result of a statement that is not a query; None for no rows."""
        match statement:
            case ShowSetting() | ShowClientSetting() | ShowAll():
                return shown(statement, self.transaction.settings, self._user).schema
            case FetchRows(name, is_move=False):
                return self.portals.get(name).schema
            case ExecutePrepared(name):
                return self.prepared.get(name).schema
            case _ if isinstance(statement, SessionStatement | CursorOrPrepared):
                return None
            case _:
                return self._engine.result_schema(self._request(sql, ()))

    def _done(self, portal: Portal, statement: Statement) -> _Done:
        """Carry a statement out."""
        match statement:
            case ShowSetting() | ShowClientSetting() | ShowAll():
                return _Done(shown(statement, self.transaction.settings, self._user), "SHOW")
            case SetSetting() | ResetSetting() | ClientSetting() | ResetAll():
                return self._set(statement)
            case Unlisten():
                return _Done(None, statement.verb)
            case TransactionWord() | Savepoint() | DiscardAll():
                return self._about_transaction(statement)
            case _ if isinstance(statement, CursorOrPrepared):
                return self._about_kept(statement, portal)
            case _:
                return self._answered(portal.prepared.sql, statement, portal.values)

    def _answered(self, sql: str, statement: Statement, values: Parameters) -> _Done:
        """The engine's answer."""
        self._check_room()
        made = self._made(config_calls(statement, values)) if isinstance(statement, Query) else ()
        with self._working():
            try:
                result = self._engine.answer(self._request(sql, values))
            except TargetNotReached as refusal:
                self._epsilon += refusal.epsilon_spent
                raise
        if result.receipt is not None:
            self._epsilon += result.receipt.epsilon_spent
            self._tell(result.receipt)
        for setting in made:
            self._set(setting)
        return _Done(result.data, _tag(statement))

    def _made(self, calls: Sequence[ConfigCall]) -> tuple[Setting, ...]:
        """The settings that calls of set_config make; a refusal if one of them is none."""
        made: list[Setting] = []
        for name, value, is_local in calls:
            if name is None:
                raise StateError(
                    "0A000",
                    "set_config is called with arguments that are not constants.",
                    hint="Write set_config('jit', 'off', false), or SET jit = off.",
                )
            setting = setting_of(name, value, is_local=is_local and self.transaction.is_open)
            if isinstance(setting, ClientSetting) and setting.value is not None:
                known = canonical(setting.name)
                if setting.value != self._own(known):
                    checked(known, setting.value)
            if not is_local or self.transaction.is_open:
                made.append(setting)
        return tuple(made)

    def _tell(self, receipt: Receipt) -> None:
        """Send what an answer cost and how wide its intervals are, if the client wants that.

        Rows that are not what they look like are always told of: a preview has notes alone, and a
        statement with a value that no row has may not mean what its author meant. What of the data
        is left out, or counts as something else, is told once in a connection.
        """
        is_wanted = dict(self.transaction.settings.client).get(NOTICES) == "on"
        new = [one for one in receipt.caveats if one not in self._cautioned]
        self._cautioned = dict.fromkeys((*self._cautioned, *new)[-N_CAVEATS_MAX:])
        unasked = [
            one
            for one in receipt.notes
            if not receipt.columns or one in receipt.warnings or one in new
        ]
        lines = notice_lines(receipt) if is_wanted else unasked
        for line in lines:
            is_warning = line in receipt.warnings
            self.notices.append((WARNING, WARNED, line) if is_warning else (NOTICE, SUCCESS, line))

    def _check_room(self) -> None:
        """Refuse to begin an answer while too much of earlier ones waits to be taken."""
        if sum(portal.n_bytes_held for _, portal in self.portals.items()) > HELD_BYTES_MAX:
            raise StateError(
                "54000",
                "The cursors and portals of this connection hold too many rows.",
                hint="Fetch them, or close those that are not used.",
            )

    def _request(self, sql: str, values: Parameters) -> QueryRequest:
        settings = self.transaction.settings
        return QueryRequest(
            sql=sql,
            target=settings.target.over(DEFAULTS),
            parameters=values,
            caller=self._caller(),
            settings=settings.client,
        )

    def _set(self, statement: Setting) -> _Done:
        match statement:
            case ResetAll():
                self.transaction.reset()
                return _Done(None, "RESET")
            case ClientSetting(name, value, is_local):
                name = canonical(name)
                kept = None if value in (None, self._own(name)) else checked(name, value)
                self._change(lambda settings: settings.with_client(name, kept), is_local=is_local)
            case SetSetting() | ResetSetting():
                command = replace(statement, is_local=False)
                self._change(
                    lambda settings: replace(settings, target=applied(settings.target, [command])),
                    is_local=statement.is_local,
                )
        return _Done(None, statement.verb)

    @property
    def _user(self) -> str:
        """Who this session is, as a client calls them."""
        return self._caller().payer.analyst

    def _own(self, name: str) -> str | None:
        """The value that a setting has whatever is said: the role is the one that connected."""
        return self._user if name in ("role", USER) else None

    def _change(
        self, change: Callable[[SessionSettings], SessionSettings], *, is_local: bool
    ) -> None:
        if is_local and not self.transaction.is_open:
            self._warn(NO_TRANSACTION, "SET LOCAL needs a transaction, and there is none.")
        self.transaction.change(change, is_local=is_local)

    def _about_transaction(self, statement: TransactionWord | Savepoint | DiscardAll) -> _Done:
        match statement:
            case Savepoint():
                return _Done(None, self.transaction.savepoint(statement))
            case DiscardAll(is_everything):
                if is_everything:
                    self._discard_all()
                return _Done(None, "DISCARD ALL" if is_everything else "DISCARD")
            case word:
                tag, warning = self.transaction.say(word)
                if warning is not None:
                    self._warn(*warning)
                if not self.transaction.is_open:
                    self._close_portals()
                return _Done(None, tag)

    def _discard_all(self) -> None:
        if self.transaction.is_open:
            raise StateError(
                "25001", "DISCARD ALL cannot run in a transaction.", hint="End it first."
            )
        self.transaction.reset()
        self.prepared.keep_only(set())
        self.portals.keep_only(set())

    def _about_kept(self, statement: Statement, portal: Portal) -> _Done:  # noqa: PLR0911 - one each
        match statement:
            case DeclareCursor():
                return self._declared(statement, portal.values)
            case FetchRows(name, n_rows, is_move):
                rows = self.portals.get(name).passed(n_rows)
                verb = "MOVE" if is_move else "FETCH"
                return _Done(None if is_move else rows, f"{verb} {rows.num_rows}")
            case CloseCursor(name):
                _forget(self.portals, name)
                return _Done(None, "CLOSE CURSOR" if name else "CLOSE CURSOR ALL")
            case PrepareQuery(name, types, sql):
                kinds = tuple(type_of_sql(kind) for kind in types)
                self.prepared.put(name, self.prepare(sql, kinds), len(sql))
                return _Done(None, "PREPARE")
            case ExecutePrepared(name, values):
                return self._executed(self.prepared.get(name), values)
            case Deallocate(name):
                _forget(self.prepared, name)
                return _Done(None, "DEALLOCATE" if name else "DEALLOCATE ALL")
            case CopyOut(sql):
                rows = self._executed(self.read(sql), portal.values).rows
                return _Done(rows, f"COPY {0 if rows is None else rows.num_rows}")
            case other:
                raise not_answered(other.verb)

    def _declared(self, statement: DeclareCursor, values: Parameters) -> _Done:
        """Run the query of a cursor, which is when it may charge."""
        if not statement.is_held and not self.transaction.is_open:
            raise StateError(
                NO_TRANSACTION,
                "DECLARE CURSOR needs a transaction.",
                hint="Send BEGIN first, or DECLARE .. CURSOR WITH HOLD FOR ..",
            )
        prepared = self.prepare(statement.sql)
        cursor = Portal(prepared, values, is_held=statement.is_held)
        self.portals.discard(UNNAMED)
        self.portals.put(statement.name, cursor, len(statement.sql))
        try:
            self.run(cursor)
        except BaseException:
            self.portals.discard(statement.name)
            raise
        return _Done(None, "DECLARE CURSOR")

    def _executed(self, prepared: Prepared, values: Parameters) -> _Done:
        inner = Portal(prepared, values)
        self.run(inner)
        return _Done(inner.passed(inner.n_left) if inner.schema is not None else None, inner.tag)

    def _close_portals(self) -> None:
        held = {name for name, portal in self.portals.items() if portal.is_held}
        self.portals.keep_only(held)

    def _warn(self, sqlstate: str, text: str) -> None:
        self.notices.append((WARNING, sqlstate, text))


def _forget(shelf: Shelf[Any], name: str | None) -> None:
    """Forget what has a name, which must be there; everything without one."""
    if name is None:
        shelf.keep_only(set())
    else:
        shelf.get(name)
        shelf.discard(name)


def _tag(statement: Statement) -> str:
    """The tag of the engine's answer; for a SELECT, with the number of rows."""
    match statement:
        case CreateSynthetic() | CreateStream():
            return "CREATE TABLE"
        case DropSynthetic() | DropStream():
            return "DROP TABLE"
        case Explain():
            return "EXPLAIN"
        case _:
            return SELECT_TAG


SELECT_TAG: Final = "SELECT"
