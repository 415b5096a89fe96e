"""Why calls about collections are refused: texts for people, with no token or answer in them."""

from accountant.ledger.credentials import Role
from cube.refusals import (
    InvalidRequest,
    NameTaken,
    NotAllowed,
    StoreUnavailable,
    TooLarge,
    UnknownName,
)
from proxy.api.requests import Caller
from proxy.collections.store import Outcome


def check_owner(caller: Caller, name: str) -> None:
    """Raise NotAllowed unless the caller owns what has this name."""
    if caller.role is not Role.OWNER or not caller.opens(name):
        raise NotAllowed(
            f"Only an owner to whom {name} is open may do this.",
            hint="Ask the server's owner for a credential that names it, or every table.",
        )


def name_taken(name: str) -> NameTaken:
    """The refusal of a name that something has."""
    return NameTaken(
        f"{name} is the name of something else here, or this campaign was opened before.",
        hint="Choose another name: that of a collection stays its own, also once it is closed.",
    )


def unknown_collection(name: str) -> UnknownName:
    """The refusal of a collection that is not there, or not open to the caller: the same text."""
    return UnknownName(f"There is no collection {name[:64]!a}.", hint="Ask its owner for the name.")


def unknown_to_respondent(name: str) -> UnknownName:
    """The refusal of a collection that is not there, or takes other tokens: the same text."""
    return UnknownName(
        f"There is no collection {name[:64]!a} that takes this token.",
        hint="Ask who sent you here for the name; a collection by invitation takes the tokens "
        "that its owner hands out.",
    )


def check_taken(name: str, outcome: Outcome | None) -> None:
    """Raise InvalidRequest or TooLarge if an answer comes too late, or is one too many."""
    if outcome is Outcome.CLOSED:
        raise InvalidRequest(f"{name} takes no answers any more.")
    if outcome is Outcome.FULL:
        raise TooLarge(f"{name} has as many answers as its owner asked for.")


def no_place() -> StoreUnavailable:
    """The refusal of a server that was given no place for answers."""
    return StoreUnavailable(
        "This server has no place for answers.",
        hint="Its owner has to say where, in the configuration: collections_file under [server].",
    )
