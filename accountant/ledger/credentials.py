"""Credentials: who has access, in which role, to which tables; what the ledger stores of them.

A token is 32 random bytes, so its plain SHA-256 does not help a reader of the ledger: it cannot be
guessed. A certificate is identified by the name in it. Callers with neither have no access, and a
credential gives access only to the tables that it names.

Values only. How a call presents a credential is defined in the proxy; proofs/credentials.md
explains why the values stored here do not let a reader log in.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType
from typing import Final

from accountant.ledger.limits import Payer, Subject, check_name
from cube.runtime import cached_property

EVERY_TABLE: Final = "*"  # for owners and auditors of a whole ledger
_KEY: Final = re.compile("[0-9a-f]{64}", re.ASCII)


class Role(StrEnum):
    """The role of a person: what they may do with the tables of their credential."""

    ANALYST = "analyst"  # query
    OWNER = "owner"  # query, set limits, read the ledger and its reports
    AUDITOR = "auditor"  # read the ledger and its reports
    COLLECTOR = "collector"  # tell streams who came
    FEDERATION = "federation"  # buy noisy rows of a holder's table for another ledger

    @property
    def oversees(self) -> bool:
        """Whether the role sees the numbers that a private history hides."""
        return self in {Role.OWNER, Role.AUDITOR}


class Proof(StrEnum):
    """How a credential is presented."""

    TOKEN = "token"  # noqa: S105 - a word; `shown_as` is the SHA-256 of the token, in hexadecimal
    CERTIFICATE = "certificate"  # `shown_as` is the name in the client's certificate


@dataclass(frozen=True, slots=True)
class SealedVerifier:
    """Keys that check, by SCRAM-SHA-256, that a caller knows a token: sealed with the ledger's key.

    Without that key, which is in a file of its own, it says nothing to readers of the ledger.

    Parameters
    ----------
    stored_key : str
        RFC 5802's StoredKey, against which the client's proof is checked: sealed, in hexadecimal.
    server_key : str
        RFC 5802's ServerKey, with which the server proves that it has this: the same.
    """

    stored_key: str
    server_key: str

    def __post_init__(self) -> None:
        if not _KEY.fullmatch(self.stored_key) or not _KEY.fullmatch(self.server_key):
            raise ValueError("a SCRAM key must be 64 hexadecimal digits")


@dataclass(frozen=True, slots=True, kw_only=True)
class Credential:
    """One person's access.

    Parameters
    ----------
    id : str
        A short public name, by which it is listed and revoked.
    payer : Payer
        The analyst and their groups.
    role : Role
    tables : tuple of str
        The tables to which it gives access; ``*`` for every table.
    proof : Proof
    shown_as : str
        What a call presents, in the form that `Proof` defines.
    expires : str, optional
        Its expiry, as UTC text: from then on it gives no access.
    verifier : SealedVerifier, optional
        The verifier of a token that is also the password for the PostgreSQL wire.
    """

    id: str
    payer: Payer
    role: Role
    tables: tuple[str, ...]
    proof: Proof
    shown_as: str
    expires: str | None = None
    verifier: SealedVerifier | None = None

    def __post_init__(self) -> None:
        check_name(self.id)
        if not self.shown_as:
            raise ValueError("the credential has no secret, so anybody could use it")
        if list(self.tables) != sorted(set(self.tables)):
            raise ValueError("tables must be sorted and distinct")
        if self.verifier is not None and self.proof is not Proof.TOKEN:
            raise ValueError("only a credential with a token can have a SCRAM verifier")

    def opens(self, table: str) -> bool:
        """Whether it gives access to a table."""
        return EVERY_TABLE in self.tables or table in self.tables

    def is_expired(self, now: str) -> bool:
        """Whether it has expired at `now`, UTC text of the same form."""
        return self.expires is not None and now >= self.expires


@dataclass(frozen=True)
class AccessBook:
    """Every credential ever issued, and which were revoked, computed from the ledger's entries."""

    issued: Mapping[str, Credential] = field(default_factory=lambda: MappingProxyType({}))
    revoked: frozenset[str] = frozenset()
    _by_proof: Mapping[tuple[Proof, str], Credential] = field(
        default_factory=lambda: MappingProxyType({}), repr=False
    )

    def granted(self, credential: Credential) -> "AccessBook":
        """With one more credential; ValueError if its name or its proof was used before."""
        key = (credential.proof, credential.shown_as)
        if credential.id in self.issued:
            raise ValueError("a credential was issued before under the same name")
        known = self._by_proof.get(key)
        if known is not None and known.id not in self.revoked:
            raise ValueError("another credential in force has the same secret")
        return AccessBook(
            MappingProxyType({**self.issued, credential.id: credential}),
            self.revoked,
            MappingProxyType({**self._by_proof, key: credential}),
        )

    def without(self, credential_id: str) -> "AccessBook":
        """With one revoked; ValueError if there is none to revoke."""
        if credential_id not in self.issued or credential_id in self.revoked:
            raise ValueError("the revoked credential is not in force")
        return AccessBook(self.issued, self.revoked | {credential_id}, self._by_proof)

    @cached_property
    def _groups(self) -> Mapping[str, tuple[str, ...]]:
        groups: dict[str, set[str]] = {}
        for credential in self.issued.values():
            if credential.id not in self.revoked:
                groups.setdefault(credential.payer.analyst, set()).update(credential.payer.groups)
        return {analyst: tuple(sorted(names)) for analyst, names in groups.items()}

    def payer(self, analyst: str) -> Payer:
        """An analyst with all their groups.

        These are the groups of all their credentials; otherwise a group's limit could be avoided by
        using another credential.
        """
        return Payer(analyst, self._groups.get(analyst, ()))

    def subjects(self) -> frozenset[Subject]:
        """Every analyst and every group that a credential in force names; it may have expired."""
        return frozenset(
            subject for analyst in self._groups for subject in self.payer(analyst).subjects
        )

    @cached_property
    def _with_verifiers(self) -> Mapping[str, tuple[Credential, ...]]:
        found: dict[str, list[Credential]] = {}
        for credential in self.issued.values():
            if credential.verifier is not None and credential.id not in self.revoked:
                found.setdefault(credential.payer.analyst, []).append(credential)
        return {analyst: tuple(credentials) for analyst, credentials in found.items()}

    def with_verifiers(self, analyst: str) -> tuple[Credential, ...]:
        """An analyst's credentials that are passwords and not revoked. They may have expired."""
        return self._with_verifiers.get(analyst, ())

    def shown(self, proof: Proof, shown_as: str) -> Credential | None:
        """The credential with this proof, unless it was revoked. It may have expired."""
        found = self._by_proof.get((proof, shown_as))
        return None if found is None or found.id in self.revoked else found
