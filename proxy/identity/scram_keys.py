"""The keys of SCRAM-SHA-256 (RFC 5802, RFC 7677): from a token to what the ledger may hold of it.

Arithmetic only; the exchange of messages is in scram.py. The salt is a function of the analyst's
name that anybody can compute. A salt is there to make guessing passwords dearer, and a token of 256
random bits is not guessed; a salt that is public lets the server answer the same to a name that
exists and to one that does not, and gives all tokens of an analyst one salt.
"""

import hashlib
import hmac
from typing import Final

from accountant.ledger.credentials import ScramVerifier

N_ITERATIONS: Final = 4096  # the least that RFC 7677 allows; more would slow down clients only
HASH: Final = "sha256"
SALT_BYTES: Final = 16
_SALT_OF: Final = b"tacit: salt of the analyst "


def salt_of(analyst: str) -> bytes:
    """The salt for the tokens of whoever goes by a name, known or not.

    >>> salt_of("ann").hex()
    '40758f9271ea0dec13d0d451e993802d'
    """
    return hashlib.sha256(_SALT_OF + analyst.encode("utf-8")).digest()[:SALT_BYTES]


def verifier_of(analyst: str, token: str) -> ScramVerifier:
    """What shows that somebody knows an analyst's token. The token has ASCII characters only."""
    salted = salted_password(token.encode("ascii"), salt_of(analyst), N_ITERATIONS)
    return ScramVerifier(
        stored_key=stored_key_of(mac(salted, b"Client Key")).hex(),
        server_key=mac(salted, b"Server Key").hex(),
    )


def salted_password(password: bytes, salt: bytes, n_iterations: int) -> bytes:
    """RFC 5802's SaltedPassword."""
    return hashlib.pbkdf2_hmac(HASH, password, salt, n_iterations)


def stored_key_of(client_key: bytes) -> bytes:
    """RFC 5802's StoredKey."""
    return hashlib.sha256(client_key).digest()


def mac(key: bytes, message: bytes) -> bytes:
    """The HMAC with which every key and every proof is made."""
    return hmac.digest(key, message, HASH)
