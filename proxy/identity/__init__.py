"""Who is calling: tokens, certificates, roles, and the interceptor that checks every call."""

from proxy.identity.authenticate import Authenticator, PasswordAuthenticator, RejectionReason
from proxy.identity.interceptor import IdentityInterceptor, caller_of
from proxy.identity.presented import HEADER, PresentedCredentials, names_in, presented_token
from proxy.identity.roles import WHO_OBSERVES, check_asks
from proxy.identity.scram import login_failed

__all__ = [
    "HEADER",
    "WHO_OBSERVES",
    "Authenticator",
    "IdentityInterceptor",
    "PasswordAuthenticator",
    "PresentedCredentials",
    "RejectionReason",
    "caller_of",
    "check_asks",
    "login_failed",
    "names_in",
    "presented_token",
]
