"""Statements that clients send around others: BEGIN, COMMIT, ROLLBACK, DISCARD ALL and UNLISTEN.

    BEGIN | START TRANSACTION [mode, ..]    COMMIT | END [AND [NO] CHAIN]
    ROLLBACK | ABORT [AND [NO] CHAIN]       DISCARD ALL | PLANS | SEQUENCES | TEMP
    UNLISTEN * | name
    SAVEPOINT name    RELEASE [SAVEPOINT] name    ROLLBACK TO [SAVEPOINT] name

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
from planner.sql.words import WordReader, is_name, is_quoted


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
    """Put the session back to how it began; less than everything, if only that is discarded."""

    is_everything: bool = True
    verb: ClassVar[str] = "DISCARD"


@dataclass(frozen=True, slots=True)
class Unlisten:
    """Listen to no channel any more, which nobody does: pools say so of every connection."""

    verb: ClassVar[str] = "UNLISTEN"


class SavepointWord(StrEnum):
    """What a statement says of a savepoint."""

    SET = "SAVEPOINT"
    RELEASE = "RELEASE"
    ROLLBACK_TO = "ROLLBACK TO"


@dataclass(frozen=True, slots=True)
class Savepoint:
    """A savepoint set, released or returned to."""

    word: SavepointWord
    name: str

    @property
    def verb(self) -> str:
        """How such a statement begins."""
        return self.word.value


SessionWord: TypeAlias = TransactionWord | DiscardAll | Savepoint | Unlisten

_BEGINNINGS: Final = {
    ("START", "TRANSACTION"): TransactionWord.BEGIN,
    ("BEGIN",): TransactionWord.BEGIN,
    ("COMMIT",): TransactionWord.COMMIT,
    ("END",): TransactionWord.COMMIT,
    ("ROLLBACK",): TransactionWord.ROLLBACK,
    ("ABORT",): TransactionWord.ROLLBACK,
}
_SAVEPOINTS: Final = {
    ("SAVEPOINT",): SavepointWord.SET,
    ("RELEASE", "SAVEPOINT"): SavepointWord.RELEASE,
    ("RELEASE",): SavepointWord.RELEASE,
    **{
        ("ROLLBACK", *filler, "TO", *tail): SavepointWord.ROLLBACK_TO
        for filler in (("WORK",), ("TRANSACTION",), ())
        for tail in (("SAVEPOINT",), ())
    },
}
_DISCARDED: Final = ("PLANS", "SEQUENCES", "TEMP", "TEMPORARY")
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
        return _discard(reader)
    if reader.passed("UNLISTEN"):
        return _unlisten(reader)
    for opening, savepoint in _SAVEPOINTS.items():
        if reader.passed(*opening):
            return _savepoint(savepoint, reader)
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


def _discard(reader: WordReader) -> DiscardAll:
    is_everything = reader.passed("ALL")
    passed = is_everything or any(reader.passed(what) for what in _DISCARDED)
    if not passed or reader.ahead is not None:
        raise _malformed(reader, "Write DISCARD ALL.")
    return DiscardAll(is_everything)


def _unlisten(reader: WordReader) -> Unlisten:
    channel = reader.next_word()
    if channel is None or not (channel.text == "*" or is_name(channel)) or reader.ahead:
        raise _malformed(reader, "Write UNLISTEN *.")
    return Unlisten()


def _pass_modes(reader: WordReader) -> None:
    while any(reader.passed(*mode) for mode in _MODES):
        reader.passed(",")


def _savepoint(word: SavepointWord, reader: WordReader) -> Savepoint:
    name = reader.next_word()
    if name is None or not is_name(name) or reader.ahead is not None:
        raise _malformed(reader, "Write SAVEPOINT name, RELEASE name, or ROLLBACK TO name.")
    return Savepoint(word, name.text if is_quoted(name) else name.text.lower())


def _malformed(reader: WordReader, hint: str) -> InvalidSql:
    word = reader.latest if reader.ahead is None else reader.ahead
    return InvalidSql(
        f"The statement does not parse near {shortened(word.text)}.",
        hint=hint,
        position=position_at(word.line, word.col),
    )
