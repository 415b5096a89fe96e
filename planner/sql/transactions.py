"""Statements that clients send around others: BEGIN, COMMIT, ROLLBACK and DISCARD ALL.

    BEGIN | START TRANSACTION [mode, ..]    COMMIT | END [AND [NO] CHAIN]
    ROLLBACK | ABORT [AND [NO] CHAIN]       DISCARD ALL

There are no transactions here: what was charged stays charged, and what was measured stays known.
The words are read so that a client that sends them of its own accord is understood.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar, Final, TypeAlias

from sqlglot.tokenizer_core import Token

from cube.refusals import InvalidSql
from planner.sql.messages import position_at, shortened
from planner.sql.words import WordReader


class TransactionWord(StrEnum):
    """What a statement says of a transaction."""

    BEGIN = "BEGIN"
    COMMIT = "COMMIT"
    ROLLBACK = "ROLLBACK"

    @property
    def verb(self) -> str:
        """How such a statement begins."""
        return self.value


@dataclass(frozen=True, slots=True)
class DiscardAll:
    """Put the session back to how it began."""

    verb: ClassVar[str] = "DISCARD"


SessionWord: TypeAlias = TransactionWord | DiscardAll

_BEGINNINGS: Final = {
    ("START", "TRANSACTION"): TransactionWord.BEGIN,
    ("BEGIN",): TransactionWord.BEGIN,
    ("COMMIT",): TransactionWord.COMMIT,
    ("END",): TransactionWord.COMMIT,
    ("ROLLBACK",): TransactionWord.ROLLBACK,
    ("ABORT",): TransactionWord.ROLLBACK,
}
_MODES: Final = (
    ("ISOLATION", "LEVEL", "SERIALIZABLE"),
    ("ISOLATION", "LEVEL", "REPEATABLE", "READ"),
    ("ISOLATION", "LEVEL", "READ", "COMMITTED"),
    ("ISOLATION", "LEVEL", "READ", "UNCOMMITTED"),
    ("READ", "WRITE"),
    ("READ", "ONLY"),
    ("NOT", "DEFERRABLE"),
    ("DEFERRABLE",),
)
_CHAINS: Final = (("AND", "CHAIN"), ("AND", "NO", "CHAIN"))


def read_session_word(words: Sequence[Token]) -> SessionWord | None:
    """The statement about a transaction or a session; None if the words begin otherwise.

    Raises
    ------
    InvalidSql
        If they go on as no such statement does.
    """
    reader = WordReader(words)
    if reader.passed("DISCARD"):
        if not reader.passed("ALL") or reader.ahead is not None:
            raise _malformed(reader, "Write DISCARD ALL.")
        return DiscardAll()
    for beginning, word in _BEGINNINGS.items():
        if not reader.passed(*beginning):
            continue
        if len(beginning) == 1 and not reader.passed("TRANSACTION"):
            reader.passed("WORK")
        if word == TransactionWord.BEGIN:
            _pass_modes(reader)
        else:
            any(reader.passed(*chain) for chain in _CHAINS)
        if reader.ahead is not None:
            raise _malformed(reader, "BEGIN, COMMIT and ROLLBACK stand alone: nothing is undone.")
        return word
    return None


def _pass_modes(reader: WordReader) -> None:
    while any(reader.passed(*mode) for mode in _MODES):
        reader.passed(",")


def _malformed(reader: WordReader, hint: str) -> InvalidSql:
    word = reader.latest if reader.ahead is None else reader.ahead
    return InvalidSql(
        f"The statement does not parse near {shortened(word.text)}.",
        hint=hint,
        position=position_at(word.line, word.col),
    )
