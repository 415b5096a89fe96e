"""Tokens of analysts: random texts of one form, and their hash, which is what a ledger keeps."""

import hashlib
import re
import secrets
from typing import Final

PREFIX: Final = "tacit_"
TOKEN_BYTES: Final = 32
_TOKEN: Final = re.compile(PREFIX + "[A-Za-z0-9_-]{43}", re.ASCII)


def new_token() -> str:
    """A new random token.

    >>> is_token(new_token())
    True
    """
    return PREFIX + secrets.token_urlsafe(TOKEN_BYTES)


def is_token(text: str) -> bool:
    """Whether a text has the form of a token."""
    return _TOKEN.fullmatch(text) is not None


def token_hash(token: str) -> str:
    """The hash of a token, which is what the ledger keeps.

    >>> token_hash("tacit_" + "A" * 43)[:16]
    '6850cc9bc869e687'
    """
    return hashlib.sha256(token.encode("ascii")).hexdigest()
