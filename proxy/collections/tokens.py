"""Tokens of respondents: a secret each, that says nothing of whom, and counts for one answer.

A token is 64 hexadecimal digits. A respondent makes one of fresh entropy; or, for a collection by
invitation, the owner hands out tokens that prove by their second half that this server made them.
Nothing is kept of tokens that were handed out, and of spent ones a digest under a key that is not
in the file of counts: that file alone does not show whether a token is spent.
"""

import hmac
import re
import secrets
from dataclasses import dataclass
from typing import Final

from cube.refusals import InvalidRequest

TOKEN: Final = re.compile("[0-9a-f]{64}", re.ASCII)
HALF: Final = 16  # bytes
_PURPOSE: Final = b"tacit-collection-1\n"


def new_token() -> str:
    """A respondent's own token."""
    return secrets.token_hex(2 * HALF)


@dataclass(frozen=True, slots=True, repr=False)
class TokenKey:
    """The key of one collection's tokens, derived from the ledger's.

    Parameters
    ----------
    campaign : str
        The digest of the campaign: a token of one collection is none of another.
    """

    ledger_key: bytes
    campaign: str

    def invitation(self) -> str:
        """A token that this server can tell from any other."""
        chosen = secrets.token_bytes(HALF)
        return (chosen + self._proof(chosen)).hex()

    def is_invitation(self, token: str) -> bool:
        """Whether this server made the token."""
        given = bytes.fromhex(token)
        return hmac.compare_digest(given[HALF:], self._proof(given[:HALF]))

    def spent_digest(self, token: str) -> bytes:
        """What is kept of a spent token."""
        return hmac.digest(self._derived(b"spent"), bytes.fromhex(token), "sha256")

    def _proof(self, chosen: bytes) -> bytes:
        return hmac.digest(self._derived(b"invited"), chosen, "sha256")[:HALF]

    def _derived(self, use: bytes) -> bytes:
        return hmac.digest(self.ledger_key, _PURPOSE + use + self.campaign.encode(), "sha256")


def check_token(token: str) -> None:
    """Raise InvalidRequest unless a text is of the form of a token; it is not quoted."""
    if not TOKEN.fullmatch(token):
        raise InvalidRequest(
            "This is not a respondent's token.",
            hint="A token is 64 random hexadecimal digits; send the same one when you try again.",
        )
