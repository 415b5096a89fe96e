"""Reading statements of our own, word by word: what must come next, and options with their values.

What the statements are is in synthetic_statements.py and stream_statements.py.
"""

import re
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import ClassVar, Final, TypeVar

from sqlglot.tokenizer_core import Token, TokenType

from cube.axis import NAME_LENGTH_MAX
from cube.refusals import InvalidSql, InvalidTarget
from planner.sql.exact_number import exact_number
from planner.sql.messages import position_at, shortened, suggestion
from planner.sql.words import WordReader, is_name, worded_statements

_IDENTIFIER: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
_ARROWS: Final = (TokenType.FARROW, TokenType.EQ)
Value = TypeVar("Value")


class StatementReader(WordReader):
    """Reads a statement that has to go on as expected.

    Parameters
    ----------
    words : sequence of Token
    """

    example: ClassVar[str]
    """A statement that is read, for the hints of refusals."""

    def new_name(self, word: str, kind: str) -> str:
        """A name for something that is to be made.

        Parameters
        ----------
        word, kind : str
            What it is in short, and with its article: ``"table", "a synthetic table"``.

        Raises
        ------
        InvalidSql
        """
        found = self.next_expected(f"the new {word}'s name")
        if found.token_type == TokenType.STRING or not is_new_name(found.text):
            raise InvalidSql(
                f"{shortened(found.text)!a} is no name for {kind}.",
                hint="Take letters, digits and _, beginning with no digit, and no word of SQL.",
                position=position_at(found.line, found.col),
            )
        return found.text

    def options(self, names: Sequence[str], value: Callable[[str], Value]) -> dict[str, Value]:
        """The options of ``WITH (name => value, ..)``; none if there is no WITH.

        Raises
        ------
        InvalidSql, InvalidTarget
        """
        found: dict[str, Value] = {}
        if self.passed("WITH"):
            self.expect("(")
            while not found or not self.passed(")"):
                if found:
                    self.expect(",")
                option = self._option(names)
                read = value(option)
                if option in found:
                    raise InvalidTarget(f"WITH names {option} twice.", hint="Keep one of them.")
                found[option] = read
        return found

    def _option(self, names: Sequence[str]) -> str:
        """The name of an option, with the arrow behind it."""
        word = self.next_expected("an option")
        name = word.text.lower()
        if name not in names:
            raise InvalidTarget(
                f"WITH has no {shortened(name)}.",
                hint=suggestion(name, names) or f"It has {', '.join(names)}.",
            )
        arrow = self.next_expected("=>")
        if arrow.token_type not in _ARROWS:
            raise self.expected("=>", arrow)
        return name

    def number(self, name: str) -> Fraction:
        """The number that an option is."""
        sign = -1 if self.passed("-") else 1
        word = self.next_expected("a number")
        if word.token_type != TokenType.NUMBER:
            raise InvalidTarget(
                f"{name} must be a number, not {shortened(word.text)!a}.",
                hint="Numbers stand there without quotes, as in epsilon => 0.5.",
            )
        return sign * exact_number(word.text)

    def truth(self, name: str) -> bool:
        """True or false."""
        word = self.next_expected("true or false").text.lower()
        if word not in {"true", "false"}:
            raise InvalidTarget(
                f"{name} is true or false, not {shortened(word)!a}.", hint=f"As in {name} => true."
            )
        return word == "true"

    def name(self, what: str) -> str:
        """A name."""
        word = self.next_expected(what)
        if not is_name(word):
            raise self.expected(what, word)
        return word.text

    def next_expected(self, what: str) -> Token:
        """The next word, of which there has to be one."""
        word = self.next_word()
        if word is None:
            raise self.what_is_next(what)
        return word

    def expect(self, word: str) -> None:
        """Pass a word, which has to come next."""
        if not self.passed(word):
            raise self.what_is_next(word)

    def expect_end(self) -> None:
        """Refuse whatever comes behind the end of a statement."""
        if self.ahead is not None:
            raise self.what_is_next("the end of the statement")

    def what_is_next(self, what: str) -> InvalidSql:
        """The refusal of whatever comes next, if something else should."""
        if self.ahead is None:
            return self.expected(what, self.latest, is_after=True)
        return self.expected(what, self.ahead)

    def expected(self, what: str, word: Token, *, is_after: bool = False) -> InvalidSql:
        """The refusal of a word in whose place something else should be."""
        return InvalidSql(
            f"There should be {what} {'after' if is_after else 'before'} {shortened(word.text)!a}.",
            hint=f"Write {self.example}.",
            position=position_at(word.line, word.col),
        )


def whole_number(name: str, value: object, low: int, high: int) -> int | None:
    """An option as a whole number in a range; None if there is none."""
    return whole(name, value, low, high) if isinstance(value, Fraction) else None


def whole(name: str, value: object, low: int, high: int) -> int:
    """A number as a whole one in a range.

    Raises
    ------
    InvalidTarget
    """
    if not isinstance(value, Fraction) or value.denominator != 1 or not low <= value <= high:
        raise InvalidTarget(
            f"{name} is a whole number from {low} to {high}.",
            hint=f"As in {name} => {min(high, 1000)}.",
        )
    return int(value)


def is_new_name(text: str) -> bool:
    """Whether something new may be called this: an identifier that SQL has no other use for.

    >>> [is_new_name(text) for text in ("adult_1", "1a", "a b", "select", "")]
    [True, False, False, False, False]
    """
    if _IDENTIFIER.fullmatch(text) is None or len(text) > NAME_LENGTH_MAX:
        return False
    (only,) = worded_statements(text)
    (word,) = only.words
    return word.token_type == TokenType.VAR
