"""Who is calling: tokens, certificates, roles, and the interceptor that checks every call."""

from proxy.identity.authenticate import (
    ANONYMOUS,
    Authenticator,
    LedgerAuthenticator,
    PasswordAuthenticator,
    RejectionReason,
)
from proxy.identity.interceptor import FailureLog, IdentityInterceptor, caller_of
from proxy.identity.issuing import (
    Grant,
    expiry,
    issue_certificate,
    issue_token,
    revoke,
    warnings_beside,
    warnings_of,
)
from proxy.identity.presented import HEADER, PresentedCredentials, names_in, presented_token
from proxy.identity.roles import WHO_ASKS, WHO_OBSERVES, check_asks
from proxy.identity.scram import login_failed
from proxy.identity.tokens import is_token

__all__ = [
    "ANONYMOUS",
    "HEADER",
    "WHO_ASKS",
    "WHO_OBSERVES",
    "Authenticator",
    "FailureLog",
    "Grant",
    "IdentityInterceptor",
    "LedgerAuthenticator",
    "PasswordAuthenticator",
    "PresentedCredentials",
    "RejectionReason",
    "caller_of",
    "check_asks",
    "expiry",
    "is_token",
    "issue_certificate",
    "issue_token",
    "login_failed",
    "names_in",
    "presented_token",
    "revoke",
    "warnings_beside",
    "warnings_of",
]
