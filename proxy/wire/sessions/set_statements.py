"""SET, RESET and SHOW in the text that a client sends: read here, taken off before planning.

    SET [SESSION] tacit.half_width = 50        SET tacit.confidence TO '0.9'
    RESET tacit.epsilon    RESET ALL           SHOW tacit.half_width

A text may begin with several SETs and RESETs and go on with one statement, which is left as it was
written. What clients set of their own accord is read and has no effect: `IGNORED` lists it. Nothing
here knows which session the settings are for.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Final, TypeAlias

from cube.refusals import InvalidSql, InvalidTarget, TooLarge, UnknownName, UnsupportedSql
from planner.sql.messages import shortened, suggestion

NAMESPACE: Final = "tacit."
SETTING_NAMES: Final = ("half_width", "confidence", "epsilon")
N_SETTINGS_MAX = 100  # of one text
N_WORDS_MAX = 1000  # of one setting

# What drivers and tools send when they connect; none of it could change an answer.
IGNORED: Final = frozenset(
    (
        "application_name",
        "bytea_output",
        "client_encoding",
        "client_min_messages",
        "datestyle",
        "default_transaction_isolation",
        "default_transaction_read_only",
        "extra_float_digits",
        "idle_in_transaction_session_timeout",
        "intervalstyle",
        "lock_timeout",
        "names",
        "search_path",
        "session characteristics",
        "standard_conforming_strings",
        "statement_timeout",
        "time zone",
        "timezone",
        "transaction",
    )
)
_PHRASES: Final = (("time", "zone"), ("session", "characteristics"), ("names",), ("transaction",))

# No two alternatives can begin alike, so that no text makes the reader go back far. Single classes
# are possessive; groups are not, which early releases of Python 3.11 match wrongly.
_GAP = re.compile(r"(?:\s++|--[^\n]*+|/\*(?:[^*/]++|\*(?!/)|/(?!\*))*\*/)*")
_BEGINS = re.compile(_GAP.pattern + r"(?i:set|reset|show)\b")
_WORD = re.compile(
    r"(?P<string>'(?:[^']++|'')*'(?!'))"
    r'|(?P<quoted>"(?:[^"]++|"")*"(?!"))'
    r"|(?P<number>(?:[0-9]++(?:\.[0-9]*+)?|\.[0-9]++)(?:[eE][+-]?[0-9]++)?(?![\w$]))"
    r"|(?P<word>[^\W\d][\w$]*+)"
    r"|(?P<sign>[^\s'\"])"
)
# Short, so that no exponent makes an exact number of a billion digits.
_DECIMAL = re.compile(
    r"[+-]?([0-9]{1,20}(\.[0-9]{0,40})?|\.[0-9]{1,40})([eE][+-]?[0-9]{1,2})?", re.ASCII
)


@dataclass(frozen=True, slots=True)
class Set:
    """Give one of our settings a value; None takes the value away."""

    name: str
    value: Fraction | None


@dataclass(frozen=True, slots=True)
class ResetAll:
    """Take the values of all our settings away."""


@dataclass(frozen=True, slots=True)
class Show:
    """Say what one of our settings is."""

    name: str


@dataclass(frozen=True, slots=True)
class Ignored:
    """A setting that has no effect here."""


Command: TypeAlias = Set | ResetAll | Show | Ignored


@dataclass(frozen=True, slots=True)
class _Word:
    """One word, quoted name, string, number or sign; `text` is without its quotes."""

    kind: str
    text: str

    def is_word(self, *words: str) -> bool:
        return self.kind == "word" and self.text.lower() in words

    def is_sign(self, *signs: str) -> bool:
        return self.kind == "sign" and self.text in signs


def split_settings(sql: str) -> tuple[tuple[Command, ...], str]:
    """The settings a text begins with, and the rest of it.

    >>> split_settings("SET tacit.half_width = 50; SELECT 1")
    ((Set(name='half_width', value=Fraction(50, 1)),), 'SELECT 1')

    Raises
    ------
    InvalidSql, UnsupportedSql, UnknownName, InvalidTarget, TooLarge
        If it begins with a setting that is malformed, of no effect that could be meant, unknown or
        no number. What follows the settings is not looked at.
    """
    commands: list[Command] = []
    place = 0
    while _BEGINS.match(sql, place) is not None:
        if len(commands) == N_SETTINGS_MAX:
            raise TooLarge(f"The text begins with more than {N_SETTINGS_MAX} settings.")
        words, place = _words_of_one(sql, place)
        commands.append(_command(words))
    if not commands:
        return (), sql
    place = _after_gap(sql, place)
    rest = "" if sql[place:].strip("; \t\r\n") == "" else sql[place:]
    if any(isinstance(command, Show) for command in commands) and (rest or len(commands) > 1):
        raise UnsupportedSql("SHOW is answered alone.", hint="Send it as a statement of its own.")
    return tuple(commands), rest


def exact_setting(name: str, text: str) -> Fraction:
    """The number that a setting's text writes, exactly.

    Raises
    ------
    InvalidTarget
        If it is no decimal number; the message names the setting as the client wrote it.
    """
    if _DECIMAL.fullmatch(text.strip()) is None:
        raise InvalidTarget(
            f"{name} must be a decimal number, not {shortened(text)!a}.",
            hint="Write it like 0.25 or 1e-3.",
        )
    return Fraction(text.strip())


def _words_of_one(sql: str, place: int) -> tuple[list[_Word], int]:
    """The words of one setting, and the place after the semicolons that end it."""
    words: list[_Word] = []
    while (place := _after_gap(sql, place)) < len(sql):
        found = _WORD.match(sql, place)
        # A letter or dollar sign before a quote gives the string other rules, where it may end
        # elsewhere; a comment in a comment is one more place to disagree about.
        is_prefixed = found is not None and found.lastgroup == "string" and _is_name_end(sql, place)
        if found is None or is_prefixed or found[0] == "$" or sql.startswith("/*", place):
            raise InvalidSql(
                f"The SQL cannot be read as words near: {shortened(sql[place : place + 80])}",
                hint="A quote or comment may be left open.",
            )
        place = found.end()
        if found[0] == ";":
            while sql.startswith(";", ahead := _after_gap(sql, place)):
                place = ahead + 1
            break
        words.append(_word(found))
        if len(words) > N_WORDS_MAX:
            raise TooLarge(f"A setting has more than {N_WORDS_MAX} words and signs.")
    return words, place


def _word(found: re.Match[str]) -> _Word:
    kind, text = found.lastgroup or "sign", found[0]
    if kind in ("string", "quoted"):
        text = text[1:-1].replace(text[0] * 2, text[0])
    return _Word(kind, text)


def _is_name_end(sql: str, place: int) -> bool:
    before = sql[place - 1 : place]
    return before.isalnum() or before in ("_", "$", "&")


def _after_gap(sql: str, place: int) -> int:
    gap = _GAP.match(sql, place)
    return place if gap is None else gap.end()


def _command(words: list[_Word]) -> Command:
    verb, words = words[0], words[1:]
    if verb.is_word("set"):
        return _set(words)
    if verb.is_word("reset"):
        if len(words) == 1 and words[0].is_word("all"):
            return ResetAll()
        name, rest = _name(words, "RESET")
        if rest:
            raise _malformed("RESET", rest)
        return Ignored() if name in IGNORED else Set(setting_named(name), None)
    name, rest = _name(words, "SHOW")
    if rest:
        raise _malformed("SHOW", rest)
    if name in IGNORED:
        raise UnsupportedSql(
            f"{name} is accepted from clients, has no effect, and so has no value to show.",
            hint=f"Settings here are {_listed()}.",
        )
    return Show(setting_named(name))


def _set(words: list[_Word]) -> Command:
    """What stands after SET."""
    if words and words[0].is_word("local"):
        raise UnsupportedSql(
            "SET LOCAL lasts for a transaction, and there are none here.",
            hint="SET alone lasts for the connection; OPTIONS(..) in a SELECT for one statement.",
        )
    is_session = bool(words) and words[0].is_word("session")
    if is_session and not (len(words) > 1 and words[1].is_word("characteristics")):
        words = words[1:]
    name, rest = _name(words, "SET")
    if name in IGNORED:
        return Ignored()
    setting = setting_named(name)
    if not rest or not (rest[0].is_sign("=") or rest[0].is_word("to")):
        raise _malformed("SET", rest)
    return Set(setting, _value(name, rest[1:]))


def _value(name: str, words: list[_Word]) -> Fraction | None:
    if len(words) == 1 and words[0].is_word("default"):
        return None
    sign = ""
    if words and words[0].is_sign("+", "-"):
        sign, words = words[0].text, words[1:]
    if len(words) != 1 or (sign and words[0].kind != "number"):
        raise InvalidTarget(
            f"{name} must be one number, or DEFAULT.", hint=f"Write SET {name} = 0.5."
        )
    return exact_setting(name, sign + words[0].text)


def _name(words: list[_Word], verb: str) -> tuple[str, list[_Word]]:
    """A dotted name in lower case, and the words after it."""
    for phrase in _PHRASES:
        if tuple(word.text.lower() for word in words[: len(phrase)]) == phrase:
            return " ".join(phrase), [] if verb == "SHOW" else words[len(phrase) :]
    parts: list[str] = []
    while words and words[0].kind in ("word", "quoted"):
        parts.append(words[0].text.lower())
        words = words[1:]
        if not (words and words[0].is_sign(".")):
            return ".".join(parts), words
        words = words[1:]
    raise _malformed(verb, words)


def setting_named(name: str) -> str:
    """The part of a setting's full name that is behind the dot.

    Raises
    ------
    UnknownName
        If there is no such setting.
    """
    setting = name.removeprefix(NAMESPACE)
    if name.startswith(NAMESPACE) and setting in SETTING_NAMES:
        return setting
    known = [NAMESPACE + each for each in SETTING_NAMES]
    raise UnknownName(
        f"There is no setting {shortened(name)!a}.",
        hint=suggestion(name, known) or f"Settings here are {_listed()}.",
    )


def _listed() -> str:
    return ", ".join(NAMESPACE + name for name in SETTING_NAMES)


def _malformed(verb: str, words: Iterable[_Word]) -> InvalidSql:
    near = shortened(" ".join(word.text for word in words)) or "the end"
    forms = {
        "SET": "Write SET tacit.half_width = 50.",
        "RESET": "Write RESET tacit.half_width, or RESET ALL.",
        "SHOW": "Write SHOW tacit.half_width.",
    }
    return InvalidSql(f"{verb} does not parse near {near}.", hint=forms[verb])
