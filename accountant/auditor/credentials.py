"""Entries about credentials: who was given access, and whose ended.

What follows from them is in access.py.
"""

import re
from dataclasses import dataclass
from typing import Final

from accountant.auditor.fields import (
    Json,
    check_name,
    check_set,
    fields_of,
    list_of,
    one_of,
    optional,
    text,
)
from accountant.auditor.wrong import Wrong

ROLES: Final = ("analyst", "owner", "auditor", "collector")
PROOFS: Final = ("token", "certificate")
_KEY: Final = re.compile("[0-9a-f]{64}", re.ASCII)


@dataclass(frozen=True, slots=True)
class Granted:
    """A credential was issued."""

    id: str
    shown: tuple[str, str]


@dataclass(frozen=True, slots=True)
class Revoked:
    """A credential gives no access any more."""

    id: str


def granted(value: Json) -> Granted:
    """A credential that was issued; Wrong if it is not a valid one."""
    required = ("id", "analyst", "groups", "role", "tables", "proof", "shown_as", "expires", "by")
    fields = fields_of(value, required, ("scram",))
    for name in (text(fields, "analyst"), *check_set(list_of(fields, "groups", str), "groups")):
        check_name(name)
    check_set(list_of(fields, "tables", str), "tables")
    one_of(fields, "role", ROLES)
    text(fields, "by")
    optional(fields, "expires", text)
    shown_as = text(fields, "shown_as")
    if not shown_as:
        raise Wrong("a credential that anybody could show")
    proof = one_of(fields, "proof", PROOFS)
    if "scram" in fields:
        _check_scram(fields["scram"], proof)
    return Granted(check_name(text(fields, "id")), (proof, shown_as))


def _check_scram(value: Json, proof: str) -> None:
    """A password is a token, and two keys stand for it."""
    if proof != "token":
        raise Wrong("a password without a token")
    names = ("stored_key", "server_key")
    keys = fields_of(value, names)
    for name in names:
        if _KEY.fullmatch(text(keys, name)) is None:
            raise Wrong(f"{name} is not 64 hexadecimal digits")


def revoked(value: Json) -> Revoked:
    """A credential that was revoked; Wrong if it is not a valid one."""
    fields = fields_of(value, ("id", "by"))
    text(fields, "by")
    return Revoked(text(fields, "id"))
