"""The JSON of entries about streams, and back. entry_json.py knows all other kinds."""

import dataclasses
from typing import Final

from accountant.ledger.json_fields import Fields, typed
from accountant.ledger.limits import Window
from accountant.ledger.stream_entries import EpochBegun, EpochReleased, StreamDropped, StreamOpened

_NUMBERS: Final = ("universe", "n_places", "p1", "alpha", "epsilon_units")


def write_stream(body: StreamOpened) -> Fields:
    """The fields of a stream that was opened; without a budget, say, there is no field of it."""
    fields = dataclasses.asdict(body) | {"epochs": body.epochs.value}
    if body.budget_units is None:
        del fields["budget_units"]
    del fields["predicates"]
    return fields | ({"predicates": list(body.predicates)} if body.predicates else {})


def read_stream(fields: Fields) -> StreamOpened:
    """The stream that `write_stream` wrote."""
    return StreamOpened(
        column=typed(fields["column"], str),
        **{name: typed(fields[name], int) for name in _NUMBERS},
        epochs=Window(typed(fields["epochs"], str)),
        has_departures=typed(fields["has_departures"], bool),
        key=typed(fields["key"], str),
        budget_units=typed(fields["budget_units"], int) if "budget_units" in fields else None,
        by=typed(fields["by"], str),
        predicates=tuple(typed(name, str) for name in typed(fields.get("predicates", []), list)),
    )


def read_epoch(fields: Fields) -> EpochBegun:
    """An epoch that was begun."""
    return EpochBegun(
        typed(fields["epoch"], str),
        typed(fields["units_before"], int),
        typed(fields["units_after"], int),
    )


def write_release(body: EpochReleased) -> Fields:
    """The fields of a release; without predicates, there is no field of theirs."""
    of_all, *of_predicates = body.noisy_ones
    fields: Fields = {"epoch": body.epoch, "noisy_ones": of_all}
    return fields | ({"where": of_predicates} if of_predicates else {})


def read_release(fields: Fields) -> EpochReleased:
    """What `write_release` wrote."""
    of_predicates = [typed(ones, int) for ones in typed(fields.get("where", []), list)]
    return EpochReleased(
        typed(fields["epoch"], str), (typed(fields["noisy_ones"], int), *of_predicates)
    )


def read_drop(fields: Fields) -> StreamDropped:
    """A stream that is over."""
    return StreamDropped(typed(fields["by"], str))
