"""SCRAM-SHA-256 by the exchange of RFC 7677, and everything that is no such exchange."""

import base64
import hashlib
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cube.refusals import NotAuthenticated
from proxy.identity.scram import BOUND, PLAIN, Password, ScramLogin
from proxy.identity.verifiers import (
    N_ITERATIONS,
    opened_verifier,
    salt_of,
    salted_password,
    sealed_verifier,
    verifier_of,
)
from proxy.shared.tokens import new_token, token_hash
from tests.support.scram_client import CLIENT_NONCE, ScramClient, logged_in, sha256, xor

# RFC 7677, section 3.
SALT = base64.b64decode("W22ZaJ0SNY7soEsUEjb6gQ==")
SERVER_NONCE = "%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
CLIENT_FIRST = b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO"
SERVER_FIRST = (
    b"r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
)
CLIENT_FINAL = (
    b"c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,"
    b"p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
)
SERVER_FINAL = b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="

ENDPOINT = hashlib.sha256(b"a certificate").digest()
TOKEN = new_token()
HASH = "a hash"


def password(token: str, analyst: str = "ann") -> Password:
    salted = salted_password(token.encode(), salt_of(analyst), N_ITERATIONS)
    return Password(token_hash(token), verifier_of(salted))


def login(*passwords: Password, endpoint_hash: bytes | None = None) -> ScramLogin:
    return ScramLogin(salt_of("ann"), lambda: passwords, endpoint_hash=endpoint_hash)


def of_the_standard() -> ScramLogin:
    verifier = verifier_of(salted_password(b"pencil", SALT, 4096))
    return ScramLogin(SALT, lambda: [Password(HASH, verifier)], new_nonce=lambda: SERVER_NONCE)


def test_the_exchange_of_the_standard() -> None:
    exchange = of_the_standard()
    assert exchange.first(PLAIN, CLIENT_FIRST) == SERVER_FIRST
    assert exchange.final(CLIENT_FINAL) == SERVER_FINAL
    assert exchange.token_hash == HASH


def test_the_client_of_these_tests_is_that_of_the_standard() -> None:
    client = ScramClient("pencil", name="user")
    assert client.first == CLIENT_FIRST
    assert client.final(SERVER_FIRST) == CLIENT_FINAL
    assert client.believes(SERVER_FIRST, SERVER_FINAL)


@pytest.mark.parametrize("place", range(len(CLIENT_FINAL)))
def test_no_byte_of_a_proof_may_be_another(place: int) -> None:
    exchange = of_the_standard()
    exchange.first(PLAIN, CLIENT_FIRST)
    changed = bytearray(CLIENT_FINAL)
    changed[place] ^= 1
    with pytest.raises(NotAuthenticated):
        exchange.final(bytes(changed))


def test_a_token_is_the_password() -> None:
    exchange = login(password(TOKEN))
    assert logged_in(exchange, ScramClient(TOKEN))
    assert exchange.token_hash == token_hash(TOKEN)


def test_whatever_name_is_in_the_message_the_salt_is_that_of_the_user() -> None:
    """Libpq sends none, pgjdbc a star, asyncpg the user's."""
    for name in ("", "*", "ann", "bob", "=2C=3D"):
        assert logged_in(login(password(TOKEN)), ScramClient(TOKEN, name=name))


def test_of_several_tokens_the_one_that_is_shown_counts() -> None:
    tokens = [new_token() for _ in range(5)]
    for token in tokens:
        exchange = login(*map(password, tokens))
        assert logged_in(exchange, ScramClient(token))
        assert exchange.token_hash == token_hash(token)
    with pytest.raises(NotAuthenticated):
        logged_in(login(*map(password, tokens)), ScramClient(TOKEN))


def test_the_token_of_another_analyst_is_no_password() -> None:
    with pytest.raises(NotAuthenticated):
        logged_in(login(password(TOKEN, "bob")), ScramClient(TOKEN))


def test_an_answer_does_not_depend_on_who_there_is() -> None:
    exchanges = (login(), login(password(TOKEN)), login(password(new_token())))
    answers = [exchange.first(PLAIN, ScramClient(TOKEN).first) for exchange in exchanges]
    forms = {re.sub(rb"r=[^,]*", b"", answer) for answer in answers}
    assert len(forms) == 1
    assert len({len(answer) for answer in answers}) == 1
    assert len(set(answers)) == len(answers)


def test_every_failure_is_the_same_to_see() -> None:
    texts = set()
    for exchange, client in (
        (login(), ScramClient(TOKEN)),
        (login(password(TOKEN)), ScramClient(new_token())),
        (login(password(TOKEN)), ScramClient(TOKEN, header="y,,", bound_to=b"x")),
        (login(password(TOKEN)), ScramClient(TOKEN, header="n,a=bob,")),
    ):
        with pytest.raises(NotAuthenticated) as caught:
            logged_in(exchange, client)
        texts.add((str(caught.value), caught.value.hint))
    assert len(texts) == 1


def test_a_token_issued_a_moment_ago_is_looked_for() -> None:
    known: list[Password] = []

    def refresh() -> bool:
        known.append(password(TOKEN))
        return True

    exchange = ScramLogin(salt_of("ann"), lambda: known, refresh=refresh)
    assert logged_in(exchange, ScramClient(TOKEN))


# What a login is bound to.


def test_binding_is_offered_where_there_is_a_certificate() -> None:
    assert login().mechanisms == (PLAIN,)
    assert login(endpoint_hash=ENDPOINT).mechanisms == (BOUND, PLAIN)


def test_a_bound_login_is_for_this_certificate() -> None:
    client = ScramClient(TOKEN, header="p=tls-server-end-point,,", bound_to=ENDPOINT)
    assert logged_in(login(password(TOKEN), endpoint_hash=ENDPOINT), client, BOUND)
    elsewhere = hashlib.sha256(b"another certificate").digest()
    for bound_to in (elsewhere, b"", ENDPOINT[:-1]):
        other = ScramClient(TOKEN, header=client.header, bound_to=bound_to)
        with pytest.raises(NotAuthenticated):
            logged_in(login(password(TOKEN), endpoint_hash=ENDPOINT), other, BOUND)


def test_a_client_that_was_not_told_of_binding_is_not_let_in() -> None:
    """It would bind, and somebody on the way has hidden that it may."""
    told_of_none = ScramClient(TOKEN, header="y,,")
    assert logged_in(login(password(TOKEN)), told_of_none)
    with pytest.raises(NotAuthenticated):
        logged_in(login(password(TOKEN), endpoint_hash=ENDPOINT), told_of_none)
    assert logged_in(login(password(TOKEN), endpoint_hash=ENDPOINT), ScramClient(TOKEN))


@pytest.mark.parametrize(
    ("mechanism", "header"),
    [
        (BOUND, "n,,"),
        (BOUND, "y,,"),
        (BOUND, "p=tls-unique,,"),
        (PLAIN, "p=tls-server-end-point,,"),
        ("SCRAM-SHA-1", "n,,"),
        ("", "n,,"),
    ],
)
def test_a_mechanism_and_its_header_belong_together(mechanism: str, header: str) -> None:
    client = ScramClient(TOKEN, header=header, bound_to=ENDPOINT if "p=" in header else b"")
    with pytest.raises(NotAuthenticated):
        logged_in(login(password(TOKEN), endpoint_hash=ENDPOINT), client, mechanism)


# What is no message of it.


@pytest.mark.parametrize(
    "message",
    [
        b"",
        b"n,,",
        b"n,,n=,r=",
        b"n=,r=" + CLIENT_NONCE.encode(),
        b"n,,n=,r=with space",
        b"n,,n=,r=with\x00zero",
        b"n,,m=ext,n=,r=" + CLIENT_NONCE.encode(),
        b"n,a=bob,n=,r=" + CLIENT_NONCE.encode(),
        b"n,,n=,r=" + b"x" * 257,
        b"n,,n=" + b"x" * 2048 + b",r=" + CLIENT_NONCE.encode(),
        b"n,,n=\xff,r=" + CLIENT_NONCE.encode(),
    ],
)
def test_what_is_no_first_message(message: bytes) -> None:
    with pytest.raises(NotAuthenticated):
        login(password(TOKEN)).first(PLAIN, message)


@given(st.binary(max_size=3000))
def test_any_bytes_are_refused_and_nothing_else_happens(message: bytes) -> None:
    exchange = login(password(TOKEN))
    with pytest.raises(NotAuthenticated):
        exchange.first(PLAIN, message)
    exchange.first(PLAIN, ScramClient(TOKEN).first)
    with pytest.raises(NotAuthenticated):
        exchange.final(message)


def test_the_order_is_kept() -> None:
    client = ScramClient(TOKEN)
    exchange = login(password(TOKEN))
    with pytest.raises(NotAuthenticated):
        exchange.final(client.final(SERVER_FIRST))
    answer = exchange.first(PLAIN, client.first)
    with pytest.raises(NotAuthenticated):
        exchange.first(PLAIN, client.first)
    with pytest.raises(RuntimeError):
        exchange.token_hash  # noqa: B018 - reading it is what is tested
    exchange.final(client.final(answer))
    with pytest.raises(NotAuthenticated):
        exchange.final(client.final(answer))


def test_a_login_that_was_heard_is_of_no_use_again() -> None:
    client = ScramClient(TOKEN)
    heard = login(password(TOKEN)).first(PLAIN, client.first)
    exchange = login(password(TOKEN))
    exchange.first(PLAIN, client.first)
    with pytest.raises(NotAuthenticated):
        exchange.final(client.final(heard))


# proofs/credentials.md.

KEY = bytes(range(32))


def test_a_seal_is_opened_by_its_key_alone() -> None:
    shown_as = token_hash(TOKEN)
    sealed = sealed_verifier(KEY, "ann", TOKEN, shown_as)
    assert opened_verifier(KEY, sealed, shown_as) == password(TOKEN).verifier
    for key, name in ((KEY[::-1], shown_as), (KEY, token_hash(new_token()))):
        other = opened_verifier(key, sealed, name)
        assert other.stored_key != password(TOKEN).verifier.stored_key
        assert other.server_key != password(TOKEN).verifier.server_key


def test_no_bit_of_a_verifier_shows_through_its_seal() -> None:
    """A bit that is the same under 40 keys by chance: once in 2e9 runs."""
    shown_as = token_hash(TOKEN)
    bits = set(range(256))
    seals = [
        int(sealed_verifier(number.to_bytes(32), "ann", TOKEN, shown_as).stored_key, 16)
        for number in range(40)
    ]
    assert {bit for bit in bits if len({seal >> bit & 1 for seal in seals}) == 2} == bits
    sealed = sealed_verifier(KEY, "ann", TOKEN, shown_as)
    assert sealed.stored_key != sealed.server_key


@pytest.mark.parametrize("key", ["stored_key", "server_key"])
def test_what_the_ledger_holds_is_no_password_and_makes_no_proof(key: str) -> None:
    """Not even for somebody who has heard a login."""
    client, known = ScramClient(TOKEN), password(TOKEN)
    sealed = getattr(sealed_verifier(KEY, "ann", TOKEN, known.token_hash), key)
    for shown in (known.token_hash, sealed):
        with pytest.raises(NotAuthenticated):
            logged_in(login(known), ScramClient(shown))
    heard = login(known).first(PLAIN, client.first)
    proof = base64.b64decode(client.final(heard).rpartition(b",p=")[2])
    guessed = bytes.fromhex(sealed)
    with pytest.raises(NotAuthenticated):
        forged(client, login(known), guessed, xor(proof, sha256(guessed, client.about(heard))))


def forged(client: ScramClient, exchange: ScramLogin, stored: bytes, client_key: bytes) -> None:
    """A login with keys instead of a password."""
    answer = exchange.first(PLAIN, client.first)
    made = xor(client_key, sha256(stored, client.about(answer)))
    exchange.final(client.without_proof(answer) + b",p=" + base64.b64encode(made))


def test_an_open_verifier_and_a_login_that_was_heard_are_enough_together() -> None:
    """Which is what the seal is for."""
    client, known = ScramClient(TOKEN), password(TOKEN)
    heard = login(known).first(PLAIN, client.first)
    proof = base64.b64decode(client.final(heard).rpartition(b",p=")[2])
    stored = known.verifier.stored_key
    exchange = login(known)
    forged(client, exchange, stored, xor(proof, sha256(stored, client.about(heard))))
    assert exchange.token_hash == token_hash(TOKEN)


def test_an_open_verifier_alone_is_not_enough() -> None:
    known = password(TOKEN)
    for key in (known.verifier.stored_key, known.verifier.server_key):
        with pytest.raises(NotAuthenticated):
            forged(ScramClient(TOKEN), login(known), known.verifier.stored_key, key)
