"""The caller of a call, for as long as it lasts: the interceptor sets it, the services read it.

It is kept under the call's own context object, which every part of one call receives and no other
call does, whichever thread runs it. A call without a caller is a programming error.
"""

from typing import Final
from weakref import WeakKeyDictionary

import grpc

from proxy.api.requests import Caller

_CALLERS: Final[WeakKeyDictionary[grpc.ServicerContext, Caller]] = WeakKeyDictionary()


def note_caller(context: grpc.ServicerContext, caller: Caller) -> None:
    """Set the caller of a call."""
    _CALLERS[context] = caller


def caller_of(context: grpc.ServicerContext) -> Caller:
    """The caller of a call; RuntimeError if the call did not pass the interceptor."""
    caller = _CALLERS.get(context)
    if caller is None:
        raise RuntimeError("a call that did not pass the identity interceptor")
    return caller
