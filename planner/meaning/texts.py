r"""Writes functions of texts for DuckDB, and translates patterns to match texts with.

Patterns of LIKE, SIMILAR TO and regular expressions as RE2 has them, matched in linear time.

A pattern of LIKE has a backslash as its escape unless ESCAPE names another. Of regular
expressions those are written that mean the same in both; what PostgreSQL has alone (\y, look-
ahead, references to groups) is refused. Where a part of the text is taken and not only a match is
sought, the longest match must be the first that RE2 finds: so groups with a quantifier and
alternatives are refused then.

Positions and lengths are in characters from 1, and what lies before the first is cut off as
PostgreSQL cuts it: SUBSTRING('abc', -1, 3) is 'a'. Texts are compared by their code points.
"""

import re
from collections.abc import Sequence
from typing import Final

from sqlglot import exp

from planner.meaning.casts import as_text
from planner.meaning.types import BOOLEAN, INT4, OTHER, TEXT, Kind, SqlType
from planner.meaning.written import Call, Value, Writer, as_it_was, read_as, written
from planner.sql import constant_value, unsupported

_SPECIAL: Final = frozenset(r"\.+*?()|[]{}^$")
_CLASSES: Final = {
    "alpha": r"\pL",
    "digit": r"\p{Nd}",
    "alnum": r"\pL\p{Nd}",
    "upper": r"\p{Lu}",
    "lower": r"\p{Ll}",
    "space": r"\s\v",
    "blank": r" \t",
    "punct": r"!-/:-@\[-`{-~",
    "xdigit": "0-9A-Fa-f",
}
_SHORTHANDS: Final = {"d": r"\p{Nd}", "w": r"\pL\p{Nd}_", "s": r"\s\v"}
_LETTERS: Final = {"n": r"\n", "t": r"\t", "r": r"\r", "f": r"\f", "v": r"\v"}
_BOUND: Final = re.compile(r"\{[0-9]{1,3}(,[0-9]{0,3})?\}", re.ASCII)


def of_like(pattern: str, escape: str, like: exp.Expr) -> str:
    r"""The RE2 text that matches what a LIKE pattern matches.

    >>> print(of_like("a.b%", "!", exp.null()))
    a\.b.*
    """
    if len(escape) > 1:
        raise unsupported(
            like,
            "has an escape of more than one character",
            "Use one character that is not in the text.",
        )
    pieces: list[str] = []
    characters = iter(pattern)
    for character in characters:
        if escape and character == escape:
            following = next(characters, None)
            if following is None:
                raise unsupported(
                    like,
                    "ends with its escape character",
                    "To match the character itself, write it twice.",
                )
            pieces.append(literally(following))
        elif character == "%":
            pieces.append(".*")
        else:
            pieces.append("." if character == "_" else literally(character))
    return "".join(pieces)


def literally(character: str) -> str:
    """A character that stands for itself."""
    return f"\\{character}" if character in _SPECIAL else character


def of_similar(pattern: str, escape: str, node: exp.Expr) -> str:  # noqa: C901, PLR0912 - signs
    """The RE2 text of a SIMILAR TO pattern.

    Raises
    ------
    UnsupportedSql
    """
    pieces: list[str] = []
    place, in_class = 0, False
    while place < len(pattern):
        character = pattern[place]
        if escape and character == escape:
            if place + 1 == len(pattern):
                raise unsupported(
                    node,
                    "ends with its escape character",
                    "To match the character itself, write it twice.",
                )
            place += 1
            pieces.append(literally(pattern[place]))
        elif in_class:
            in_class = character != "]"
            pieces.append(f"\\{character}" if character in "\\[" else character)
        elif character == "[":
            in_class = True
            pieces.append("[")
            if pattern[place + 1 : place + 2] == "^":
                pieces.append("^")
                place += 1
            if pattern[place + 1 : place + 3] == "[:":
                raise unsupported(
                    node,
                    "has a named class of characters, which is not supported",
                    "List the characters instead.",
                )
        elif character in "%_":
            pieces.append(".*" if character == "%" else ".")
        elif character == "(":
            pieces.append("(?:")
        elif character in "|*+?)":
            pieces.append(character)
        elif character == "{":
            bound = _BOUND.match(pattern, place)
            if bound is None:
                raise unsupported(
                    node, "has a { that does not begin a number of repetitions", r"Write \{."
                )
            pieces.append(bound[0])
            place += len(bound[0]) - 1
        else:
            pieces.append(literally(character))
        place += 1
    if in_class:
        raise unsupported(node, "has a [ without a closing ]", "Add the ].")
    return f"(?:{''.join(pieces)})"


def of_regular(pattern: str, node: exp.Expr, *, takes_part: bool = False) -> str:
    r"""The RE2 text of a regular expression of PostgreSQL.

    Parameters
    ----------
    pattern : str
    node : Expr
        The expression it stands in.
    takes_part : bool
        Whether the match itself is wanted, and not only whether there is one.

    Raises
    ------
    UnsupportedSql
        If RE2 has no such expression, or it would mean something else.
    """
    reader = _Regular(pattern, node, takes_part=takes_part)
    return reader.read()


class _Regular:
    def __init__(self, pattern: str, node: exp.Expr, *, takes_part: bool) -> None:
        self._pattern = pattern
        self._node = node
        self._takes_part = takes_part
        self._place = 0
        self._pieces: list[str] = []
        self._depth = 0

    def read(self) -> str:
        if self._pattern.startswith("***") or self._pattern.startswith("(?"):
            raise self._refused(self._pattern[:4])
        while self._place < len(self._pattern):
            self._next()
        if self._depth:
            raise self._refused("(")
        return "".join(self._pieces)

    def _next(self) -> None:
        character = self._pattern[self._place]
        if character == "\\":
            self._pieces.append(self._escaped(in_class=False))
        elif character == "[":
            self._pieces.append(self._class())
        elif character == "(":
            self._open()
        elif character == ")":
            self._close()
        elif character in "*+?{":
            self._pieces.append(self._quantifier())
        elif character == "|" and self._takes_part:
            raise self._refused("|")
        elif character == "}":
            self._add(r"\}")
        elif character == "]":
            self._add(r"\]")
        else:
            self._add(character)

    def _add(self, piece: str) -> None:
        self._pieces.append(piece)
        self._place += 1

    def _open(self) -> None:
        self._depth += 1
        if self._pattern.startswith("(?:", self._place):
            self._pieces.append("(?:")
            self._place += 3
        elif self._pattern.startswith("(?", self._place):
            raise self._refused(self._pattern[self._place : self._place + 3])
        else:
            self._add("(")

    def _close(self) -> None:
        if not self._depth:
            raise self._refused(")")
        self._depth -= 1
        self._add(")")
        if self._takes_part and self._pattern[self._place : self._place + 1] in set("*+?{"):
            raise self._refused(self._pattern[self._place - 1 : self._place + 1])

    def _quantifier(self) -> str:
        before = self._pattern[self._place - 1 : self._place]
        is_first = self._place == 0 or (
            before in "(|^" and self._pieces[-1] in ("(", "(?:", "|", "^")
        )
        if is_first:
            raise self._refused(self._pattern[self._place])
        if self._pattern[self._place] == "{":
            bound = _BOUND.match(self._pattern, self._place)
            if bound is None:
                raise self._refused("{")
            found = bound[0]
        else:
            found = self._pattern[self._place]
        self._place += len(found)
        after = self._pattern[self._place : self._place + 1]
        if (after and after in "*+{") or (after == "?" and self._takes_part):
            raise self._refused(found + after)
        if after == "?":
            self._place += 1
        return found

    def _escaped(self, *, in_class: bool) -> str:
        following = self._pattern[self._place + 1 : self._place + 2]
        self._place += 2
        if following.lower() in _SHORTHANDS:
            inside = _SHORTHANDS[following.lower()]
            if following.islower():
                return inside if in_class else f"[{inside}]"
            if not in_class:
                return f"[^{inside}]"
        elif following in _LETTERS:
            return _LETTERS[following]
        elif following and not following.isalnum():
            return f"\\{following}" if following.isascii() else following
        elif following == "A" and not in_class:
            return r"\A"
        elif following == "Z" and not in_class:
            return r"\z"
        raise self._refused("\\" + following)

    def _class(self) -> str:
        pieces = ["["]
        self._place += 1
        if self._pattern.startswith("^", self._place):
            pieces.append("^")
            self._place += 1
        is_first = True
        while True:
            character = self._pattern[self._place : self._place + 1]
            if not character:
                raise self._refused("[")
            if character == "]" and not is_first:
                self._place += 1
                return "".join([*pieces, "]"])
            is_first = False
            if character == "\\":
                pieces.append(self._escaped(in_class=True))
            elif character == "[":
                pieces.append(self._named_class())
            else:
                pieces.append(f"\\{character}" if character in "]&~|" else character)
                self._place += 1

    def _named_class(self) -> str:
        match = re.match(r"\[:([a-z]+):\]", self._pattern[self._place :])
        if match is None or match[1] not in _CLASSES:
            raise self._refused(self._pattern[self._place : self._place + 3])
        self._place += len(match[0])
        return _CLASSES[match[1]]

    def _refused(self, sign: str) -> Exception:
        return unsupported(
            self._node,
            f"has {sign!a} in its regular expression, which is not supported here",
            "Letters, ., [..], ^, $ and quantifiers are supported. Groups and | are supported "
            "only where a match is searched for.",
        )


_FROM_1: Final = "CASE WHEN {0} < 1 THEN 1 ELSE CAST({0} AS BIGINT) END"
# A sharp s has no capital in PostgreSQL; in DuckDB it has.
UPPER: Final = "replace(upper(replace({0}, 'ß', chr(1))), chr(1), 'ß')"
# By code points; DuckDB's own keeps letters and their accents together.
REVERSED: Final = (
    "list_transform([{0}], LAMBDA x: CASE WHEN x IS NOT NULL THEN array_to_string(list_transform("
    "range(length(x), 0, -1), LAMBDA place: substr(x, place, 1)), '') END)[1]"
)
N_REPEATED_MAX: Final = 10_000  # characters that a filled or repeated text is made of


def text_function(template: str, *names: str, gives: SqlType = TEXT) -> Writer:
    """A function of texts alone; the first is `this`."""

    def write(call: Call) -> Value:
        parts = [call.text(call.value(name)) for name in ("this", *names)]
        return call.sql(template, gives, *parts)

    return write


def whole(value: Value) -> Value:
    """A part that has to be a whole number."""
    value = read_as(value, INT4)
    is_integer = value.type.is_integer and not value.type.is_asked
    if not is_integer and value.type.kind is not Kind.UNKNOWN:
        raise unsupported(value.node, "is not a 32-bit integer", "Cast it, as in x::int.")
    return value


def write_concat(call: Call) -> Value:
    """CONCAT(..): NULLs are left out."""
    parts = [_shown(call, value) for value in call.values()]
    template = ", ".join(f"{{{place}}}" for place in range(len(parts)))
    return call.sql(f"concat({template})", TEXT, *parts)


def write_concat_ws(call: Call) -> Value:
    """CONCAT_WS(separator, ..): NULLs are left out."""
    separator, *others = call.values()
    parts = [call.text(separator), *(_shown(call, value) for value in others)]
    template = ", ".join(f"{{{place}}}" for place in range(len(parts)))
    return call.sql(f"concat_ws({template})", TEXT, *parts)


def _shown(call: Call, value: Value) -> Value:
    """A value as CONCAT shows it: booleans in one letter."""
    if value.type.kind is Kind.BOOLEAN:
        return call.sql("left(CAST({0} AS VARCHAR), 1)", TEXT, value)
    return as_text(Call(value.node, call.type_of), value)


def write_joined(call: Call) -> Value:
    """``||``; one of its sides is a text."""
    one, other = call.value("this"), call.value("expression")
    kinds = {one.type.kind, other.type.kind}
    if Kind.OTHER in kinds:
        return call.kept(OTHER)
    if not kinds & {Kind.TEXT, Kind.LITERAL, Kind.UNKNOWN}:
        raise call.refused(
            "joins two values and neither is a text", "Cast one of them, as in x::text."
        )
    parts = [as_text(Call(value.node, call.type_of), value) for value in (one, other)]
    return call.sql("({0} || {1})", TEXT, *parts)


def write_substring(call: Call) -> Value:
    """SUBSTRING(text, start, length), and SUBSTRING(text FROM pattern)."""
    text, start, length = call.text(call.value()), call.maybe("start"), call.maybe("length")
    if start is not None and start.is_text_constant and length is None:
        return _matched(call, text, start)
    first = Value(exp.Literal.number(1), INT4) if start is None else whole(start)
    known = constant_value(as_it_was(first.node))
    if length is None:
        if known is not None:
            return call.sql(f"substr({{0}}, {max(int(known), 1)})", TEXT, text)
        return call.sql(f"substr({{0}}, {_FROM_1.format('{1}')})", TEXT, text, first)
    length = whole(length)
    size = constant_value(as_it_was(length.node))
    if size is not None and size < 0:
        raise call.refused("has a negative length", "Lengths are 0 or more.")
    if known is not None and size is not None:
        end = int(known) + int(size)
        begin = max(int(known), 1)
        return call.sql(f"substr({{0}}, {begin}, {max(end - begin, 0)})", TEXT, text)
    first_place = _FROM_1.format("{1}")
    template = (
        "CASE WHEN {2} < 0 THEN error('negative substring length not allowed') ELSE "
        f"substr({{0}}, {first_place}, "
        f"greatest(CAST({{1}} AS BIGINT) + {{2}} - {first_place}, 0)) END"
    )
    return call.sql(template, TEXT, text, first, length)


def _matched(call: Call, text: Value, pattern: Value) -> Value:
    """What a regular expression matches, or its first group; NULL of no match."""
    found = of_regular(pattern.node.unnest().name, call.node, takes_part=True)
    group = 1 if _has_group(found) else 0
    quoted = _quoted(f"(?s){found}")
    extracted = f"regexp_extract({{0}}, {quoted}, {group})"
    template = f"CASE WHEN regexp_matches({{0}}, {quoted}) THEN {extracted} END"
    return call.sql(template, TEXT, text)


def _has_group(pattern: str) -> bool:
    plain = pattern.replace(r"\\", "").replace(r"\(", "").replace("(?:", "")
    return "(" in plain


def _quoted(text: str) -> str:
    """A text between quotes, in a template."""
    return "'" + text.replace("'", "''").replace("{", "{{").replace("}", "}}") + "'"


def write_left(call: Call) -> Value:
    """LEFT(text, n): without the last -n, if that is negative."""
    return call.sql(
        "left({0}, {1})", TEXT, call.text(call.value()), whole(call.value("expression"))
    )


def write_right(call: Call) -> Value:
    """RIGHT(text, n): without the first -n, if that is negative; all of it for the least integer.

    PostgreSQL has no integer -n of the least one. The masked sum is that of 32 bits.
    """
    template = "right({0}, ((CAST({1} AS BIGINT) + 2147483647) & 4294967295) - 2147483647)"
    return call.sql(template, TEXT, call.text(call.value()), whole(call.value("expression")))


def write_pad(call: Call) -> Value:
    """LPAD and RPAD: cut at the end to the length, filled up with blanks or another text."""
    text, size = call.text(call.value()), whole(call.value("expression"))
    fill = call.maybe("fill_pattern")
    filler = " " if fill is None else call.constant(fill)
    n_characters = _count(call, size)
    if not filler:
        return call.sql(f"left({{0}}, {n_characters})", TEXT, text)
    name = "lpad" if call.node.args.get("is_left") else "rpad"
    return call.sql(f"{name}({{0}}, {n_characters}, {_quoted(filler)})", TEXT, text)


def _count(call: Call, value: Value) -> int:
    """A constant number of characters or times, within what is made at once."""
    number = constant_value(as_it_was(value.node))
    if number is None or number > N_REPEATED_MAX:
        raise call.refused(
            f"needs a constant length of at most {N_REPEATED_MAX}",
            "Write a smaller constant.",
        )
    return max(int(number), 0)


def write_repeat(call: Call) -> Value:
    """REPEAT(text, n)."""
    times = _count(call, whole(call.value("times")))
    return call.sql(f"repeat({{0}}, {times})", TEXT, call.text(call.value()))


def write_trim(call: Call) -> Value:
    """TRIM, LTRIM, RTRIM and BTRIM, of blanks or of a set of characters."""
    name = {"LEADING": "ltrim", "TRAILING": "rtrim"}.get(
        str(call.node.args.get("position")), "trim"
    )
    text, characters = call.text(call.value()), call.maybe("expression")
    if characters is None:
        return call.sql(f"{name}({{0}}, ' ')", TEXT, text)
    return call.sql(f"{name}({{0}}, {{1}})", TEXT, text, call.text(characters))


def write_split_part(call: Call) -> Value:
    """SPLIT_PART(text, delimiter, n): from the end, if n is negative."""
    text, delimiter = call.text(call.value()), call.text(call.value("delimiter"))
    place = whole(call.value("part_index"))
    known = constant_value(as_it_was(place.node))
    if known is None or known == 0:
        raise call.refused("needs a constant position other than 0", "Positions begin at 1.")
    template = (
        f"CASE WHEN {{1}} = '' THEN CASE WHEN {int(known)} IN (1, -1) THEN {{0}} ELSE '' END "
        f"ELSE split_part({{0}}, {{1}}, {int(known)}) END"
    )
    return call.sql(template, TEXT, text, delimiter)


def write_initcap(call: Call) -> Value:
    """INITCAP(text): a word is what is made of letters and digits."""
    template = (
        r"list_reduce(list_transform(regexp_extract_all({0}, '[\pL\pN]+|[^\pL\pN]+'), "
        f"LAMBDA word: {UPPER.format('left(word, 1)')} || lower(substr(word, 2))), "
        "LAMBDA a, b: a || b, '')"
    )
    return call.sql(template, TEXT, call.text(call.value()))


def write_overlay(call: Call) -> Value:
    """OVERLAY(text PLACING other FROM start FOR length)."""
    text, other = call.text(call.value()), call.text(call.value("expression"))
    start, length = whole(call.value("from_")), call.maybe("for_")
    known = constant_value(as_it_was(start.node))
    if known is not None and known < 1:
        raise call.refused("starts before the first character", "Positions begin at 1.")
    size = (
        Value(written(call.node, "length({0})", other.node), INT4)
        if length is None
        else whole(length)
    )
    template = (
        "(left({0}, CAST({2} AS BIGINT) - 1) || {1} || "
        "substr({0}, CASE WHEN {2} + {3} < 1 THEN 1 ELSE CAST({2} AS BIGINT) + {3} END))"
    )
    return call.sql(template, TEXT, text, other, start, size)


def write_translate(call: Call) -> Value:
    """TRANSLATE(text, from, to), of two literals."""
    text = call.text(call.value())
    one, other = call.constant(call.value("from_")), call.constant(call.value("to"))
    seen: dict[str, str] = {}
    for place, character in enumerate(one):
        seen.setdefault(character, other[place] if place < len(other) else "")
    kept = sorted(seen, key=lambda character: not seen[character])  # what is left out comes last
    source, target = "".join(kept), "".join(seen[character] for character in kept)
    return call.sql(f"translate({{0}}, {_quoted(source)}, {_quoted(target)})", TEXT, text)


def write_replace(call: Call) -> Value:
    """REPLACE(text, from, to)."""
    put = call.maybe("replacement") or Value(exp.Literal.string(""), TEXT)
    parts = [call.text(call.value()), call.text(call.value("expression")), call.text(put)]
    return call.sql("CASE WHEN {1} = '' THEN {0} ELSE replace({0}, {1}, {2}) END", TEXT, *parts)


def write_chr(call: Call) -> Value:
    """CHR(n)."""
    (number,) = call.values()
    known = constant_value(as_it_was(whole(number).node))
    if known is not None and not 1 <= known <= 0x10FFFF:  # noqa: PLR2004 - the last code point
        raise call.refused("is not the code of a character", "CHR(65) is A.")
    template = (
        "CASE WHEN {0} < 1 THEN error('CHR of no character') ELSE chr(CAST({0} AS INTEGER)) END"
    )
    return call.sql(template, TEXT, number)


def write_ascii(call: Call) -> Value:
    """ASCII(text): 0 of an empty one."""
    return call.sql("CASE WHEN {0} = '' THEN 0 ELSE ord({0}) END", INT4, call.text(call.value()))


def write_position(call: Call) -> Value:
    """STRPOS and POSITION."""
    _refuse_more(call, "position", "occurrence")
    parts = [call.text(call.value()), call.text(call.value("substr"))]
    return call.sql("CAST(strpos({0}, {1}) AS INTEGER)", INT4, *parts)


def _refuse_more(call: Call, *names: str) -> None:
    """Refuse arguments of other dialects, which would be passed over."""
    if any(isinstance(call.node.args.get(name), exp.Expr) for name in names):
        raise call.refused("has too many arguments", "Leave out the last ones.")


def write_length(call: Call) -> Value:
    """LENGTH(text), in characters."""
    _refuse_more(call, "encoding")
    return call.sql("CAST(length({0}) AS INTEGER)", INT4, call.text(call.value()))


def write_like(call: Call) -> Value:
    """LIKE and ILIKE; with a literal pattern, by a regular expression."""
    escape = "\\"
    if isinstance(call.node.parent, exp.Escape):
        character = call.node.parent.expression
        escape = character.name if isinstance(character, exp.Literal) else escape
    return _like(call, escape)


def _like(call: Call, escape: str) -> Value:
    text, pattern = call.text(call.value()), call.text(call.value("expression"))
    if not pattern.is_text_constant:  # which only the catalog lets through
        name = "ilike_escape" if isinstance(call.node, exp.ILike) else "like_escape"
        template = f"{name}({{0}}, {{1}}, {_quoted(escape)})"
        return call.sql(_negated(call, template), BOOLEAN, text, pattern)
    found = of_like(pattern.node.unnest().name, escape, call.node)
    flags = "si" if isinstance(call.node, exp.ILike) else "s"
    template = f"regexp_full_match({{0}}, {_quoted(found)}, '{flags}')"
    return call.sql(_negated(call, template), BOOLEAN, text)


def _negated(call: Call, template: str) -> str:
    return f"(NOT {template})" if call.node.args.get("negate") else template


def write_escape(call: Call) -> Value:
    """LIKE .. ESCAPE, which the match looks at itself."""
    return call.value()


def write_similar(call: Call) -> Value:
    """SIMILAR TO."""
    text, pattern = call.text(call.value()), call.constant(call.value("expression"))
    escape = "\\"
    if isinstance(call.node.parent, exp.Escape):
        escape = call.node.parent.expression.name
    found = of_similar(pattern, escape, call.node)
    return call.sql(f"regexp_full_match({{0}}, {_quoted(found)}, 's')", BOOLEAN, text)


def write_regular(call: Call) -> Value:
    """``~`` and ``~*``."""
    text, pattern = call.text(call.value()), call.constant(call.value("expression"))
    flag = call.maybe("flag")
    given = "" if flag is None else call.constant(flag)
    if set(given) - set("icsn") or "n" in given:
        raise call.refused(
            "has unsupported flags", "Only i, which ignores letter case, is supported."
        )
    is_blind = isinstance(call.node, exp.RegexpILike) or "i" in given
    found = of_regular(pattern, call.node)
    template = f"regexp_matches({{0}}, {_quoted(found)}, '{'si' if is_blind else 's'}')"
    return call.sql(template, BOOLEAN, text)


def write_regular_replace(call: Call) -> Value:
    """REGEXP_REPLACE(text, pattern, replacement, flags)."""
    _refuse_more(call, "position", "occurrence", "parameters")
    text = call.text(call.value())
    pattern = of_regular(call.constant(call.value("expression")), call.node, takes_part=True)
    put = _replacement(call, call.constant(call.value("replacement")))
    modifiers = call.maybe("modifiers")
    flags = "" if modifiers is None else call.constant(modifiers)
    if set(flags) - set("gi"):
        raise call.refused("has unsupported flags", "Only g and i are supported.")
    template = f"regexp_replace({{0}}, {_quoted(pattern)}, {_quoted(put)}, '{flags}s')"
    return call.sql(template, TEXT, text)


def _replacement(call: Call, text: str) -> str:
    r"""What is put in place of a match: \1 is its first group, and so it is in RE2."""
    pieces, place = [], 0
    while place < len(text):
        character = text[place]
        following = text[place + 1 : place + 2]
        if character != "\\":
            pieces.append(character)
            place += 1
        elif following == "&":
            pieces.append("\\0")
            place += 2
        elif following.isdigit() or following == "\\":
            pieces.append(character + following)
            place += 2
        else:
            raise call.refused(
                "has a single backslash in its replacement", r"Write \\ for a backslash."
            )
    return "".join(pieces)


def longest(lengths: Sequence[int]) -> int:
    """The length of a text that is no longer than one of those it is made of."""
    return max(lengths, default=0)
