"""TO_CHAR of numbers: a pattern's digits, signs and separators, place by place.

    9  a digit, or a blank before the first        0  a digit, and zeros before the first
    .  D  the point        ,  G  a comma between digits        FM  no blanks and no zeros at the end
    S  a sign beside the number        MI  a minus or a blank        PR  <1> of negative numbers
    SG a sign in this place        L  nothing, as the locale C has no currency

V, RN, TH and EEEE are refused.
"""

import re
from dataclasses import dataclass
from typing import Final

from planner.meaning.types import TEXT, Kind
from planner.meaning.written import Call, Value
from planner.sql.messages import unsupported

_PIECE: Final = re.compile(
    r'FM|SG|MI|PR|PL|[90.,DGSLdgsl]|(?<!\\)"(?P<quoted>[^"]*)"|(?P<other>[^A-Za-z90.,"\\])',
    re.IGNORECASE,
)
N_PLACES_MAX: Final = 30
_KNOWN: Final = "9, 0, the point, commas, D, G, S, MI, PR, SG, L and FM are."


class _Pattern:
    """A pattern taken apart."""

    def __init__(self, pattern: str, call: Call) -> None:
        self.pieces: list[str] = []  # 9 0 . , of the digits; other text as it is, behind a mark
        self.fills = True
        self.sign = ""
        self.is_sign_first = True
        place = 0
        while place < len(pattern):
            match = _PIECE.match(pattern, place)
            if match is None:
                raise unsupported(
                    call.node,
                    f"has {pattern[place:]!a} in its pattern, which is not supported",
                    _KNOWN,
                )
            place = match.end()
            self._take(match, call)
        digits = [one for one in self.pieces if one in ("9", "0")]
        if not digits or len(digits) > N_PLACES_MAX or self.pieces.count(".") > 1:
            raise unsupported(
                call.node,
                f"has no place for a digit, or over {N_PLACES_MAX}, or two points",
                _KNOWN,
            )

    def _take(self, match: re.Match[str], call: Call) -> None:
        piece = match[0].upper()
        if match["quoted"] is not None or match["other"] is not None:
            self.pieces.append("t" + (match["quoted"] or match["other"] or ""))
        elif piece == "FM":
            self.fills = False
        elif piece in ("S", "MI", "PR", "SG", "PL"):
            if self.sign or piece == "PL" or (piece == "PR" and not self.pieces):
                raise unsupported(call.node, "has a sign that is not supported", _KNOWN)
            self.sign = piece
            self.is_sign_first = not any(one in ("9", "0") for one in self.pieces)
            if piece in ("MI", "SG"):
                self.pieces.append("s" + piece)
        elif piece == "L":
            self.pieces.append("t ")
        else:
            self.pieces.append({"D": ".", "G": ","}.get(piece, piece))


def write_number(call: Call, value: Value, pattern: str) -> Value:
    """TO_CHAR of a number with a pattern.

    Raises
    ------
    UnsupportedSql
        If the pattern has something that is not computed.
    """
    found = _Pattern(pattern, call)
    point = found.pieces.index(".") if "." in found.pieces else len(found.pieces)
    places = sum(one in ("9", "0") for one in found.pieces[point:])
    n_before = sum(one in ("9", "0") for one in found.pieces[:point])
    total = n_before + places
    rounded = f"round({{0}}, {places})"
    if value.type.kind is Kind.FLOAT:
        rounded = f"round(CAST(printf('%.15g', {{0}}) AS DECIMAL(38, 15)), {places})"
    # The digits without the point, filled up with zeros; more than fit are shown as signs.
    template = (
        f"list_transform([CAST({rounded} AS DECIMAL(38, {places}))], LAMBDA x: "
        f"CASE WHEN x IS NULL THEN NULL WHEN abs(x) >= {10**n_before} THEN {{1}} ELSE "
        f"list_transform([lpad(replace(CAST(abs(x) AS VARCHAR), '.', ''), {total}, '0')], "
        "LAMBDA d: "
        "{2})[1] END)[1]"
    )
    shown = _shown(found, n_before, places)
    too_large = _overflow(found)
    text = template.replace("{1}", too_large).replace("{2}", shown)
    return call.sql(text, TEXT, value)


def _first_shown(found: _Pattern, n_before: int) -> int:
    """The place, among those before the point, from which zeros are shown whatever they are."""
    place = 0
    for piece in found.pieces:
        if piece == "0":
            return place
        if piece == ".":
            break
        place += piece == "9"
    return n_before


@dataclass(frozen=True, slots=True)
class _Places:
    """Where the digits of a pattern stand, and which zeros are shown."""

    n_before: int
    n_behind: int
    zeros_from: int
    last_zero: int
    fills: bool

    def digit(self, place: int) -> str:
        """SQL for one digit of d, a blank or nothing, its place counted from 1."""
        digit, behind = f"substr(d, {place}, 1)", place - self.n_before
        if behind > 0:
            if self.fills or behind - 1 <= self.last_zero:
                return digit
            return f"CASE WHEN length(rtrim(d, '0')) >= {place} THEN {digit} ELSE '' END"
        # The last before the point is shown where nothing is behind it.
        if place > self.zeros_from or (not behind and not self.n_behind):
            return digit
        condition = f"{_LEADING} < {place}"
        if not behind and not self.fills:
            condition += " OR ltrim(d, '0') = ''"
        return f"CASE WHEN {condition} THEN {digit} ELSE {_blank(self.fills)} END"

    def comma(self, place: int) -> str:
        """SQL for a comma behind a place."""
        if place > self.zeros_from or place > self.n_before:
            return "','"
        return f"CASE WHEN {_LEADING} < {place} THEN ',' ELSE {_blank(self.fills)} END"


_LEADING: Final = "length(d) - length(ltrim(d, '0'))"  # zeros at the beginning


def _blank(fills: bool) -> str:
    return "' '" if fills else "''"


def _shown(found: _Pattern, n_before: int, n_behind: int) -> str:
    """SQL for the text of a number x that fits, whose digits are d."""
    behind = enumerate(_digits_behind(found))
    last_zero = max((at for at, one in behind if one == "0"), default=-1)
    places = _Places(n_before, n_behind, _first_shown(found, n_before), last_zero, found.fills)
    pieces: list[str] = []
    place = 0
    for piece in found.pieces:
        if piece in ("9", "0"):
            place += 1
            pieces.append(places.digit(place))
        elif piece == ",":
            pieces.append(places.comma(place))
        else:
            pieces.append(_other(found, piece))
    return _signed(found, pieces)


def _other(found: _Pattern, piece: str) -> str:
    """SQL for what is neither a digit nor a comma."""
    if piece == ".":
        return "'.'"
    if piece[0] == "t":
        return _quoted(piece[1:])
    plus = "'+'" if piece == "sSG" else _blank(found.fills)
    return f"CASE WHEN x < 0 THEN '-' ELSE {plus} END"


def _digits_behind(found: _Pattern) -> list[str]:
    if "." not in found.pieces:
        return []
    behind = found.pieces[found.pieces.index(".") + 1 :]
    return [one for one in behind if one in ("9", "0")]


def _signed(found: _Pattern, pieces: list[str]) -> str:
    """The pieces with the sign, which stands before the first digit that is shown."""
    first = next(at for at, one in enumerate(found.pieces) if one in ("9", "0", "."))
    before = "".join(f"{piece} || " for piece in pieces[:first])
    body = " || ".join(pieces[first:])
    if found.sign in ("MI", "SG"):
        return f"({before}{body})"
    if found.sign == "PR":
        if not found.fills:
            return f"({before}CASE WHEN x < 0 THEN '<' || {body} || '>' ELSE {body} END)"
        less = _beside(body, "'<'")
        return f"({before}CASE WHEN x < 0 THEN {less} || '>' ELSE ' ' || {body} || ' ' END)"
    plus = "'+'" if found.sign == "S" else _blank(found.fills)
    sign = f"CASE WHEN x < 0 THEN '-' ELSE {plus} END"
    if found.sign == "S" and not found.is_sign_first:
        return f"({before}{body} || {sign})"
    return f"({before}{_beside(body, sign)})"


def _beside(body: str, sign: str) -> str:
    """A sign between the blanks before the first digit and that digit."""
    blanks = "repeat(' ', length(b) - length(ltrim(b, ' ')))"
    return f"list_transform([{body}], LAMBDA b: {blanks} || {sign} || ltrim(b, ' '))[1]"


def _overflow(found: _Pattern) -> str:
    """Signs in the place of digits, of a number that has more before the point."""
    signs = {"9": "'#'", "0": "'#'", ",": "','"}
    return _signed(found, [signs.get(piece) or _other(found, piece) for piece in found.pieces])


def _quoted(text: str) -> str:
    escaped = text.replace("'", "''").replace("{", "{{").replace("}", "}}")
    return f"'{escaped}'"
