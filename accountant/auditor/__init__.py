"""The auditor: checks a ledger from its text alone, with code independent of the server's."""

from accountant.auditor.signed_head import (
    Head,
    SignedHead,
    read_private_key,
    read_signed_head,
    sign_head,
)
from accountant.auditor.verdict import CollectionVerdict, StreamVerdict, TableVerdict, Verdict

__all__ = [
    "CollectionVerdict",
    "Head",
    "SignedHead",
    "StreamVerdict",
    "TableVerdict",
    "Verdict",
    "read_private_key",
    "read_signed_head",
    "sign_head",
]
