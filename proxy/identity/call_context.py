"""Whose call a call is, for as long as it lasts: the door notes it, the services ask.

Noted by the call's own context object, which every part of one call is handed and no other call
is, whichever thread runs it. A call that nobody noted is a mistake of ours, never somebody's.
"""

from typing import Final
from weakref import WeakKeyDictionary

import grpc

from proxy.api.requests import Caller

_CALLERS: Final[WeakKeyDictionary[grpc.ServicerContext, Caller]] = WeakKeyDictionary()


def note_caller(context: grpc.ServicerContext, caller: Caller) -> None:
    """Say who makes a call."""
    _CALLERS[context] = caller


def caller_of(context: grpc.ServicerContext) -> Caller:
    """Who makes a call; RuntimeError if it did not come through the door."""
    caller = _CALLERS.get(context)
    if caller is None:
        raise RuntimeError("a call that came in without passing the door")
    return caller
