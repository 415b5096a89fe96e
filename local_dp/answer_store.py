"""Keeps a respondent's answers in a file; one process at a time writes it.

The file is replaced as a whole and synced, so that a crash leaves the one before or the one after.
A file that cannot be read is an error, never an empty one: an answer that was given must not be
drawn again.

With an answer is kept the token that it is sent under, so that it counts once however often it is
sent. Where none is given, a secret in a file beside it makes one for each campaign: of no two
campaigns the same or related, and the same again should the answers be lost.

The argument is in `proofs/campaigns.md`.
"""

import fcntl
import hmac
import json
import os
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from local_dp.respondent import Kept

SECRET_BYTES = 32


class AnswersUnreadable(Exception):
    """The file of answers is there, and is not what this program wrote."""


class FileAnswers:
    """Answers in a JSON file, which a lock beside it guards.

    Parameters
    ----------
    path : Path
        Of the file; its folder is there.
    """

    def __init__(self, path: Path) -> None:
        self._path = path

    def once(self, campaign: str, make: Callable[[int], Kept], token: str = "") -> Kept:
        """The kept answer to a campaign; if there is none, the one that is made now."""
        with self._alone():
            answers = self._read()
            is_kept = campaign in answers
            if not is_kept:
                answers[campaign] = make(sum(one.epsilon_units for one in answers.values()))
            if not answers[campaign].token:  # a new one, or one that was kept before tokens were
                own = token or self._own_token(campaign, is_kept=is_kept)
                answers[campaign] = replace(answers[campaign], token=own)
                self._write(answers)
            return answers[campaign]

    def _own_token(self, campaign: str, *, is_kept: bool) -> str:
        """The respondent's own token for a campaign, 64 hexadecimal digits."""
        beside = self._path.with_name(self._path.name + ".secret")
        try:
            secret = beside.read_bytes()
        except FileNotFoundError:
            if is_kept:  # and sent, maybe: under a token of another secret it would count twice
                raise AnswersUnreadable(
                    f"{beside} is lost, so the token of an answer in {self._path.name} cannot be "
                    "made again. Restore the file"
                ) from None
            secret = secrets.token_bytes(SECRET_BYTES)
            _replace(beside, secret)
        if len(secret) != SECRET_BYTES:
            raise AnswersUnreadable(f"{beside} does not hold a secret. Restore it from a copy")
        return hmac.digest(secret, campaign.encode(), "sha256").hex()

    @contextmanager
    def _alone(self) -> Iterator[None]:
        lock = os.open(
            self._path.with_name(self._path.name + ".lock"), os.O_RDWR | os.O_CREAT, 0o600
        )
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield
        finally:
            os.close(lock)

    def _read(self) -> dict[str, Kept]:
        try:
            text = self._path.read_text()
        except FileNotFoundError:
            return {}
        try:
            return {
                name: Kept(int(units), str(answer), *map(str, token))
                for name, (units, answer, *token) in json.loads(text).items()
            }
        except (ValueError, TypeError, AttributeError):
            raise AnswersUnreadable(
                f"{self._path} is not a file of answers. Restore it from a copy"
            ) from None

    def _write(self, answers: dict[str, Kept]) -> None:
        value = {name: [one.epsilon_units, one.answer, one.token] for name, one in answers.items()}
        _replace(self._path, json.dumps(value).encode())


def _replace(path: Path, content: bytes) -> None:
    """Have a file hold this, whole, also after a crash."""
    beside = path.with_name(path.name + ".new")
    file = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    try:
        with os.fdopen(file, "wb") as out:
            out.write(content)
            out.flush()
            os.fsync(out.fileno())
    except BaseException:
        beside.unlink(missing_ok=True)
        raise
    beside.replace(path)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
