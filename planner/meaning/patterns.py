r"""Patterns of LIKE, SIMILAR TO and regular expressions as RE2 has them, matched in linear time.

A pattern of LIKE has a backslash as its escape unless ESCAPE names another. Of regular
expressions those are written that mean the same in both; what PostgreSQL has alone (\y, look-
ahead, references to groups) is refused. Where a part of the text is taken and not only a match is
sought, the longest match must be the first that RE2 finds: so groups with a quantifier and
alternatives are refused then.
"""

import re
from typing import Final

from sqlglot import exp

from planner.sql.messages import unsupported

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
REPEAT_MAX: Final = 1000


def of_like(pattern: str, escape: str, like: exp.Expr) -> str:
    r"""The RE2 text that matches what a LIKE pattern matches.

    >>> print(of_like("a.b%", "!", exp.null()))
    a\.b.*
    """
    if len(escape) > 1:
        raise unsupported(
            like, "has an escape of more than one character", "Choose one that is not in the text."
        )
    pieces: list[str] = []
    characters = iter(pattern)
    for character in characters:
        if escape and character == escape:
            following = next(characters, None)
            if following is None:
                raise unsupported(
                    like, "ends with its escape character", "Write it twice to mean itself."
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
                    node, "ends with its escape character", "Write it twice to mean itself."
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
                raise unsupported(node, "has a named class", "Write its characters.")
        elif character in "%_":
            pieces.append(".*" if character == "%" else ".")
        elif character == "(":
            pieces.append("(?:")
        elif character in "|*+?)":
            pieces.append(character)
        elif character == "{":
            bound = _BOUND.match(pattern, place)
            if bound is None:
                raise unsupported(node, "has a { that is no number of times", r"Write \{.")
            pieces.append(bound[0])
            place += len(bound[0]) - 1
        else:
            pieces.append(literally(character))
        place += 1
    if in_class:
        raise unsupported(node, "has a [ that is not closed", "Close it with ].")
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
            f"has {sign!a} in its regular expression, which is not evaluated in this place",
            "Letters, ., [..], ^, $ and quantifiers are; groups and | where a match is sought.",
        )
