"""Bearer tokens, and what the ledger may hold of one: its SHA-256, or the keys of SCRAM-SHA-256.

A token is a prefix that scanners for leaked secrets can look for, and 256 random bits. Only its
holder keeps it. The ledger has its SHA-256, by which it is looked up; since a token cannot be
guessed, its hash needs no salt, and reading the hash reveals nothing.

As the password of a PostgreSQL client a token has the keys of SCRAM (RFC 5802, RFC 7677; the
exchange of messages is in scram.py). The salt is a function of the analyst's name that anybody can
compute. A salt is there to make guessing passwords dearer, and a token of 256 random bits is not
guessed; a salt that is public lets the server answer the same to a name that exists and to one that
does not, and gives all tokens of an analyst one salt. Anyone who has a verifier and hears a login
with it can log in, and ledgers are made to be read. So what is stored of a verifier is sealed with
the ledger's key: accountant/proofs/credentials.md.

Arithmetic only.
"""

import hashlib
import hmac
from dataclasses import dataclass, field
from typing import Final

from accountant.ledger import SealedVerifier

N_ITERATIONS: Final = 4096  # the least that RFC 7677 allows; more would slow down clients only
HASH: Final = "sha256"
SALT_BYTES: Final = 16
_SALT_OF: Final = b"tacit: salt of the analyst "
_SEAL_OF: Final = b"tacit: seal of a verifier, "


@dataclass(frozen=True, slots=True)
class Verifier:
    """What shows that somebody knows a token, open; it is in memory while a login is checked.

    Parameters
    ----------
    stored_key, server_key : bytes
        The keys of RFC 5802.
    """

    stored_key: bytes = field(repr=False)
    server_key: bytes = field(repr=False)


def salt_of(analyst: str) -> bytes:
    """The salt for the tokens of a user's name, known or not.

    >>> salt_of("ann").hex()
    '40758f9271ea0dec13d0d451e993802d'
    """
    return hashlib.sha256(_SALT_OF + analyst.encode("utf-8")).digest()[:SALT_BYTES]


def verifier_of(salted: bytes) -> Verifier:
    """What shows that somebody knows a password, from its SaltedPassword."""
    return Verifier(stored_key_of(mac(salted, b"Client Key")), mac(salted, b"Server Key"))


def sealed_verifier(key: bytes, analyst: str, token: str, shown_as: str) -> SealedVerifier:
    """What the ledger may hold of an analyst's token, which has ASCII characters only.

    Parameters
    ----------
    key : bytes
        The ledger's key.
    shown_as : str
        The token's hash, which no other credential has: so no seal is used twice.
    """
    salted = salted_password(token.encode("ascii"), salt_of(analyst), N_ITERATIONS)
    opened = verifier_of(salted)
    return SealedVerifier(
        _sealed(opened.stored_key, key, "stored key", shown_as).hex(),
        _sealed(opened.server_key, key, "server key", shown_as).hex(),
    )


def opened_verifier(key: bytes, sealed: SealedVerifier, shown_as: str) -> Verifier:
    """The verifier that was sealed with the ledger's key."""
    return Verifier(
        _sealed(bytes.fromhex(sealed.stored_key), key, "stored key", shown_as),
        _sealed(bytes.fromhex(sealed.server_key), key, "server key", shown_as),
    )


def _sealed(found: bytes, key: bytes, which: str, shown_as: str) -> bytes:
    """A key of 32 bytes sealed, or opened again: it is added to bits that only `key` gives."""
    pad = mac(key, _SEAL_OF + f"{which}: {shown_as}".encode("ascii"))
    return bytes(one ^ other for one, other in zip(found, pad, strict=True))


def salted_password(password: bytes, salt: bytes, n_iterations: int) -> bytes:
    """RFC 5802's SaltedPassword."""
    return hashlib.pbkdf2_hmac(HASH, password, salt, n_iterations)


def stored_key_of(client_key: bytes) -> bytes:
    """RFC 5802's StoredKey."""
    return hashlib.sha256(client_key).digest()


def mac(key: bytes, message: bytes) -> bytes:
    """The HMAC with which every key and every proof is made."""
    return hmac.digest(key, message, HASH)
