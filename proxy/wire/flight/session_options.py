"""Flight's actions on a session: the same settings as SET, under the same names.

ADBC sends them for ``adbc.flight.sql.session.option.tacit.half_width``, and closes its session when
a connection is closed. Their bodies are the messages themselves, not wrapped as those of Flight SQL
are. Each option of a request is set, or refused, by itself; the result lists the names that were
refused.
"""

from collections.abc import Callable, Mapping
from typing import Final

import grpc
from google.protobuf.message import DecodeError, Message

from cube.refusals import InvalidRequest, InvalidTarget, UnknownName
from planner.sql.settings import (
    CLIENT_SETTINGS,
    NAMESPACE,
    SETTING_NAMES,
    ResetSetting,
    SetSetting,
    SettingValue,
    setting_named,
    setting_value,
)
from proxy.protocol import flight_pb2
from proxy.wire.sessions.sessions import Sessions, setting_text

SESSION_ACTIONS: Final[Mapping[str, str]] = {
    "SetSessionOptions": "Set tacit.half_width, tacit.relative, tacit.epsilon and the like. Free.",
    "GetSessionOptions": "The settings of this session.",
    "CloseSession": "Forget the settings of this session.",
}


def session_action(
    action: flight_pb2.Action, sessions: Sessions, context: grpc.ServicerContext
) -> Message:
    """The result of an action that `SESSION_ACTIONS` names.

    Raises
    ------
    InvalidRequest
        If its body is not the expected message.
    """
    try:
        return _ACTIONS[action.type](action.body, sessions, context)
    except DecodeError:
        raise InvalidRequest(f"The action {action.type} came with another message.") from None


def _set(body: bytes, sessions: Sessions, context: grpc.ServicerContext) -> Message:
    result = flight_pb2.SetSessionOptionsResult()
    options = flight_pb2.SetSessionOptionsRequest.FromString(body).session_options
    for name in sorted(options, key=_order):
        try:
            _set_one(name, options[name], sessions, context)
        except UnknownName:
            result.errors[name].value = flight_pb2.SetSessionOptionsResult.INVALID_NAME
        except InvalidTarget:
            result.errors[name].value = flight_pb2.SetSessionOptionsResult.INVALID_VALUE
    return result


def _order(name: str) -> tuple[int, str]:
    """A fraction is set before the size that goes with it, in whatever order they came."""
    setting = name.lower().removeprefix(NAMESPACE)
    place = SETTING_NAMES.index(setting) if setting in SETTING_NAMES else len(SETTING_NAMES)
    return place, name


def _set_one(
    name: str,
    option: flight_pb2.SessionOptionValue,
    sessions: Sessions,
    context: grpc.ServicerContext,
) -> None:
    if name.lower() in CLIENT_SETTINGS:
        return
    setting = setting_named(name.lower())
    value = _value(setting, name, option)
    command = ResetSetting(setting) if value is None else SetSetting(setting, value)
    sessions.change([command], context)


def _value(setting: str, name: str, option: flight_pb2.SessionOptionValue) -> SettingValue | None:
    """The value in an option; None, which removes the setting, if the option is empty."""
    match option.WhichOneof("option_value"):
        case None:
            return None
        case "bool_value":
            return setting_value(setting, name, str(option.bool_value))
        case "string_value":
            return setting_value(setting, name, option.string_value)
        case "int64_value":
            return setting_value(setting, name, str(option.int64_value))
        case "double_value":  # its shortest decimal text is what the client wrote
            return setting_value(setting, name, repr(option.double_value))
        case _:
            raise InvalidTarget(f"{name} must be a number.")


def _get(body: bytes, sessions: Sessions, context: grpc.ServicerContext) -> Message:
    flight_pb2.GetSessionOptionsRequest.FromString(body)
    settings = sessions.settings(context)
    result = flight_pb2.GetSessionOptionsResult()
    for name in SETTING_NAMES:
        text = setting_text(settings, name)
        if text is not None:
            result.session_options[NAMESPACE + name].string_value = text
    return result


def _close(body: bytes, sessions: Sessions, context: grpc.ServicerContext) -> Message:
    flight_pb2.CloseSessionRequest.FromString(body)
    sessions.close(context)
    return flight_pb2.CloseSessionResult(status=flight_pb2.CloseSessionResult.CLOSED)


_ACTIONS: Final[Mapping[str, Callable[[bytes, Sessions, grpc.ServicerContext], Message]]] = {
    "SetSessionOptions": _set,
    "GetSessionOptions": _get,
    "CloseSession": _close,
}
