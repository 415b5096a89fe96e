"""The client's side of SCRAM-SHA-256, written apart from the server's, for tests of it."""

import base64
import hashlib
import hmac
from dataclasses import dataclass

from proxy.identity.authenticate import PasswordLogin
from proxy.identity.scram import PLAIN

CLIENT_NONCE = "rOprNGfwEbeRWgbNEkqO"


def sha256(key: bytes, message: bytes) -> bytes:
    return hmac.new(key, message, hashlib.sha256).digest()


def xor(one: bytes, other: bytes) -> bytes:
    return bytes(a ^ b for a, b in zip(one, other, strict=True))


@dataclass(frozen=True)
class ScramClient:
    """Somebody who says that they know a password."""

    password: str
    header: str = "n,,"
    bound_to: bytes = b""
    name: str = ""
    nonce: str = CLIENT_NONCE

    @property
    def bare(self) -> str:
        return f"n={self.name},r={self.nonce}"

    @property
    def first(self) -> bytes:
        return f"{self.header}{self.bare}".encode()

    def keys(self, server_first: bytes) -> tuple[bytes, bytes]:
        """The client's key and the server's."""
        fields = dict(part.split("=", 1) for part in server_first.decode().split(","))
        salted = hashlib.pbkdf2_hmac(
            "sha256", self.password.encode(), base64.b64decode(fields["s"]), int(fields["i"])
        )
        return sha256(salted, b"Client Key"), sha256(salted, b"Server Key")

    def final(self, server_first: bytes) -> bytes:
        client_key, _ = self.keys(server_first)
        stored = hashlib.sha256(client_key).digest()
        proof = xor(client_key, sha256(stored, self.about(server_first)))
        return self.without_proof(server_first) + b",p=" + base64.b64encode(proof)

    def without_proof(self, server_first: bytes) -> bytes:
        nonce = server_first.decode().split(",")[0]
        binding = base64.b64encode(self.header.encode() + self.bound_to).decode()
        return f"c={binding},{nonce}".encode()

    def about(self, server_first: bytes) -> bytes:
        """What both sides sign."""
        return b",".join((self.bare.encode(), server_first, self.without_proof(server_first)))

    def believes(self, server_first: bytes, server_final: bytes) -> bool:
        """Whether the server has the verifier of this password."""
        _, server_key = self.keys(server_first)
        signature = sha256(server_key, self.about(server_first))
        return server_final == b"v=" + base64.b64encode(signature)


def logged_in(login: PasswordLogin, client: ScramClient, mechanism: str = PLAIN) -> bool:
    """Do the whole exchange; whether the client believes the server."""
    answer = login.first(mechanism, client.first)
    return client.believes(answer, login.final(client.final(answer)))
