"""The server's side of SCRAM-SHA-256 (RFC 5802, 5929, 7677): two messages of a client, two answers.

    client  n,,n=,r=NONCE                             which mechanism, and its nonce
    server  r=NONCE+OURS,s=SALT,i=4096                the same for a known and an unknown user
    client  c=BINDING,r=NONCE+OURS,p=PROOF            that it knows the token
    server  v=SIGNATURE                               that the server has the verifier

Pure: it reads no socket, no clock and no ledger. Every failure is one exception with one text, and
a proof is tried against every password, whichever fits. The user is the one of the startup packet:
PostgreSQL's clients write any name into the message.
"""

import base64
import binascii
import hmac
import re
import secrets
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

from cube.refusals import NotAuthenticated
from proxy.identity.verifiers import N_ITERATIONS, Verifier, mac, stored_key_of

PLAIN: Final = "SCRAM-SHA-256"
BOUND: Final = "SCRAM-SHA-256-PLUS"  # to the certificate under which the client sees the server
BINDING: Final = "tls-server-end-point"
MESSAGE_BYTES_MAX: Final = 2048
NONCE_BYTES: Final = 18

_NONCE: Final = "[\\x21-\\x2b\\x2d-\\x7e]{1,256}"  # printable ASCII without a comma
_NAME: Final = "[^,\\x00]*"
_FIRST: Final = re.compile(f"(n|y|p=[A-Za-z0-9.-]+),,(n={_NAME},r=({_NONCE}))")
_FINAL: Final = re.compile(f"(c=([A-Za-z0-9+/=]+),r=({_NONCE})),p=([A-Za-z0-9+/=]+)")


@dataclass(frozen=True, slots=True)
class Password:
    """A token that is a password, as far as the server knows it."""

    token_hash: str
    verifier: Verifier


class ScramLogin:
    """One exchange: `first`, then `final`, each once.

    Parameters
    ----------
    salt : bytes
        The user's salt.
    passwords : callable
        Returns the user's passwords as they are when the client's proof has come, and decoys, so
        that an unknown user is as much work as a known one. Called again if none fits and it may
        have been issued since, as `refresh` says.
    refresh : callable
        Looks for tokens that were just issued; whether it did.
    endpoint_hash : bytes, optional
        The hash of the server's certificate (RFC 5929), under TLS.
    new_nonce : callable, optional
        Returns the server's part of the nonce: printable ASCII without a comma.
    """

    def __init__(
        self,
        salt: bytes,
        passwords: Callable[[], Iterable[Password]],
        *,
        refresh: Callable[[], bool] = lambda: False,
        endpoint_hash: bytes | None = None,
        new_nonce: Callable[[], str] = lambda: secrets.token_urlsafe(NONCE_BYTES),
    ) -> None:
        self._salt = salt
        self._passwords = passwords
        self._refresh = refresh
        self._endpoint_hash = endpoint_hash
        self._new_nonce = new_nonce
        self._begun: _Begun | None = None
        self._found: Password | None = None

    @property
    def mechanisms(self) -> tuple[str, ...]:
        """The mechanisms that are offered, the best first."""
        return (PLAIN,) if self._endpoint_hash is None else (BOUND, PLAIN)

    @property
    def token_hash(self) -> str:
        """The hash of the token that was proved, once `final` has returned."""
        if self._found is None:
            raise RuntimeError("nothing is proved before the exchange is over")
        return self._found.token_hash

    def first(self, mechanism: str, message: bytes) -> bytes:
        """The answer to the client's first message.

        Raises
        ------
        NotAuthenticated
            If it is none, or is for a mechanism that is not offered.
        """
        if self._begun is not None or mechanism not in self.mechanisms:
            raise login_failed()
        found = _FIRST.fullmatch(_text(message))
        if found is None:
            raise login_failed()
        flag, bare, client_nonce = found.groups()
        binding = self._binding(mechanism, flag)
        nonce = client_nonce + self._new_nonce()
        salt = base64.b64encode(self._salt).decode("ascii")
        answer = f"r={nonce},s={salt},i={N_ITERATIONS}"
        self._begun = _Begun(nonce, binding, f"{bare},{answer},")
        return answer.encode("ascii")

    def final(self, message: bytes) -> bytes:
        """The answer to the client's proof.

        Raises
        ------
        NotAuthenticated
            If it proves nothing, or was made for another connection.
        """
        begun, self._begun = self._begun, None
        found = _FINAL.fullmatch(_text(message))
        if begun is None or found is None:
            raise login_failed()
        signed, binding, nonce, proof = found.groups()
        is_bound = hmac.compare_digest(_decoded(binding), begun.binding)
        is_here = hmac.compare_digest(nonce.encode(), begun.nonce.encode())
        if not is_bound or not is_here:
            raise login_failed()
        about = (begun.messages + signed).encode("utf-8")
        shown = _decoded(proof)
        self._found = _fitting(self._passwords(), shown, about)
        if self._found is None and self._refresh():
            self._found = _fitting(self._passwords(), shown, about)
        if self._found is None:
            raise login_failed()
        signature = mac(self._found.verifier.server_key, about)
        return b"v=" + base64.b64encode(signature)

    def _binding(self, mechanism: str, flag: str) -> bytes:
        """What the client must repeat in its second message: its header, and what it is bound to.

        A client that says it would bind, were it offered (``y``), where it is, was lied to on the
        way about the mechanisms.
        """
        header = f"{flag},,".encode("ascii")
        if mechanism == BOUND and flag == f"p={BINDING}" and self._endpoint_hash is not None:
            return header + self._endpoint_hash
        if mechanism == PLAIN and (flag == "n" or (flag == "y" and self._endpoint_hash is None)):
            return header
        raise login_failed()


@dataclass(frozen=True, slots=True)
class _Begun:
    """An exchange between its two halves."""

    nonce: str
    binding: bytes
    messages: str  # the messages that the proof is about, without the last part


def _fitting(passwords: Iterable[Password], proof: bytes, about: bytes) -> Password | None:
    """The password that a proof is made with. Every one is tried, whichever fits."""
    found: Password | None = None
    for password in passwords:
        if _fits(password.verifier, proof, about):
            found = password
    return found


def _fits(verifier: Verifier, proof: bytes, about: bytes) -> bool:
    signature = mac(verifier.stored_key, about)
    if len(proof) != len(signature):
        return False
    client_key = bytes(one ^ other for one, other in zip(proof, signature, strict=True))
    return hmac.compare_digest(stored_key_of(client_key), verifier.stored_key)


def _text(message: bytes) -> str:
    if len(message) > MESSAGE_BYTES_MAX:
        raise login_failed()
    try:
        return message.decode("utf-8")
    except UnicodeDecodeError:
        raise login_failed() from None


def _decoded(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise login_failed() from None


def login_failed() -> NotAuthenticated:
    """The one answer to every login that fails."""
    return NotAuthenticated(
        "The login failed.",
        hint="The user is the analyst's name, the password a token that `tacit token issue` made "
        "for it with access to this wire.",
    )
