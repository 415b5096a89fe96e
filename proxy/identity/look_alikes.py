"""Names of analysts and groups that look like another's, for the owner who reads a list of them.

Two names are alike to the eye if they are the same once letters that are drawn alike are written as
one. The letters are those of the scripts that names are mostly written in; nothing is refused.
"""

import unicodedata
from collections.abc import Collection, Iterable, Iterator
from itertools import combinations
from typing import Final

# By the Latin letter, the letters and digits that are drawn like it, small or large.
_DRAWN: Final = {
    "a": "\u0430\u03b1",
    "b": "\u0432\u044c\u03b2",
    "c": "\u0441\u03f2",
    "d": "\u0501",
    "e": "\u0435\u03b5",
    "g": "\u0581",
    "h": "\u04bb\u043d\u03b7\u0570",
    "i": "\u0456\u03b9\u0131",
    "j": "\u0458\u03f3",
    "k": "\u043a\u03ba",
    "l": "\u04cf1|",
    "m": "\u043c\u03bc",
    "n": "\u0578",
    "o": "\u043e\u03bf\u05850",
    "p": "\u0440\u03c1",
    "q": "\u051b\u0566",
    "s": "\u0455",
    "t": "\u0442\u03c4",
    "u": "\u057d",
    "v": "\u0475\u03bd",
    "w": "\u051d",
    "x": "\u0445\u03c7",
    "y": "\u0443\u03c5\u03b3",
    "z": "\u03b6",
}
_LATIN: Final = {ord(like): to for to, every in _DRAWN.items() for like in every}
_TOGETHER: Final = (("rn", "m"), ("vv", "w"), ("i", "l"))
_SCRIPTS: Final = frozenset(("LATIN", "CYRILLIC", "GREEK", "ARMENIAN", "HEBREW", "ARABIC"))


def drawn_as(name: str) -> str:
    r"""A name with letters that are drawn alike written as one, without marks and blanks.

    >>> drawn_as("Ann") == drawn_as("\u0430nn") == drawn_as("a\u0301nn ")
    True
    >>> drawn_as("bill") == drawn_as("biII")
    True
    >>> drawn_as("ann") == drawn_as("anna")
    False
    """
    plain = unicodedata.normalize("NFKD", name).casefold()
    kept = "".join(c for c in plain if unicodedata.category(c)[0] not in "MZC")
    drawn = kept.translate(_LATIN)
    for several, one in _TOGETHER:
        drawn = drawn.replace(several, one)
    return drawn


def scripts_of(name: str) -> frozenset[str]:
    r"""The scripts of a name's letters, as far as letters of them are drawn alike.

    >>> sorted(scripts_of("\u0430nn"))
    ['CYRILLIC', 'LATIN']
    """
    letters = (unicodedata.name(c, "").split(" ")[0] for c in name if c.isalpha())
    return _SCRIPTS.intersection(letters)


def warnings_of(names: Iterable[str]) -> Iterator[str]:
    """A sentence for each pair of names that look alike, and for each name of several scripts."""
    once = list(dict.fromkeys(names))
    for one, other in combinations(once, 2):
        if drawn_as(one) == drawn_as(other):
            yield f"{_shown(one)} and {_shown(other)} look alike, and are two names."
    for name in once:
        scripts = scripts_of(name)
        if len(scripts) > 1:
            listed = " and ".join(sorted(script.capitalize() for script in scripts))
            yield f"{_shown(name)} is written with letters of {listed}."


def warnings_beside(new: Collection[str], names: Iterable[str]) -> Iterator[str]:
    """The same, of the pairs and names that a new one is in."""
    others = [name for name in dict.fromkeys(names) if name not in new]
    alike = [one for one in others if drawn_as(one) in {drawn_as(name) for name in new}]
    told = set(warnings_of(alike))
    yield from (one for one in warnings_of([*alike, *new]) if one not in told)


def _shown(name: str) -> str:
    r"""A name, and beside it what cannot be told by looking.

    >>> print(_shown("b\x1b"))
    "b?" (b\x1b)
    """
    plain = "".join(c if c.isprintable() else "?" for c in name)
    codes = ascii(name)[1:-1]
    return f'"{plain}"' if codes == name else f'"{plain}" ({codes})'
