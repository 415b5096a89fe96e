"""What the ledger may hold of a token that is a password, and what it refuses to hold."""

import json
from typing import Any

import pytest

from accountant.ledger.credentials import AccessBook, Credential, Proof, Role, SealedVerifier
from accountant.ledger.entries import AccessGranted
from accountant.ledger.entry_json import read_text, write
from accountant.ledger.limits import Payer

SEALED = SealedVerifier("ab" * 32, "cd" * 32)


def credential(
    name: str,
    analyst: str = "ann",
    verifier: SealedVerifier | None = SEALED,
    proof: Proof = Proof.TOKEN,
) -> Credential:
    return Credential(
        id=name,
        payer=Payer(analyst),
        role=Role.ANALYST,
        tables=("people",),
        proof=proof,
        shown_as=f"shown by {name}",
        verifier=verifier,
    )


@pytest.mark.parametrize("verifier", [None, SEALED])
def test_an_entry_with_a_password_or_without_is_read_as_it_was_written(
    verifier: SealedVerifier | None,
) -> None:
    body = AccessGranted(credential("a", verifier=verifier), "owner")
    kind, text = write(body)
    assert read_text(kind, text) == body
    assert ("scram" in json.loads(text)) == (verifier is not None)


@pytest.mark.parametrize(
    "wrong",
    [
        None,
        {},
        {"stored_key": "ab" * 32},
        {"stored_key": "ab" * 32, "server_key": "AB" * 32},
        {"stored_key": "ab" * 32, "server_key": "ab" * 31},
        {"stored_key": "ab" * 32, "server_key": 1},
    ],
)
def test_a_password_that_is_none_is_not_read(wrong: Any) -> None:
    kind, text = write(AccessGranted(credential("a"), "owner"))
    changed = json.dumps({**json.loads(text), "scram": wrong})
    with pytest.raises((ValueError, KeyError, TypeError)):
        read_text(kind, changed)


def test_only_a_token_is_a_password() -> None:
    with pytest.raises(ValueError, match="credential with a token"):
        credential("a", proof=Proof.CERTIFICATE)


def test_an_analysts_passwords_are_those_not_revoked() -> None:
    book = AccessBook()
    for one in (
        credential("a"),
        credential("b"),
        credential("c", "bob"),
        credential("d", verifier=None),
        credential("e", verifier=None, proof=Proof.CERTIFICATE),
    ):
        book = book.granted(one)
    assert [one.id for one in book.with_verifiers("ann")] == ["a", "b"]
    assert [one.id for one in book.without("a").with_verifiers("ann")] == ["b"]
    assert book.with_verifiers("nobody") == ()
