"""A respondent's answers in a file: kept before they are given, by one process at a time.

The file is replaced as a whole and synced, so that a crash leaves the one before or the one after.
A file that cannot be read is an error, never an empty one: an answer that was given must not be
drawn again.

A secret in a file beside it gives the respondent a token for each campaign: the same whenever the
answer is sent again, so that it counts once, and of no two campaigns the same or related.

The argument is in `proofs/campaigns.md`.
"""

import fcntl
import hmac
import json
import os
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
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

    def once(self, campaign: str, make: Callable[[int], Kept]) -> Kept:
        """The kept answer to a campaign; if there is none, the one that is made now."""
        with self._alone():
            answers = self._read()
            if campaign not in answers:
                made = make(sum(kept.epsilon_units for kept in answers.values()))
                answers[campaign] = made
                self._write(answers)
            return answers[campaign]

    def token(self, campaign: str) -> str:
        """The respondent's own token for a campaign, 64 hexadecimal digits.

        Parameters
        ----------
        campaign : str
            Its digest.
        """
        with self._alone():
            beside = self._path.with_name(self._path.name + ".secret")
            try:
                secret = beside.read_bytes()
            except FileNotFoundError:
                secret = secrets.token_bytes(SECRET_BYTES)
                _replace(beside, secret)
        if len(secret) != SECRET_BYTES:
            raise AnswersUnreadable(f"{beside} does not hold a secret")
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
                name: Kept(int(units), str(answer))
                for name, (units, answer) in json.loads(text).items()
            }
        except (ValueError, TypeError, AttributeError):
            raise AnswersUnreadable(f"{self._path} does not hold answers") from None

    def _write(self, answers: dict[str, Kept]) -> None:
        value = {name: [kept.epsilon_units, kept.answer] for name, kept in answers.items()}
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
