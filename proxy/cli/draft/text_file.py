"""How `tacit init` reads a file of text: as it is told, or as the first line surely says.

Nothing is guessed from rows. What is not sure is asked for, in a refusal that names the option; and
a first line that may be somebody's row is not shown, neither in a draft nor in a message.
"""

import csv
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from cube.axis import NAME_LENGTH_MAX
from cube.refusals import ConfigurationInvalid
from proxy.sources.files import check_distinct
from proxy.sources.location import SourceLocation, default_format
from proxy.sources.text_format import (
    KINDS_BY_NAME,
    NOT_COMPRESSED,
    SAY_ENCODING,
    TextFormat,
    compression_of,
    decompressed,
    first_line,
    shown,
    what_file_is,
)

DELIMITERS: Final = ",;\t|"
MARKS: Final = ((b"\xef\xbb\xbf", "utf-8"), (b"\xff\xfe", "utf-16"), (b"\xfe\xff", "utf-16"))
ONE_NAME: Final = re.compile(r'[\w.-]+|"[^"]*"')
FOR_EXCEL: Final = re.compile(r'"?sep=.?"?', re.IGNORECASE)
HEADER: Final = (
    "Say --header if the first line holds the names of the columns. Say --no-header if it is a "
    "row: then columns are called column_1, column_2 and so on."
)

_MONTHS: Final = "jan|feb|mar|apr|may|mai|jun|jul|aug|sep|oct|okt|nov|dec|dez"
_VALUES: Final = (
    r"(?!.*[^\W\d_TZeE])(?=.*\d).*",  # digits, and at most the letters of numbers and moments
    r".*\d{5}.*",  # a key, a telephone number, a post code
    r".*@.*",  # an address
    r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}",
    rf"\d{{1,4}}[ ./-]*({_MONTHS})[a-z]*[ .,/-]*\d{{2,4}}.*",
    rf"({_MONTHS})[a-z]*[ .,/-]+\d{{1,4}}.*",
    r"true|false|yes|no|null|none|na|n/a|nan|-?inf|\?|\\n",
    r"[$€£¥].*|.*[$€£¥%]",
    r"#.*",
)
VALUE: Final = re.compile("|".join(f"(?:{one})" for one in _VALUES), re.IGNORECASE | re.DOTALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class ToldFormat:
    """What the owner said about a file of text; None for what is left to its first line."""

    delimiter: str | None = None
    decimal: str | None = None
    encoding: str | None = None
    header: bool | None = None

    @property
    def is_empty(self) -> bool:
        """Whether nothing was said."""
        return self == ToldFormat()


NOTHING_TOLD: Final = ToldFormat()


def said_format(path: Path, told: ToldFormat) -> TextFormat:
    """The form that a file has as it is told, and as its name and its first bytes and line say.

    Raises
    ------
    ConfigurationInvalid
        If it is no text, or not sure: then with the option that decides.
    """
    text = _told(path, told)
    compression = compression_of(path)
    known = what_file_is(path) if compression == NOT_COMPRESSED else None
    if known is not None:
        raise ConfigurationInvalid(f"{path} {known[0]}.", hint=known[1])
    if told.encoding is None:
        text = replace(text, encoding=_encoding(path, compression))
    try:
        line = first_line(path, compression, text.encoding, told.delimiter or DELIMITERS)
    except UnicodeError:
        raise ConfigurationInvalid(
            f"{path} is not text in {text.encoding}.",
            hint="Say --encoding, such as cp1252 (Windows), latin-1 or utf-16.",
        ) from None
    except csv.Error:
        raise ConfigurationInvalid(
            f"{path} has no line break in its first million characters.",
            hint="Each row is a line, and the first line holds the names of the columns.",
        ) from None
    if "\0" in line:
        raise ConfigurationInvalid(
            f"{path} holds zero bytes: it is not text, or it is text in UTF-16.",
            hint="Say --encoding utf-16-le if it is text, or utf-16-be.",
        )
    _check_text(path, line)
    if told.delimiter is None and default_format(path).delimiter == ",":
        text = replace(text, delimiter=_delimiter(path, line))
    return text


def _told(path: Path, told: ToldFormat) -> TextFormat:
    """The default form of a file, with what was said."""
    found = default_format(path)
    for key in ("delimiter", "decimal", "encoding", "header"):
        value = getattr(told, key)
        if value is not None:
            try:
                found = replace(found, **{key: value})
            except ValueError as error:
                raise ConfigurationInvalid(f"--{error}.") from None
    return found


def _encoding(path: Path, compression: str) -> str:
    """The encoding that a byte order mark says, or UTF-8."""
    with decompressed(path, compression) as stream:
        beginning = stream.read(4)
    return next((name for mark, name in MARKS if beginning.startswith(mark)), "utf-8")


def _check_text(path: Path, line: str) -> None:
    """Refuse what is surely no table of fields."""
    if not line.strip():
        raise ConfigurationInvalid(
            f"{path} has nothing in its first line.",
            hint="It should begin with the names of the columns. No line is skipped.",
        )
    begins = line.lstrip()[:2]
    if begins.startswith("{") or begins in {"[{", "[["}:
        way = KINDS_BY_NAME[".json"][1].format(name=path.name, stem=path.name.split(".")[0])
        raise ConfigurationInvalid(f"{path} holds JSON.", hint=way)
    if begins.startswith("<"):
        raise ConfigurationInvalid(
            f"{path} holds XML or HTML.",
            hint="Save it as CSV in UTF-8, in the program that wrote it.",
        )
    if FOR_EXCEL.fullmatch(line.strip()):
        raise ConfigurationInvalid(
            f"{path} begins with a line sep=, which is for Excel alone.",
            hint="Remove that line: the first line should hold the names of the columns.",
        )


def _delimiter(path: Path, line: str) -> str:
    """The one character that separates fields in a line."""
    outside = re.sub(r'"(?:[^"]|"")*"', '""', line, flags=re.DOTALL)
    found = [one for one in DELIMITERS if one in outside]
    if len(found) == 1:
        return found[0]
    if not found and ONE_NAME.fullmatch(line):
        return ","
    if found:
        what = f"could have its fields separated by {' or '.join(map(shown, found))}"
    else:
        what = "has no comma, semicolon, tab or bar in its first line"
    raise ConfigurationInvalid(
        f"{path} {what}.",
        hint=(
            "Say which character separates fields, as in --delimiter ';' (--delimiter tab for a "
            "tab). For a single column, name any character that does not occur. No line is "
            "skipped: the first line should hold the names of the columns."
        ),
    )


def check_names(path: Path, names: Sequence[str], told: ToldFormat) -> None:
    """Refuse the fields of a first line that may be a row, unless it was said that they are names.

    Raises
    ------
    ConfigurationInvalid
    """
    check_distinct(str(path), names)
    if told.header is not None:
        return
    if any(_is_no_name(name, is_first=not place) for place, name in enumerate(names)):
        raise ConfigurationInvalid(
            f"The first line of {path} may be a row: one of its fields looks like a number, a "
            "date or another value, not like a column's name.",
            hint=HEADER,
        )


def _is_no_name(name: str, *, is_first: bool) -> bool:
    """Whether a field may be a value. An index is often written without a name, as the first."""
    if not name.strip():
        return not is_first
    return (
        len(name) > NAME_LENGTH_MAX
        or not name.isprintable()
        or VALUE.fullmatch(name.strip()) is not None
    )


def check_told_apart(
    path: Path, told: ToldFormat, *, has_other_type: bool, comes_again: bool
) -> None:
    """Refuse a first line that nothing tells from the rows, unless it was said what it is.

    Parameters
    ----------
    has_other_type : bool
        Whether some column is of numbers, dates or truth values, which a name is not.
    comes_again : bool
        Whether a field of the first line is among the values of its column.
    """
    if told.header is not None or (has_other_type and not comes_again):
        return
    why = (
        "one of its fields occurs again in the rows"
        if comes_again
        else "all columns are text, so nothing distinguishes it from the rows"
    )
    raise ConfigurationInvalid(f"The first line of {path} may be a row: {why}.", hint=HEADER)


def ask_for_decimal(location: SourceLocation) -> ConfigurationInvalid:
    """The refusal of numbers with commas, which may be decimals or thousands."""
    return ConfigurationInvalid(
        f"{location.path} has a column of numbers with commas.",
        hint="Say --decimal ',' if 1,5 is one and a half, or --decimal '.' to read it as text.",
    )


def not_read(location: SourceLocation, wrong: tuple[str, str] | None) -> ConfigurationInvalid:
    """The refusal of a file that cannot be read to its end as it is told."""
    if wrong is None:
        return ConfigurationInvalid(
            f"{location.path} cannot be read as {location.kind}.", hint=SAY_ENCODING
        )
    return ConfigurationInvalid(f"{location.path} {wrong[0]}.", hint=wrong[1])
