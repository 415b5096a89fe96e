r"""The search patterns of catalog requests: ``%`` any text, ``_`` one character, ``\`` escapes.

Not a regular expression, because one made from a hostile pattern can take forever: a pattern here
takes at most ``len(pattern) * len(name)`` steps.
"""

from typing import Final

ESCAPE: Final = "\\"

_ANY_TEXT: Final = ("any text", "")
_ANY_CHARACTER: Final = ("any character", "")
_WILDCARDS: Final = {"%": _ANY_TEXT, "_": _ANY_CHARACTER}


def matches(pattern: str, name: str) -> bool:
    r"""Whether a whole name matches a pattern.

    Walks both once; a mismatch goes back only to the last ``%`` and lets it take one more
    character. That is enough, since an earlier ``%`` could not do better.

    >>> matches("ad%t", "adult"), matches("a_ult", "adult"), matches(r"a\_b", "axb")
    (True, True, False)
    """
    items = _items(pattern)
    item_at = name_at = 0
    percent_at, percent_taken_to = -1, 0
    while name_at < len(name):
        item = items[item_at] if item_at < len(items) else None
        if item == _ANY_TEXT:
            percent_at, percent_taken_to = item_at, name_at
            item_at += 1
        elif item in (_ANY_CHARACTER, ("literal", name[name_at])):
            item_at, name_at = item_at + 1, name_at + 1
        elif percent_at >= 0:
            percent_taken_to += 1
            item_at, name_at = percent_at + 1, percent_taken_to
        else:
            return False
    return all(item == _ANY_TEXT for item in items[item_at:])


def _items(pattern: str) -> list[tuple[str, str]]:
    items: list[tuple[str, str]] = []
    characters = iter(pattern)
    for character in characters:
        if character == ESCAPE:
            items.append(("literal", next(characters, ESCAPE)))
        else:
            items.append(_WILDCARDS.get(character, ("literal", character)))
    return items
