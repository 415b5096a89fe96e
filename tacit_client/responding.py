"""Answers a collection: checks the campaign and randomises the answer on this machine.

    tacit_client.respond("survey", {"education": "school"}, store="answers.json", epsilon_max=2)

What a respondent tells this function does not leave the machine. The code that checks and
randomises is `local_dp.respondent`, which needs the standard library alone; here is only how its
answer travels. A respondent presents a token that says nothing of them, and no credential.
"""

import secrets
import warnings
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any, Final, TypeAlias

from local_dp.answer_store import FileAnswers
from local_dp.respondent import EPSILON_BITS, CampaignRefused, Given, Level, NothingKept, Respondent
from tacit_client import protobuf
from tacit_client.accuracy import exact_text
from tacit_client.address import address_of, channel_to, refused
from tacit_client.errors import missing_library, refusal_of_call

SERVICE: Final = "/tacit.v1.Respondents/"
TOKEN_BYTES: Final = 32
LATE: Final = "INVALID_ARGUMENT"  # the status, among others, of a collection that takes no answers
_Call: TypeAlias = Callable[[bytes], Any]


def respond(  # noqa: PLR0913 - who asks, what is told, and what it may lose
    collection: str,
    row: Mapping[str, Level],
    *,
    store: str | Path,
    epsilon_max: float | str,
    token: str | None = None,
    server: str | None = None,
    tls: bool | None = None,
    tls_root_certs: str | Path | None = None,
) -> bool:
    """Answer a collection once; again, the same answer is sent again, which counts once.

    Parameters
    ----------
    collection : str
        The name of the collection.
    row : mapping
        The true level of every attribute that is asked about. It stays here. A level that the
        collection does not list is answered by chance, and a warning says so once that is sent: to
        send nothing would tell the server what the row does not say. A row without the name of an
        attribute is refused, so let a row have all names, whatever the answers.
    store : str or Path
        The file in which this respondent's answers are kept, each with the token that it is sent
        under; a secret for tokens is beside it.
    epsilon_max : float or str
        What all answers in the store may lose together.
    token : str, optional
        For a collection by invitation; otherwise it is made here. An answer keeps its first one: it
        is sent again under that, with a warning, if another is given.
    server : str, optional
        ``HOST:PORT`` or ``grpc+tls://HOST:PORT``; by default TACIT_SERVER.
    tls, tls_root_certs
        As for `connect`.

    Returns
    -------
    bool
        Whether the answer was counted now; False if it had been before.

    Raises
    ------
    Refused
        What the server refuses.
    InterfaceError
        If the campaign is not what it has to be, would lose too much, or asks about an attribute
        that the row does not have: then nothing was drawn.
    AnswersUnreadable
        If the store is damaged: an answer that was given must not be drawn or counted again.
    """
    try:
        import grpc  # noqa: PLC0415 - nothing else here needs it
    except ImportError as missing:
        raise missing_library("respond()", "grpcio") from missing
    address = address_of(
        server,
        token=None,
        user=None,
        tls=tls,
        tls_root_certs=tls_root_certs,
        tls_cert=None,
        tls_key=None,
    )
    units = int(Fraction(exact_text(epsilon_max)) * 2**EPSILON_BITS)
    respondent = Respondent(FileAnswers(Path(store)), epsilon_units_max=units)
    with channel_to(grpc, address) as channel:
        asking = channel.unary_unary(f"{SERVICE}GetAssignment")
        sending = channel.unary_unary(f"{SERVICE}SubmitAnswer")
        first: list[tuple[int, str | int]] = [
            (1, collection),
            (2, token or secrets.token_hex(TOKEN_BYTES)),
        ]
        try:
            try:
                campaign = _asked(asking, first)
                given = respondent.answer(campaign, row, token or "")
            except grpc.RpcError as late:
                if late.code().name != LATE:
                    raise
                given = _given_before(grpc, asking, first, respondent, token or "", late)
            fields = [(1, collection), (2, given.token), (3, given.answer)]
            reply = sending(protobuf.written(fields))
        except grpc.RpcError as error:
            raise refusal_of_call(error) from None
        except (CampaignRefused, ValueError) as error:
            raise refused(f"No answer was sent: {error}.") from None
    for remark in given.remarks:  # after the answer is sent: the server sees the same without them
        warnings.warn(remark, UserWarning, stacklevel=2)
    return not protobuf.integer_of(protobuf.fields(reply), 1)


def _asked(asking: _Call, request: Sequence[tuple[int, str | int]]) -> str:
    """The text of a campaign."""
    return protobuf.text_of(protobuf.fields(asking(protobuf.written(request))), 1) or ""


def _given_before(  # noqa: PLR0913, PLR0917 - what was asked, and what became of it
    grpc: Any,
    asking: _Call,
    request: Sequence[tuple[int, str | int]],
    respondent: Respondent,
    token: str,
    late: Exception,
) -> Given:
    """The answer of a respondent who never heard whether it was counted.

    A respondent without a kept answer is too late, and nothing is drawn for them.
    """
    try:
        return respondent.kept(_asked(asking, [*request, (3, 1)]), token)
    except (grpc.RpcError, NothingKept):
        raise late from None
