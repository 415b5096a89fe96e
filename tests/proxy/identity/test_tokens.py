"""Tokens cannot be guessed, and what is kept of them is of no use to a thief."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.shared.tokens import is_token, new_token, token_hash


def test_a_token_is_a_prefix_and_256_random_bits() -> None:
    tokens = {new_token() for _ in range(100)}
    assert len(tokens) == 100
    assert all(re.fullmatch("tacit_[A-Za-z0-9_-]{43}", token) for token in tokens)
    assert all(map(is_token, tokens))


def test_every_place_of_a_token_varies() -> None:
    """Of 200 draws one place is alike with probability 64**-199, and the last, of 16, 16**-199."""
    tokens = [new_token().removeprefix("tacit_") for _ in range(200)]
    assert all(len({token[place] for token in tokens}) > 1 for place in range(43))


@pytest.mark.parametrize("text", ["", "tacit_", "tacit_" + "A" * 42, "tacit_" + "A" * 44])
def test_what_is_too_short_or_too_long_is_no_token(text: str) -> None:
    assert not is_token(text)


@given(st.text())
def test_no_other_text_is_a_token(text: str) -> None:
    assert not is_token(text)
    assert not is_token("tacit_" + "A" * 42 + text) or re.fullmatch("[A-Za-z0-9_-]", text)


def test_the_hash_of_a_token_does_not_hold_it() -> None:
    token = new_token()
    assert re.fullmatch("[0-9a-f]{64}", token_hash(token))
    assert token[6:] not in token_hash(token)
    assert token_hash(token) != token_hash(new_token())
