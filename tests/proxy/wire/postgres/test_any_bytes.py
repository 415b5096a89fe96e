"""Any bytes at all: the parsers of the wire return a message or refuse, and do nothing else."""

import struct
from collections.abc import Callable

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from cube.refusals import Refused
from proxy.wire.postgres import frontend
from proxy.wire.postgres.bound_values import bound
from proxy.wire.postgres.frontend import (
    MESSAGE_BYTES_MAX,
    PASSWORD_BYTES_MAX,
    STARTUP_BYTES_MAX,
    ProtocolViolation,
)
from proxy.wire.postgres.login import command_line
from proxy.wire.postgres.pg_types import BY_OID

TAGS = b"QPBDECSHXFdcfp"
LENGTHS = st.integers(-(2**31), 2**31 - 1)
# Bodies that are nearly right reach further than any bytes do.
NAMES = st.sampled_from([b"", b"a\0", b"\0", b"name\0", b"\xff\0"])
COUNTS = st.sampled_from([-1, 0, 1, 2, 1999, 2001, 32767]).map(lambda n: struct.pack("!h", n))
WORDS = st.one_of(
    NAMES, COUNTS, LENGTHS.map(lambda n: struct.pack("!i", n)), st.binary(max_size=12)
)
BODIES = st.one_of(st.binary(max_size=200), st.lists(WORDS, max_size=12).map(b"".join))


def refused_or(parse: Callable[[], object]) -> object:
    """What it returns; None if it refuses, which is all that it may do besides."""
    try:
        return parse()
    except Refused:
        return None


@given(LENGTHS)
def test_a_first_packet_is_short(length: int) -> None:
    try:
        found = frontend.first_length(struct.pack("!i", length))
    except ProtocolViolation:
        return
    assert 4 <= found <= STARTUP_BYTES_MAX


@given(st.integers(0, 255), LENGTHS, st.booleans())
@example(ord("Q"), 300_000_000, True)
@example(ord("p"), 300_000_000, False)
@example(ord("p"), PASSWORD_BYTES_MAX + 5, False)
def test_a_message_is_no_longer_than_is_allowed(tag: int, length: int, is_logged_in: bool) -> None:
    header = struct.pack("!i", length)
    try:
        found = frontend.message_length(tag, header, is_logged_in=is_logged_in)
    except ProtocolViolation:
        return
    assert tag in TAGS
    assert 0 <= found <= (MESSAGE_BYTES_MAX if is_logged_in else PASSWORD_BYTES_MAX)


@given(st.one_of(st.binary(min_size=4, max_size=300), BODIES.map(lambda body: b"\0\3\0\0" + body)))
def test_any_first_packet_is_read_or_refused(body: bytes) -> None:
    refused_or(lambda: frontend.first_packet(body))


@given(st.sampled_from(list(TAGS)), BODIES)
def test_any_message_is_read_or_refused(tag: int, body: bytes) -> None:
    refused_or(lambda: frontend.message(tag, body))


@given(BODIES)
def test_any_beginning_of_a_login_is_read_or_refused(body: bytes) -> None:
    refused_or(lambda: frontend.sasl_initial(body))


@given(
    st.sampled_from(sorted(BY_OID)), st.integers(0, 1), st.one_of(BODIES, st.text().map(str.encode))
)
def test_any_value_of_any_type_is_read_or_refused(oid: int, form: int, value: bytes) -> None:
    refused_or(lambda: bound([value], [form], [BY_OID[oid]], ["a"]))


@given(st.text())
def test_any_options_are_read_or_refused(text: str) -> None:
    refused_or(lambda: list(command_line(text)))


@pytest.mark.parametrize("oid", sorted(BY_OID))
@given(text=st.text(alphabet='{},"\\0123456789-+.eET: NULtrue', max_size=40))
def test_nearly_a_value_is_read_or_refused(oid: int, text: str) -> None:
    refused_or(lambda: bound([text.encode()], [0], [BY_OID[oid]], ["a"]))
