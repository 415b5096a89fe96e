"""How a text file of rows is written: its delimiter, decimal sign, encoding, and its first line.

The owner declares the format of a file. Otherwise its name decides: commas, or tabs in a `.tsv`
file, points, UTF-8 and a line of names. The format is never taken from the rows.
"""

import codecs
import csv
import io
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TextIO

import pyarrow as pa

UTF8: Final = "utf-8"
DECIMALS: Final = (".", ",")
NOT_COMPRESSED: Final = "none"
COMPRESSIONS: Final = {".gz": "gzip", ".zst": "zstd"}
UNFIT: Final = frozenset("\"\n\r\\ \0'") - {" "}  # as a delimiter
SAMPLE: Final = "az,;1"  # what an encoding of text keeps
FIRST_BYTES: Final = 2**14
BYTES_AT_ONCE: Final = 2**20
HEADER_CHARACTERS_MAX: Final = 2**20
MARK: Final = "\ufeff"  # a byte order mark, once it is decoded

IS_PARQUET: Final = "is a Parquet file"
# What files begin with that are not text, and the way to make them readable.
KINDS_BY_BEGINNING: Final = (
    (b"\x1f\x8b", "is compressed with gzip", "Rename it so that its name ends in .gz."),
    (b"\x28\xb5\x2f\xfd", "is compressed with zstd", "Rename it so that its name ends in .zst."),
    (b"BZh", "is compressed with bzip2", "Decompress it, with `bunzip2`, or compress it as .gz."),
    (b"\xfd7zXZ", "is compressed with xz", "Decompress it, with `unxz`, or compress it as .gz."),
    (
        b"PK\x03\x04",
        "is a zip archive or an Excel workbook",
        "Unzip it; in a spreadsheet program, save the sheet as CSV in UTF-8.",
    ),
    (b"\xd0\xcf\x11\xe0", "is an Excel workbook", "Save the sheet as CSV in UTF-8."),
    (b"PAR1", IS_PARQUET, "Rename it so that its name ends in .parquet."),
    (b"SQLite format 3", "is an SQLite database", "Export the table as CSV."),
)
# What names end in that cannot be read, what such files are, and the way to make them readable.
SAY_ENCODING: Final = (
    'Say its encoding, as in encoding = "cp1252" (Windows), "latin-1" or "utf-16"; `tacit init` '
    "takes --encoding."
)
OTHER_DELIMITER: Final = (
    "Its fields are read as separated by {delimiter}: say another delimiter if that is wrong. No "
    "line is skipped: remove those that are not rows, such as titles and totals, and put fields "
    "that hold the delimiter in double quotes."
)
EXPORT: Final = "Export the table as CSV in UTF-8, or as Parquet."
TO_PARQUET: Final = (
    'DuckDB converts it: python -c "import duckdb; '
    "duckdb.sql(\\\"COPY (FROM read_json('{name}')) TO '{stem}.parquet'\\\")\""
)
KINDS_BY_NAME: Final = {
    **dict.fromkeys((".json", ".jsonl", ".ndjson"), ("JSON", TO_PARQUET)),
    **dict.fromkeys(
        (".xlsx", ".xls", ".xlsm", ".ods", ".numbers"),
        ("a spreadsheet", "Save the sheet as CSV in UTF-8, in the program that wrote it."),
    ),
    **dict.fromkeys(
        (".sas7bdat", ".xpt", ".dta", ".sav", ".rds", ".rdata"), ("a statistics file", EXPORT)
    ),
    **dict.fromkeys((".db", ".sqlite", ".sqlite3", ".mdb", ".accdb"), ("a database", EXPORT)),
    **dict.fromkeys(
        (".feather", ".arrow", ".avro", ".orc", ".pkl", ".pickle"), ("a binary table", EXPORT)
    ),
    **dict.fromkeys(
        (".zip", ".7z", ".bz2", ".xz", ".tar", ".tgz", ".rar"),
        ("an archive", "Unpack it, or compress the .csv file in it as .csv.gz or .csv.zst."),
    ),
    **dict.fromkeys(
        (".txt", ".dat", ".data", ".psv", ".tab", ".asc", ""),
        (
            "text of an unknown form",
            "If each line is a row of fields, rename it to .csv and say its delimiter.",
        ),
    ),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class TextFormat:
    r"""How a file of text is written.

    Parameters
    ----------
    delimiter : str
        The character between fields: ``,``, ``;``, a tab, ``|`` or another.
    decimal : str
        The sign before the decimals of a number: a point or a comma.
    encoding : str
        As Python names it.
    header : bool
        Whether its first line holds the names of its columns; otherwise they are column_1,
        column_2 and so on.

    Examples
    --------
    >>> TextFormat(delimiter="::")
    Traceback (most recent call last):
    ValueError: delimiter should be one character, such as ";", ",", "|" or "\t"
    >>> TextFormat(encoding="Windows-1252").encoding
    'cp1252'
    """

    delimiter: str = ","
    decimal: str = "."
    encoding: str = UTF8
    header: bool = True

    def __post_init__(self) -> None:
        if len(self.delimiter) != 1 or self.delimiter in UNFIT or self.delimiter.isalnum():
            raise ValueError(r'delimiter should be one character, such as ";", ",", "|" or "\t"')
        if self.decimal not in DECIMALS:
            raise ValueError('decimal should be "." or ","')
        object.__setattr__(self, "encoding", _known_encoding(self.encoding))

    def names(self, fields: list[str]) -> list[str]:
        """The names of the columns of a file whose first line has these fields."""
        if self.header:
            return fields
        return [f"column_{place}" for place in range(1, len(fields) + 1)]


def _known_encoding(name: str) -> str:
    try:
        found = codecs.lookup(name).name
        is_of_text = SAMPLE.encode(found).decode(found) == SAMPLE
    except (LookupError, ValueError, UnicodeError):
        is_of_text, found = False, ""
    if not is_of_text:
        raise ValueError('encoding should name one, such as "utf-8", "cp1252" or "utf-16"')
    return UTF8 if found in {"utf-8-sig", "ascii"} else found


def compression_of(path: Path) -> str:
    """How a file is compressed, as its name says; ``none`` if it is not."""
    return COMPRESSIONS.get(path.suffix.lower(), NOT_COMPRESSED)


def inner_suffix(path: Path) -> str:
    """The suffix that says what a file holds, in lower case, without that of its compression.

    >>> inner_suffix(Path("a/people.CSV.gz")), inner_suffix(Path("people.parquet"))
    ('.csv', '.parquet')
    """
    is_compressed = path.suffix.lower() in COMPRESSIONS
    return (path.with_suffix("") if is_compressed else path).suffix.lower()


def unknown_kind(path: Path, known: str) -> str:
    """What a file is that cannot be read, by its name, and what to do."""
    what, way = KINDS_BY_NAME.get(inner_suffix(path), ("", ""))
    if not what:
        return f"a source must be a {known} file"
    way = way.format(name=path.name, stem=path.name.split(".")[0])
    return f"is {what}, and a source must be a {known} file. {way.removesuffix('.')}"


@contextmanager
def decompressed(path: Path, compression: str) -> Iterator[pa.NativeFile]:
    """The bytes of a file, decompressed.

    Raises
    ------
    OSError
        If it cannot be read, or is not compressed so.
    """
    with pa.OSFile(str(path), "rb") as raw:
        if compression == NOT_COMPRESSED:
            yield raw
        else:
            with pa.CompressedInputStream(raw, compression) as stream:
                yield stream


@contextmanager
def text_of(path: Path, compression: str, encoding: str) -> Iterator[TextIO]:
    """The text of a file, with its line ends, and without a byte order mark."""
    with decompressed(path, compression) as stream:
        yield io.TextIOWrapper(stream, encoding=_without_mark(encoding), newline="")


def first_fields(path: Path, compression: str, text: TextFormat) -> list[str]:
    """The fields of the first line of a file; none if it is empty.

    Nothing is skipped, and no later line is looked at, unless a quoted field goes on there.

    Raises
    ------
    OSError
        If it cannot be read.
    UnicodeError, csv.Error
        If it is not text, or not of that form.
    """
    line = first_line(path, compression, text.encoding, text.delimiter)
    return next(csv.reader([line], delimiter=text.delimiter, strict=True), [])


def first_line(path: Path, compression: str, encoding: str, delimiters: str) -> str:
    """The first line of a file, without its end; a line ends where no quoted field goes on.

    Parameters
    ----------
    delimiters : str
        The characters after which a field may begin with a quote.
    """
    decoder = codecs.getincrementaldecoder(_without_mark(encoding))()
    found, size, end = "", FIRST_BYTES, None
    with decompressed(path, compression) as stream:
        while len(found) <= HEADER_CHARACTERS_MAX:
            chunk = stream.read(size)
            found += decoder.decode(chunk, final=not chunk)
            size = BYTES_AT_ONCE
            end = _line_end(found.removeprefix(MARK), delimiters)
            if end is not None or not chunk:
                break
        else:
            raise csv.Error("the first line is too long")
    return found.removeprefix(MARK)[:end]


def _line_end(text: str, delimiters: str) -> int | None:
    """Where the first line of a text ends; None if it goes on."""
    is_quoted, at_start = False, True
    for place, character in enumerate(text):
        if character == '"':
            # The second of two quotes inside of a field opens what the first has closed.
            is_quoted = not is_quoted and (at_start or text[place - 1] == '"')
        elif character in "\r\n" and not is_quoted:
            return place
        at_start = not is_quoted and character in delimiters
    return None


def _without_mark(encoding: str) -> str:
    return "utf-8-sig" if encoding == UTF8 else encoding


def what_file_is(path: Path) -> tuple[str, str] | None:
    """What a file is that is no text, by its first bytes, and what to do; None if none is known."""
    with path.open("rb") as file:
        beginning = file.read(16)
    return next(
        ((what, way) for magic, what, way in KINDS_BY_BEGINNING if beginning.startswith(magic)),
        None,
    )


def fault_of(path: Path, text: TextFormat) -> tuple[str, str] | None:
    """What is wrong with a file that could not be read as it is said to be, and what to do.

    It looks at the whole file, and reveals nothing of its contents, nor where the problem is. None
    if nothing seems to be wrong.
    """
    compression = compression_of(path)
    if compression == NOT_COMPRESSED and (known := what_file_is(path)) is not None:
        return known
    try:
        with decompressed(path, compression) as stream:
            while stream.read(BYTES_AT_ONCE):
                pass
    except OSError:
        return f"is not a {compression} file, or is cut short", "Compress it again."
    try:
        with text_of(path, compression, text.encoding) as lines:
            return _fault_in(lines, text)
    except UnicodeError:
        return (
            f"is not text in {text.encoding}",
            SAY_ENCODING,
        )


def _fault_in(lines: TextIO, text: TextFormat) -> tuple[str, str] | None:
    n_fields, ends = 0, set[str]()

    def seen() -> Iterator[str]:
        for line in lines:
            ends.add(line[len(line.rstrip("\r\n")) :])
            yield line

    try:
        for fields in csv.reader(seen(), delimiter=text.delimiter, strict=True):
            n_fields = n_fields or len(fields)
            if fields and len(fields) != n_fields:
                what = "has lines with more fields than its first line, or with fewer"
                return what, OTHER_DELIMITER.format(delimiter=shown(text.delimiter))
    except csv.Error:
        return (
            "has a double quote that begins or ends inside of a field",
            "Quote a field as a whole, and write a quote inside it twice.",
        )
    if not n_fields:
        return "has no lines", "A file of text begins with a line of names."
    if len(ends - {""}) > 1:
        return (
            "has different line endings",
            "Use the same line ending everywhere, as `dos2unix` does.",
        )
    return None


def shown(delimiter: str) -> str:
    """A delimiter in a message."""
    return {"\t": "tabs", " ": "blanks"}.get(delimiter, f'"{delimiter}"')
