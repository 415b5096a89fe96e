"""The value that follows an immutable one: the same but for some fields.

`dataclasses.replace` calls the constructor with every field, which takes longer than the rest of
what most entries do to a history. This copies the fields. It is for values that do not check
themselves when they are made, and have no slots; others are replaced as usual.
"""

from typing import TypeVar

Value = TypeVar("Value")


def successor(before: Value, **changed: object) -> Value:
    """A value with other content in some of its fields, all of which it has.

    Raises
    ------
    AttributeError
        If the value has no such field, or is one that checks itself.
    """
    fields = vars(before)
    if hasattr(before, "__post_init__") or not changed.keys() <= fields.keys():
        raise AttributeError(f"{type(before).__name__} has no successor of {sorted(changed)}")
    after = object.__new__(type(before))
    vars(after).update(fields, **changed)
    return after
