"""A session's settings, and the transaction that they may be in.

There is nothing else to undo: what was charged stays charged. A transaction that failed takes no
statement until it ends, as PostgreSQL has it, and what was set in it is set back.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Final

from planner.sql.transactions import Savepoint, SavepointWord, TransactionWord
from planner.workload import RequestedTarget
from proxy.wire.postgres.backend import Standing
from proxy.wire.postgres.sqlstates import (
    ACTIVE_TRANSACTION,
    FAILED_TRANSACTION,
    NO_TRANSACTION,
    StateError,
)

N_SAVEPOINTS_MAX: Final = 1000


@dataclass(frozen=True, slots=True)
class SessionSettings:
    """What a session has set.

    Parameters
    ----------
    target : RequestedTarget
        Our own settings.
    client : tuple of (str, str)
        Those that clients set by themselves and that are not at their default, in order of name.
    """

    target: RequestedTarget = field(default_factory=RequestedTarget)
    client: tuple[tuple[str, str], ...] = ()

    def with_client(self, name: str, value: str | None) -> "SessionSettings":
        """With one of the client's settings changed; None for its default."""
        others = dict(self.client)
        others.pop(name, None)
        if value is not None:
            others[name] = value
        return replace(self, client=tuple(sorted(others.items())))


Change = Callable[[SessionSettings], SessionSettings]


class Transaction:
    """The settings of one session, inside and outside of its transactions.

    Parameters
    ----------
    settings : SessionSettings
        How the session begins.
    """

    def __init__(self, settings: SessionSettings) -> None:
        self._first = settings
        self._lasting = settings  # without what is local to a transaction
        self._before = settings  # what a rollback returns to
        self._savepoints: list[tuple[str, SessionSettings, SessionSettings]] = []
        self.settings = settings
        self.standing = Standing.IDLE

    @property
    def is_open(self) -> bool:
        """Whether a transaction was begun and has not ended."""
        return self.standing is not Standing.IDLE

    def check_usable(self) -> None:
        """Refuse a statement in a transaction that failed."""
        if self.standing is Standing.FAILED:
            raise StateError(
                FAILED_TRANSACTION,
                "The transaction failed; statements are ignored until it ends.",
                hint="Send ROLLBACK.",
            )

    def fail(self) -> None:
        """A statement failed."""
        if self.is_open:
            self.standing = Standing.FAILED

    def change(self, change: Change, *, is_local: bool = False) -> None:
        """Change settings; a local change ends with the transaction."""
        if is_local and not self.is_open:
            return
        self.settings = change(self.settings)
        if not is_local:
            self._lasting = change(self._lasting)

    def reset(self) -> None:
        """Put every setting back to what it was when the session began."""
        self.change(lambda _: self._first)

    def say(self, word: TransactionWord) -> tuple[str, tuple[str, str] | None]:
        """Begin or end; the tag of the command, and the code and text of a warning."""
        if word is TransactionWord.BEGIN:
            if self.is_open:
                return "BEGIN", (ACTIVE_TRANSACTION, "There is a transaction already.")
            self.standing, self._before = Standing.OPEN, self.settings
            return "BEGIN", None
        warning = None if self.is_open else (NO_TRANSACTION, "There is no transaction.")
        is_kept = word is TransactionWord.COMMIT and self.standing is not Standing.FAILED
        self._end(is_kept=is_kept)
        return ("COMMIT" if is_kept else "ROLLBACK"), warning

    def savepoint(self, said: Savepoint) -> str:
        """Set, release or return to a savepoint; the tag of the command."""
        if not self.is_open:
            raise StateError(
                NO_TRANSACTION, f"{said.verb} is for transactions.", hint="Send BEGIN first."
            )
        if said.word is not SavepointWord.ROLLBACK_TO:
            self.check_usable()
        if said.word is SavepointWord.SET:
            if len(self._savepoints) >= N_SAVEPOINTS_MAX:
                raise StateError("54000", f"There are {N_SAVEPOINTS_MAX} savepoints already.")
            self._savepoints.append((said.name, self.settings, self._lasting))
            return "SAVEPOINT"
        place = self._place(said.name)
        if said.word is SavepointWord.RELEASE:
            del self._savepoints[place:]
            return "RELEASE"
        _, self.settings, self._lasting = self._savepoints[place]
        del self._savepoints[place + 1 :]
        self.standing = Standing.OPEN
        return "ROLLBACK"

    def _place(self, name: str) -> int:
        places = [at for at, (known, *_) in enumerate(self._savepoints) if known == name]
        if not places:
            raise StateError("3B001", f"There is no savepoint {name[:64]!a}.")
        return places[-1]

    def _end(self, *, is_kept: bool) -> None:
        if self.is_open:
            self.settings = self._lasting = self._lasting if is_kept else self._before
        self._savepoints.clear()
        self.standing = Standing.IDLE
