"""Splits a text into words, and reads Tacit's own statements from them.

A text as words: cut into statements at its semicolons, each word with the place it begins at.

Everything that reads SQL reads these words, so that no two readers can disagree on where a string
or a comment ends. Lengths are checked first; the rest takes time in proportion to the text. What
the words mean is not known here.

Reading statements of our own, word by word: what must come next, and options with their values.

What the statements are is in synthetic_statements.py and stream_statements.py.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Final, TypeVar

from sqlglot.errors import TokenError
from sqlglot.tokenizer_core import Token, TokenType

from cube.axis import NAME_LENGTH_MAX
from cube.refusals import InvalidSql, InvalidTarget, TooLarge
from planner.sql.dialect import TACIT
from planner.sql.exact_numbers import exact_number
from planner.sql.messages import position_at, shortened, suggestion

N_WORDS_MAX = 10_000  # planning is linear in these, some hundred microseconds for the worst of them

_OPTIONS = re.compile(r"/\*\+\s*tacit\b", re.IGNORECASE)  # see `statements`
_ESCAPE: Final = re.compile(
    r"(?:\\(?:[xX][0-9A-Fa-f]{1,2}|[0-7]{1,3}))+"
    r"|\\(?P<sign>u[0-9A-Fa-f]{4}|U[0-9A-Fa-f]{8}|.)",
    re.DOTALL,
)
_BYTE: Final = re.compile(r"\\(?:[xX][0-9A-Fa-f]{1,2}|[0-7]{1,3})")
_ESCAPES: Final = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_NAME = re.compile(r"[^\W\d][\w$]*")
_QUOTED: Final = frozenset(
    {
        TokenType.STRING,
        TokenType.IDENTIFIER,
        TokenType.BIT_STRING,
        TokenType.BYTE_STRING,
        TokenType.HEREDOC_STRING,
        TokenType.HEX_STRING,
        TokenType.NATIONAL_STRING,
        TokenType.UNICODE_STRING,
    }
)


@dataclass(frozen=True, slots=True)
class TextLimits:
    """How much a text may hold.

    Parameters
    ----------
    what : str
        What a refusal calls the text.
    n_bytes : int
    n_statements : int
    hint : str
        What to do about one that is too long.
    """

    what: str
    n_bytes: int
    n_statements: int
    hint: str


N_SETTINGS_MAX = 100  # before one statement
# Parsing is pure Python; a longer text would hold a worker for seconds.
ONE_STATEMENT: Final = TextLimits(
    what="SQL text",
    n_bytes=64 * 1024,
    n_statements=N_SETTINGS_MAX + 1,
    hint="Replace long lists of values by ranges or expressions.",
)
# A batch is planned as one problem, and answered to someone who waits.
FILE: Final = TextLimits(
    what="file", n_bytes=2**20, n_statements=500, hint="Split it into several files."
)


@dataclass(frozen=True, slots=True, eq=False)
class WordedStatement:
    """The words of one statement, at least one.

    Parameters
    ----------
    text : str
        The statement as it was written: the whole text if there is no other in it.
    start : int
        Where in the whole text that begins.
    words : sequence of Token
        Lines, columns and places count in `text`.
    """

    text: str
    start: int
    words: Sequence[Token]


def worded_statements(sql: str, limits: TextLimits = ONE_STATEMENT) -> tuple[WordedStatement, ...]:
    r"""The statements of a text, in order; empty ones are left out.

    >>> [one.text for one in worded_statements("SELECT 1; -- one; only\nSELECT ';'")]
    ['SELECT 1', "SELECT ';'"]

    Raises
    ------
    InvalidSql
        If the text cannot be read as words.
    TooLarge
        If it is longer than the limits, has more statements, or one of too many words.
    """
    check_length(sql, limits)
    every = _words(sql)
    pieces = _between_semicolons(every)
    if len(pieces) > limits.n_statements:
        raise TooLarge(
            f"The {limits.what} has {len(pieces)} statements; {limits.n_statements} are allowed.",
            hint="Send settings and statements one by one."
            if limits is ONE_STATEMENT
            else limits.hint,
        )
    for words in pieces:
        if len(words) > N_WORDS_MAX:
            raise TooLarge(
                f"The SQL text has {len(words)} words and signs; {N_WORDS_MAX} are allowed.",
                hint=ONE_STATEMENT.hint,
            )
    if len(pieces) == 1:
        return (_placed(sql, 0, len(sql), pieces[0]),)
    last = pieces[-1][0].start if pieces else 0
    ends = [one.start for one in every if one.token_type == TokenType.SEMICOLON]
    ends = [place for place in ends if place < last]  # behind the last, there are comments alone
    return tuple(_placed(sql, *_extent(sql, piece, ends), piece) for piece in pieces)


def check_length(sql: str, limits: TextLimits) -> None:
    """Raise TooLarge or InvalidSql if a text is too long to be looked at, or not one of characters.

    Raises
    ------
    TooLarge, InvalidSql
    """
    try:
        n_bytes = len(sql.encode())
    except UnicodeEncodeError:
        raise InvalidSql("The SQL text is not valid Unicode.", hint="Send it as UTF-8.") from None
    if n_bytes > limits.n_bytes:
        raise TooLarge(
            f"The {limits.what} has {n_bytes} bytes; {limits.n_bytes} are allowed.",
            hint=limits.hint,
        )
    if "\0" in sql:
        raise InvalidSql("The SQL text contains a NUL character.", hint="Remove it.")


def is_quoted(word: Token) -> bool:
    """Whether a word is a string, or a name between quotes."""
    return word.token_type in _QUOTED


def is_name(word: Token) -> bool:
    """Whether a word may be a name: between double quotes, or a word of SQL without quotes."""
    if word.token_type == TokenType.IDENTIFIER:
        return True
    return not is_quoted(word) and _NAME.fullmatch(word.text) is not None


def keyword(word: Token) -> str:
    """A word in capitals; nothing for what stands between quotes, which is no word of SQL."""
    return "" if is_quoted(word) else word.text.upper()


class WordReader:
    """Reads words from the first to the last.

    Parameters
    ----------
    words : sequence of Token
    """

    def __init__(self, words: Sequence[Token]) -> None:
        self._words = words
        self._place = 0

    def passed(self, *expected: str) -> bool:
        """Whether these words come next, in capitals and without quotes; they are then behind."""
        found = self._words[self._place : self._place + len(expected)]
        if tuple(map(keyword, found)) != expected:
            return False
        self._place += len(expected)
        return True

    def next_word(self) -> Token | None:
        """The next word, which is then behind; None at the end."""
        word = self.ahead
        self._place += word is not None
        return word

    @property
    def ahead(self) -> Token | None:
        """The next word, which stays the next; None at the end."""
        return self._words[self._place] if self._place < len(self._words) else None

    @property
    def rest(self) -> Sequence[Token]:
        """The words that are not behind yet."""
        return self._words[self._place :]

    @property
    def latest(self) -> Token:
        """The last word that is behind."""
        return self._words[self._place - 1]


def _words(sql: str) -> list[Token]:
    try:
        return list(_with_parameters(_with_plain_strings(TACIT.tokenize(sql), sql)))
    except (TokenError, UnicodeDecodeError) as error:
        if isinstance(error, UnicodeDecodeError):
            error = TokenError("the escapes of a string do not make a text")
        near = shortened(sql[error.start or 0 : (error.end or len(sql)) + 1])
        raise InvalidSql(
            f"The SQL cannot be split into words near {near}.",
            hint="A quote or a comment may not be closed.",
        ) from None


def _with_plain_strings(words: Sequence[Token], sql: str) -> Iterator[Token]:
    """The words with a plain string for each that is written with escapes or between dollars."""
    place = 0
    while place < len(words):
        word, behind = words[place], words[place + 1 : place + 3]
        place += 1
        text, end = word.text, word.end
        match word.token_type:
            case TokenType.BYTE_STRING:
                text = _unescaped(sql[word.start + 2 : word.end])
            case TokenType.UNICODE_STRING:
                sign = "\\"
                if len(behind) > 1 and keyword(behind[0]) == "UESCAPE":
                    sign, end = behind[1].text, behind[1].end
                    place += 2
                text = _of_code_points(text, sign)
            case TokenType.HEREDOC_STRING | TokenType.NATIONAL_STRING:
                pass
            case _:
                yield word
                continue
        kept = list(word.comments)
        yield Token(TokenType.STRING, text, word.line, word.col, word.start, end, kept)


def _unescaped(text: str) -> str:
    r"""What stands between the quotes of ``E'..'``.

    >>> _unescaped(r"it\'s \x41\102\u0043 ''")
    "it's ABC '"
    """

    def meant(match: "re.Match[str]") -> str:
        sign = match["sign"]
        if sign is None:  # bytes, which together are text
            found = bytes(_byte(one) for one in _BYTE.findall(match[0]))
            return found.decode()
        if sign[0] in "uU":
            return _character(int(sign[1:] or "0", 16))
        return _ESCAPES.get(sign, sign)

    return _ESCAPE.sub(meant, text.replace("''", "'"))


def _character(code: int) -> str:
    if not 0 < code <= 0x10FFFF or 0xD800 <= code <= 0xDFFF:  # noqa: PLR2004 - of Unicode
        raise TokenError("a string has an escape that is not a character")
    return chr(code)


def _byte(escape: str) -> int:
    number = int(f"0{escape[1:]}", 0) if escape[1] in "xX" else int(escape[1:], 8) & 0xFF
    if not number:
        raise TokenError("a string has an escape that is not a character")
    return number


def _of_code_points(text: str, sign: str) -> str:
    """What stands between the quotes of ``U&'..'``, with the sign that begins an escape."""
    if len(sign) != 1 or sign in "+'\"" or sign.isspace() or sign in "0123456789abcdefABCDEF":
        raise TokenError("UESCAPE needs one escape character")
    quoted = re.escape(sign)
    pattern = re.compile(
        rf"{quoted}(?:([0-9A-Fa-f]{{4}})|\+([0-9A-Fa-f]{{6}})|({quoted})|(.?))", re.DOTALL
    )

    def meant(match: "re.Match[str]") -> str:
        four, six, twice, _ = match.groups()
        if twice:
            return sign
        return _character(int(four or six or "0", 16))

    return pattern.sub(meant, text)


def _with_parameters(words: Iterable[Token]) -> Iterator[Token]:
    """The words with two for a numbered parameter, ``$`` and all of its digits."""
    number: Token | None = None  # of the parameter that is being read
    for word in words:
        if number is not None and word.start == number.end + 1 and word.text.isdecimal():
            number = _number(word, number.text + word.text, number.start)
            continue
        if number is not None:
            yield number
            number = None
        if word.token_type == TokenType.NUMBER and word.text.startswith("$"):
            yield Token(TokenType.PARAMETER, "$", word.line, word.col, word.start, word.start, [])
            number = _number(word, word.text[1:], word.start + 1)
        else:
            yield word
    if number is not None:
        yield number


def _number(word: Token, text: str, start: int) -> Token:
    return Token(TokenType.NUMBER, text, word.line, word.col, start, word.end, list(word.comments))


def _between_semicolons(words: Iterable[Token]) -> list[list[Token]]:
    """The words of each statement; a comment behind a semicolon belongs to the next, if any."""
    pieces: list[list[Token]] = [[]]
    comments: list[str] = []
    for word in words:
        if word.token_type == TokenType.SEMICOLON:
            comments += word.comments
            pieces += [[]] if pieces[-1] else []
        else:
            word.comments = [*comments, *word.comments]
            comments = []
            pieces[-1].append(word)
    pieces = [piece for piece in pieces if piece]
    if pieces:
        pieces[-1][-1].comments += comments
    return pieces


def _extent(sql: str, words: Sequence[Token], semicolons: Sequence[int]) -> tuple[int, int]:
    """Where a statement begins and ends: at its words, or at comments with options around them."""
    first, last = words[0].start, words[-1].end + 1
    before = max((place for place in semicolons if place < first), default=-1) + 1
    after = min((place for place in semicolons if place >= last), default=len(sql))
    if _OPTIONS.search(sql, before, first):
        first = before
    return first, after if _OPTIONS.search(sql, last, after) else last


def _placed(sql: str, start: int, end: int, words: Sequence[Token]) -> WordedStatement:
    """One statement, whose words know the line and column where they begin in its text.

    sqlglot counts to where a word ends, and loses count after a dollar sign.
    """
    line, line_start, seen = 1, start, start
    for word in words:
        n_ended = sql.count("\n", seen, word.start)
        if n_ended:
            line, line_start = line + n_ended, sql.rfind("\n", seen, word.start) + 1
        seen = word.start
        word.line, word.col = line, word.start - line_start + 1
        word.start, word.end = word.start - start, word.end - start
    return WordedStatement(sql[start:end], start, words)


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
                f"{shortened(found.text)!a} cannot be the name of {kind}.",
                hint="Use letters, digits and _. A name may not begin with a digit or be a word of "
                "SQL.",
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
                    raise InvalidTarget(f"WITH names {option} twice.", hint="Write it once.")
                found[option] = read
        return found

    def _option(self, names: Sequence[str]) -> str:
        """The name of an option, with the arrow behind it."""
        word = self.next_expected("an option")
        name = word.text.lower()
        if name not in names:
            raise InvalidTarget(
                f"WITH has no option {shortened(name)}.",
                hint=suggestion(name, names) or f"The options are {', '.join(names)}.",
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
                hint="Write the number without quotes, as in epsilon => 0.5.",
            )
        return sign * exact_number(word.text)

    def truth(self, name: str) -> bool:
        """True or false."""
        word = self.next_expected("true or false").text.lower()
        if word not in {"true", "false"}:
            raise InvalidTarget(
                f"{name} must be true or false, not {shortened(word)!a}.",
                hint=f"Write {name} => true.",
            )
        return word == "true"

    def name(self, what: str) -> str:
        """A name."""
        word = self.next_expected(what)
        if not is_name(word):
            raise self.expected(what, word)
        return word.text

    def next_expected(self, what: str) -> Token:
        """The next word; a refusal if there is none."""
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
            f"Expected {what} {'after' if is_after else 'before'} {shortened(word.text)!a}.",
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
            f"{name} must be a whole number from {low} to {high}.",
            hint=f"An example is {name} => {min(high, 1000)}.",
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
