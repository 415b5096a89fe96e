"""Signed heads: the end of a ledger at a moment, signed by its owner with their own key.

The chain of a ledger shows every change within it, but not that entries at its end are missing, or
that all of it was rewritten. A signed head states the number of entries and the last digest. Kept
in another place, it makes both visible.

Ed25519 by `cryptography`; the private key is a PEM file that only its owner may read. Nothing here
reads a ledger. Proof: proofs/ledger.md.
"""

import base64
import os
import re
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Final

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_pem_private_key,
    load_pem_public_key,
)

from accountant.auditor.fields import Wrong, check_moment, fields_of, one_of, parsed, text, whole
from cube.encoding import canonical_json
from cube.refusals import CannotStart, LedgerCorrupt

FORMAT: Final = "tacit-signed-head-1"
PRIVATE_MODE: Final = 0o600
PUBLIC_MODE: Final = 0o644
_FIELDS: Final = ("format", "n_entries", "head", "at")
_DIGEST: Final = re.compile(r"[0-9a-f]{64}", re.ASCII)


@dataclass(frozen=True, slots=True)
class Head:
    """The end of a ledger at a moment.

    Parameters
    ----------
    n_entries : int
    digest : str
        The digest of the last entry.
    at : str
        The time of signing, as UTC text.
    """

    n_entries: int
    digest: str
    at: str

    def __post_init__(self) -> None:
        if type(self.n_entries) is not int or self.n_entries < 0:
            raise Wrong(
                f"the number of entries {self.n_entries!r} must be a whole number, at least 0"
            )
        if not _DIGEST.fullmatch(self.digest):
            raise Wrong("the digest must be 64 hexadecimal digits")
        check_moment(self.at, "the time of a head")

    @property
    def fields(self) -> dict[str, Any]:
        """As JSON values."""
        return {"format": FORMAT, "n_entries": self.n_entries, "head": self.digest, "at": self.at}

    @property
    def signed_bytes(self) -> bytes:
        """The signed text: the canonical JSON of `fields`, in ASCII."""
        return canonical_json(self.fields).encode("ascii")


@dataclass(frozen=True, slots=True)
class SignedHead:
    """A head and a signature. `read_signed_head` returns it only if the signature is valid."""

    head: Head
    signature: bytes

    def to_json(self) -> str:
        """The text of a file, one line."""
        signature = base64.b64encode(self.signature).decode("ascii")
        return canonical_json({**self.head.fields, "signature": signature}) + "\n"


def generate_keys(private_path: Path, public_path: Path) -> None:
    """Create a pair of keys; the private one in a file that only its owner may read.

    Raises
    ------
    CannotStart
        If one of the files exists already, or cannot be written.
    """
    private = Ed25519PrivateKey.generate()
    private_text = private.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    public_text = private.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    _write_new(private_path, private_text, PRIVATE_MODE)
    try:
        _write_new(public_path, public_text, PUBLIC_MODE)
    except CannotStart:
        private_path.unlink()  # created just now, and useless without the public key
        raise


def read_private_key(path: Path) -> Ed25519PrivateKey:
    """The key to sign with; refused if anybody except its owner may read the file."""
    with _opened(path) as file:
        if stat.S_IMODE(os.fstat(file.fileno()).st_mode) & 0o077:
            raise CannotStart(
                f"Other users may read the private key {path}, so its signatures prove nothing.",
                hint="Make new keys. If you are sure that the key was not read yet, run "
                f"chmod 600 {path} instead.",
            )
        content = file.read()
    try:
        key = load_pem_private_key(content, password=None)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        key = None
    if not isinstance(key, Ed25519PrivateKey):
        raise CannotStart(f"{path} is not a private key made by `tacit audit keygen`.")
    return key


def read_public_key(path: Path) -> Ed25519PublicKey:
    """The key to check signatures with."""
    with _opened(path) as file:
        content = file.read()
    try:
        key = load_pem_public_key(content)
    except (ValueError, UnsupportedAlgorithm):
        key = None
    if not isinstance(key, Ed25519PublicKey):
        raise CannotStart(f"{path} is not a public key made by `tacit audit keygen`.")
    return key


def sign_head(private_key: Ed25519PrivateKey, head: Head) -> SignedHead:
    """Sign a head."""
    return SignedHead(head, private_key.sign(head.signed_bytes))


def read_signed_head(written: str, public_key: Ed25519PublicKey, name: str) -> SignedHead:
    """The signed head that `to_json` wrote, after checking its signature.

    Raises
    ------
    LedgerCorrupt
        If it is not a signed head, or not signed with this key. The message calls it `name`.
    """
    try:
        fields = fields_of(parsed(written.strip()), (*_FIELDS, "signature"))
        one_of(fields, "format", (FORMAT,))
        head = Head(whole(fields, "n_entries"), text(fields, "head"), text(fields, "at"))
        signature = _signature(text(fields, "signature"))
        public_key.verify(signature, head.signed_bytes)
    except InvalidSignature:
        raise LedgerCorrupt(
            f"The signed head {name} was not signed with this key, or was changed afterwards.",
            hint="Get the signed head and the public key from the ledger's owner again.",
        ) from None
    except (Wrong, ValueError) as error:
        raise LedgerCorrupt(f"{name} is not a signed head: {error}.") from None
    return SignedHead(head, signature)


def _signature(written: str) -> bytes:
    """The bytes of a signature, whose text must be the canonical one: base64 has spare bits."""
    signature = base64.b64decode(written, validate=True)
    if base64.b64encode(signature).decode("ascii") != written:
        raise Wrong("its signature is not in canonical form")
    return signature


def _opened(path: Path) -> BinaryIO:
    try:
        return path.open("rb")
    except OSError as error:
        raise CannotStart(f"{path} cannot be read: {error.strerror}.") from None


def _write_new(path: Path, content: bytes, mode: int) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
    try:
        with os.fdopen(os.open(path, flags, mode), "wb") as file:
            file.write(content)
    except OSError as error:
        raise CannotStart(f"{path} cannot be written: {error.strerror}.") from None
