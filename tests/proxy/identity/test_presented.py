"""What a call shows is read strictly: what is not exactly a credential is none."""

import base64
from typing import Any

import pytest
from cryptography import x509
from hypothesis import given
from hypothesis import strategies as st

from proxy.identity.presented import (
    Malformed,
    PresentedCredentials,
    names_in,
    presented_by,
    presented_token,
)
from proxy.shared.tokens import token_hash
from tests.support.certificates import Authority

TOKEN = (
    "tacit_" + "5y_lIfMOzQ0FqS4LfqMruKCxrTLpLJ3xPRz6qr_lwNU"
)  # always the same, as names of tests must be


class Call:
    """The part of a call's context that shows who it is."""

    def __init__(self, *headers: str | bytes, certificate: bytes | None = None) -> None:
        self._headers = headers
        self._certificate = certificate

    def invocation_metadata(self) -> list[tuple[str, str | bytes]]:
        return [("user-agent", "x"), *(("authorization", value) for value in self._headers)]

    def auth_context(self) -> dict[str, list[bytes]]:
        known = {"transport_security_type": [b"ssl"]}
        return (
            known if self._certificate is None else known | {"x509_pem_cert": [self._certificate]}
        )


def shown(
    *headers: str | bytes, may_be_basic: bool = False, certificate: bytes | None = None
) -> PresentedCredentials:
    call: Any = Call(*headers, certificate=certificate)
    return presented_by(call, may_be_basic=may_be_basic)


def basic(text: str) -> str:
    return "Basic " + base64.b64encode(text.encode()).decode()


@pytest.mark.parametrize("scheme", ["Bearer", "bearer", "BEARER"])
def test_a_bearer_token_is_known_by_its_hash(scheme: str) -> None:
    found = shown(f"{scheme} {TOKEN}")
    assert found == PresentedCredentials(token_hash=token_hash(TOKEN))
    assert TOKEN not in repr(found)


def test_a_call_without_a_header_shows_nothing() -> None:
    assert shown().is_nothing
    assert presented_token(Call()) is None  # type: ignore[arg-type] # what of a context it reads


@pytest.mark.parametrize("name", ["ann", "ann:with:colons", "Ännchen", ""])
def test_a_name_and_a_token_may_come_as_user_and_password(name: str) -> None:
    header = basic(f"{name}:{TOKEN}")
    for found in (header, header.rstrip("=")):
        assert shown(found, may_be_basic=True) == PresentedCredentials(token_hash(TOKEN), name)


@pytest.mark.parametrize(
    "headers",
    [
        ("",),
        (TOKEN,),
        ("Bearer",),
        (f"Bearer{TOKEN}",),
        (f"Bearer {TOKEN}x",),
        (f"Bearer {TOKEN} x",),
        (f"Bearer {TOKEN}\n",),
        (f"Digest {TOKEN}",),
        (f"Bearer {TOKEN}", f"Bearer {TOKEN}"),
        (basic(f"ann:{TOKEN}"),),  # this is for the handshake
        (b"Bearer \xff",),
    ],
    ids=str,
)
def test_anything_else_is_malformed(headers: tuple[str | bytes, ...]) -> None:
    with pytest.raises(Malformed):
        shown(*headers)


@pytest.mark.parametrize(
    "header",
    ["Basic", "Basic !", basic(TOKEN), basic(f"ann:{TOKEN}x"), basic(f"{TOKEN}:ann"), "Basic /w=="],
)
def test_so_is_a_user_without_a_token(header: str) -> None:
    with pytest.raises(Malformed):
        shown(header, may_be_basic=True)


@given(st.text(max_size=80), st.booleans())
def test_no_header_at_all_does_anything_else(header: str, may_be_basic: bool) -> None:
    with pytest.raises(Malformed):
        shown(header, may_be_basic=may_be_basic)


# Certificates.


@pytest.fixture(scope="module")
def authority() -> Authority:
    return Authority()


def test_alternative_names_are_who_a_certificate_is_of(authority: Authority) -> None:
    names = (
        x509.DNSName("ann.example"),
        x509.RFC822Name("ann@example.org"),
        x509.UniformResourceIdentifier("spiffe://example/ann"),
        x509.DirectoryName(x509.Name([])),
    )
    certificate = authority.sign("bob", alternatives=names).certificate
    expected = frozenset({"ann.example", "ann@example.org", "spiffe://example/ann"})
    assert names_in(certificate) == expected
    assert shown(certificate=certificate).certificate == expected


def test_only_a_certificate_without_them_is_known_by_its_common_name(authority: Authority) -> None:
    assert names_in(authority.sign("ann").certificate) == {"ann"}
    odd = (x509.DirectoryName(x509.Name([])),)
    assert names_in(authority.sign("ann", alternatives=odd).certificate) == frozenset()


def test_of_two_common_names_neither_counts(authority: Authority) -> None:
    assert names_in(authority.sign("ann", "bob").certificate) == frozenset()


def test_a_name_is_not_cut_at_a_zero_byte(authority: Authority) -> None:
    assert names_in(authority.sign("ann\0.example").certificate) == frozenset()


@pytest.mark.parametrize(
    "pem", [b"", b"no", b"-----BEGIN CERTIFICATE-----\n-----END CERTIFICATE-----\n"]
)
def test_what_is_no_certificate_has_no_names(pem: bytes) -> None:
    assert names_in(pem) == frozenset()
    assert not shown(certificate=pem).is_nothing
