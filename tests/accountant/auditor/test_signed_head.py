"""Signed heads and their keys: what is accepted, and what is refused with a message."""

import json
import stat
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)
from hypothesis import given
from hypothesis import strategies as st

from accountant.auditor.fields import Wrong
from accountant.auditor.signed_head import (
    Head,
    generate_keys,
    read_private_key,
    read_public_key,
    read_signed_head,
    sign_head,
)
from cube.refusals import CannotStart, LedgerCorrupt

KEY = Ed25519PrivateKey.generate()
HEAD = Head(25, "ab" * 32, "2026-11-21T20:07:49.123+00:00")
TEXT = sign_head(KEY, HEAD).to_json()


@pytest.fixture
def keys(tmp_path: Path) -> tuple[Path, Path]:
    private, public = tmp_path / "owner.key", tmp_path / "owner.pub"
    generate_keys(private, public)
    return private, public


def test_what_one_key_of_a_pair_signs_the_other_verifies(keys: tuple[Path, Path]) -> None:
    private, public = keys
    written = sign_head(read_private_key(private), HEAD).to_json()
    assert read_signed_head(written, read_public_key(public), "head.json").head == HEAD


def test_the_private_key_is_for_its_owner_alone(keys: tuple[Path, Path]) -> None:
    private, public = keys
    assert stat.S_IMODE(private.stat().st_mode) == 0o600
    assert b"PRIVATE" not in public.read_bytes()
    for mode in (0o640, 0o604, 0o620, 0o610):
        private.chmod(mode)
        with pytest.raises(CannotStart, match="Other users may read the private key"):
            read_private_key(private)


def test_keys_are_never_written_over(keys: tuple[Path, Path]) -> None:
    before = [path.read_bytes() for path in keys]
    with pytest.raises(CannotStart, match=r"owner\.key cannot be written: File exists"):
        generate_keys(*keys)
    assert [path.read_bytes() for path in keys] == before


def test_no_half_of_a_pair_is_left_behind(tmp_path: Path) -> None:
    private, public = tmp_path / "owner.key", tmp_path / "owner.pub"
    public.write_text("somebody else's")
    with pytest.raises(CannotStart, match=r"owner\.pub cannot be written"):
        generate_keys(private, public)
    assert not private.exists()
    assert public.read_text() == "somebody else's"


def test_a_file_that_is_not_a_key_is_refused(tmp_path: Path, keys: tuple[Path, Path]) -> None:
    private, public = keys
    other = X25519PrivateKey.generate()
    no_ed25519 = tmp_path / "other.key"
    no_ed25519.write_bytes(other.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    no_ed25519.chmod(0o600)
    no_public = tmp_path / "other.pub"
    no_public.write_bytes(
        other.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    )
    public.chmod(0o600)
    for path in (public, no_ed25519):
        with pytest.raises(CannotStart, match="not a private key"):
            read_private_key(path)
    for path in (private, no_public):
        with pytest.raises(CannotStart, match="not a public key"):
            read_public_key(path)
    with pytest.raises(CannotStart, match="cannot be read: No such file"):
        read_public_key(tmp_path / "missing")


@given(st.data())
def test_a_signed_head_with_any_change_is_refused(data: st.DataObject) -> None:
    content = bytearray(TEXT.rstrip("\n").encode())
    place = data.draw(st.integers(0, len(content) - 1))
    content[place] ^= data.draw(st.integers(1, 127))
    with pytest.raises(LedgerCorrupt, match=r"head\.json"):
        read_signed_head(content.decode("latin-1"), KEY.public_key(), "head.json")


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"n_entries": 24}, "not signed with this key, or was changed"),
        ({"head": "cd" * 32}, "not signed with this key"),
        ({"at": "2026-11-21T20:07:49.124+00:00"}, "not signed with this key"),
        ({"signature": "AAAA"}, "not signed with this key"),
        ({"signature": "not base64!"}, "not a signed head"),
        ({"signature": None}, "nothing, not a text"),
        ({"n_entries": -1}, "below 0"),
        ({"head": "AB" * 32}, "64 hexadecimal"),
        ({"at": "now"}, "not a time of the form"),
        ({"format": "tacit-signed-head-2"}, "must be one of tacit-signed-head-1"),
        ({"more": 1}, "the field 'more' is unknown"),
    ],
)
def test_a_signed_head_that_says_something_else_is_refused(
    change: dict[str, object], why: str
) -> None:
    text = json.dumps({**json.loads(TEXT), **change}, sort_keys=True, separators=(",", ":"))
    with pytest.raises(LedgerCorrupt, match=why):
        read_signed_head(text, KEY.public_key(), "head.json")


def test_a_signature_has_one_text() -> None:
    letter = TEXT[TEXT.index("==") - 1]  # four of its six bits say nothing
    other = TEXT.replace(f"{letter}==", f"{chr(ord(letter) + 1)}==")
    with pytest.raises(LedgerCorrupt, match="not in canonical form"):
        read_signed_head(other, KEY.public_key(), "head.json")


def test_another_key_did_not_sign_it() -> None:
    stranger = Ed25519PrivateKey.generate().public_key()
    with pytest.raises(LedgerCorrupt, match="not signed with this key"):
        read_signed_head(TEXT, stranger, "head.json")


def test_a_head_is_of_some_entries_and_a_digest() -> None:
    for fields in ((-1, HEAD.digest, HEAD.at), (True, HEAD.digest, HEAD.at), (1, "x", HEAD.at)):
        with pytest.raises(Wrong):
            Head(*fields)
