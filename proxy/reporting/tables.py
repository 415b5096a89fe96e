"""The report for programs: one JSON object, or CSV by charge, epoch and change of rules.

Amounts are exact decimal text (or a fraction, ``1/3``, if the decimals do not end), never JSON
numbers: a reader that parses them as decimals gets the ledger's sums to the last unit.
"""

import csv
import io
import json
from collections.abc import Mapping
from fractions import Fraction
from heapq import merge
from itertools import zip_longest
from math import isfinite
from typing import Any, Final

from accountant.ledger import WIDTH_BINS, StreamOpened
from proxy.reporting.model import (
    Account,
    AnswerCounts,
    CollectionReport,
    LedgerReport,
    LimitUse,
    RenewingBudget,
    ReportedEpoch,
    StreamReport,
    TableReport,
    Users,
)
from proxy.reporting.wording import bought_text, dearest_charges, limit_text
from proxy.shared.amounts import exact_text, of_units

CSV_HEADER: Final = (
    "seq", "at", "kind", "table", "who", "groups", "epsilon", "epsilon_spent", "by", "detail",
)  # fmt: skip
_FORMULA_STARTS: Final = ("=", "+", "-", "@", "\t", "\r")  # a spreadsheet would evaluate the cell


def to_json(report: LedgerReport, versions: Mapping[str, str]) -> bytes:
    """The whole report as one JSON object."""
    verdict = report.verdict
    whole = {
        "as_of": report.as_of,
        "ledger": {
            "n_entries": verdict.n_entries,
            "head": verdict.head,
            "is_good": verdict.problem is None,
            "problem": verdict.problem,
            "notes": list(verdict.notes),
            "warnings": list(verdict.warnings),
            "signed_heads": [
                {"n_entries": one.head.n_entries, "head": one.head.digest, "at": one.head.at}
                for one in report.heads
            ],
        },
        "tables": [_table(table) for table in report.tables],
        "collections": [_collection(one) for one in report.collections],
        "streams": [_stream(one) for one in report.streams],
        "changes": [
            {
                "seq": change.seq,
                "at": change.at,
                "kind": change.kind,
                "table": change.table,
                "who": change.subject,
                "detail": change.detail,
                "by": change.by,
            }
            for change in report.changes
        ],
        "credentials": [
            {
                "id": credential.id,
                "analyst": credential.payer.analyst,
                "groups": list(credential.payer.groups),
                "role": credential.role.value,
                "tables": list(credential.tables),
                "proof": credential.proof.value,
                "expires": credential.expires,
                "state": state,
            }
            for credential, state in report.credentials
        ],
        "versions": dict(versions),
    }
    return (json.dumps(whole, indent=2, ensure_ascii=False) + "\n").encode()


def to_csv(report: LedgerReport) -> bytes:
    """One line per charge, epoch or change of rules, in the ledger's order, after the verdict."""
    buffer = io.StringIO(newline="")
    writer = csv.writer(buffer, lineterminator="\r\n")
    writer.writerow(CSV_HEADER)
    verdict = report.verdict
    found = ("verified", "") if verdict.problem is None else ("problem", verdict.problem)
    writer.writerow(_line(verdict.n_entries, report.as_of, found[0], detail=found[1]))
    changes = (
        (
            change.seq,
            _line(
                change.seq,
                change.at,
                change.kind.replace(" ", "_"),
                table=change.table,
                who=change.subject,
                by=change.by,
                detail=change.detail,
            ),
        )
        for change in report.changes
    )
    charges = [
        (
            bought.seq,
            _line(
                bought.seq,
                bought.at,
                "charge",
                table=table.name,
                who=bought.payer.analyst,
                groups=" ".join(json.dumps(name) for name in bought.payer.groups),
                epsilon=exact_text(of_units(bought.units)),
                epsilon_spent=exact_text(of_units(bought.units_after)),
                detail=bought_text(bought, table.declared),
            ),
        )
        for table in report.tables
        for bought in table.purchases
    ]
    epochs = [
        (
            epoch.begun_by,
            _line(
                epoch.begun_by,
                epoch.begun_at,
                "epoch_begun",
                table=stream.name,
                epsilon=exact_text(stream.epsilon),
                epsilon_spent=exact_text(epoch.spent),
                detail=epoch.name,
            ),
        )
        for stream in report.streams
        for epoch in stream.epochs
    ]
    writer.writerows(line for _, line in merge(changes, sorted(charges), sorted(epochs)))
    return buffer.getvalue().encode()


def _line(seq: int, at: str, kind: str, **texts: str) -> tuple[str, ...]:
    fields = {"seq": str(seq), "at": at, "kind": kind, **texts}
    return tuple(_harmless(fields.get(name, "")) for name in CSV_HEADER)


def _harmless(text: str) -> str:
    """Text that no spreadsheet evaluates as a formula."""
    return f"'{text}" if text.startswith(_FORMULA_STARTS) else text


def _renewal(renewing: RenewingBudget | None) -> dict[str, str] | None:
    """What counts towards a budget that renews, with what all of its tables have spent."""
    if renewing is None:
        return None
    return {
        "window": renewing.window,
        "renews_on": renewing.renews_on,
        "spent_in_window": exact_text(renewing.spent),
        "spent_in_year": exact_text(renewing.spent_in_year),
        "spent_in_all": exact_text(renewing.spent_in_all),
    }


def _table(table: TableReport) -> dict[str, Any]:
    found = table.found
    return {
        "table": table.name,
        "opened_at": table.opened_at,
        "budget": exact_text(table.budget),
        "spent": exact_text(table.spent),
        "spent_for_a_changed_row": exact_text(2 * table.spent),
        "left": exact_text(table.left),
        "shared_budget": table.shared_budget or None,
        "spent_elsewhere": exact_text(table.spent_elsewhere),
        "renewal": _renewal(table.renewing),
        "generations": [
            {"until": at, "spent": exact_text(spent)} for at, spent in table.generations
        ],
        "recomputed": None if found is None else exact_text(found.recomputed),
        "recomputed_exactly": None if found is None else found.exact,
        "spent_on_normal_noise": None if found is None else exact_text(found.gaussian),
        "spent_on_unit_counts": None if found is None else exact_text(found.unit_counts),
        "delta": None if found is None or found.delta is None else exact_text(found.delta),
        "n_charges": len(table.purchases),
        "n_measurements": table.n_measurements,
        "n_raised": table.n_raised,
        "n_pending": table.n_pending,
        "schema_digest": table.schema_digest,
        "data_fingerprint": table.data_fingerprint,
        "declaration": _declaration(table),
        "answers": _answers(table.answers),
        "analysts": [_account(account) for account in table.analysts],
        "groups": [_account(account) for account in table.groups],
        "months": [_account(account) for account in table.months],
        "dearest_charges": [
            {
                "seq": one.seq,
                "at": one.at,
                "analyst": one.payer.analyst,
                "epsilon": exact_text(of_units(one.units)),
                "bought": text,
            }
            for one, text in dearest_charges(table)
        ],
        "limits": [_allowance(allowance) for allowance in table.allowances],
        "columns": [
            {
                "column": cost.column,
                "n_levels": cost.n_levels,
                "is_exact": cost.is_exact,
                "starts": list(cost.starts),
                "at_most": [exact_text(of_units(units)) for units in cost.at_most],
                "at_least": [exact_text(of_units(units)) for units in cost.at_least],
            }
            for cost in table.columns
        ],
    }


def _collection(one: CollectionReport) -> dict[str, Any]:
    return {
        "collection": one.opened.name,
        "campaign": one.opened.digest,
        "epsilon_of_each_respondent": exact_text(one.epsilon),
        "recomputed": None if one.found is None else exact_text(one.found.recomputed),
        "n_attributes": one.n_attributes,
        "n_combinations": one.n_combinations,
        "n_answered_by_each": one.n_answered,
        "by_invitation": one.opened.is_by_invitation,
        "n_respondents_max": one.opened.n_respondents_max,
        "n_respondents": None if one.closed is None else one.closed.n_respondents,
        "opened_at": one.opened_at,
        "closed_at": one.closed_at or None,
    }


def _stream(one: StreamReport) -> dict[str, Any]:
    latest = {epoch.name: users for epoch, users in one.latest}
    return {
        "stream": one.name,
        "epochs": one.opened.epochs.value,
        "epsilon": exact_text(one.epsilon),
        "spent": exact_text(one.spent),
        "budget": None if one.budget is None else exact_text(one.budget),
        "predicates": list(one.opened.predicates),
        "n_epochs": len(one.epochs),
        "n_released": one.n_released,
        "is_recomputed": one.found is not None,
        "is_dropped": one.is_dropped,
        "opened_at": one.opened_at,
        "released": [
            {
                "epoch": epoch.name,
                "begun_at": epoch.begun_at,
                **_released(epoch, one.opened, latest.get(epoch.name, ())),
            }
            for epoch in one.epochs
        ],
    }


def _released(
    epoch: ReportedEpoch, opened: StreamOpened, users: tuple[Users, ...]
) -> dict[str, Any]:
    """The numbers of a release, and what they say if it is one of the latest."""
    of_all, *of_predicates = [
        {"noisy_ones": ones, "users": _users(found)}
        for ones, found in zip_longest(opened.first_numbers(epoch.noisy_ones) or (None,), users)
    ]
    return {**of_all, "where": dict(zip(opened.predicates, of_predicates, strict=False))}


def _users(users: Users | None) -> dict[str, float | None] | None:
    """What a release says; an end of an interval that is no number is null."""
    if users is None:
        return None
    high = users.high if isfinite(users.high) else None
    estimate = users.estimate if isfinite(users.estimate) else None
    return {"estimate": estimate, "low": users.low, "high": high}


def _declaration(table: TableReport) -> dict[str, Any] | None:
    declared = table.declared
    if declared is None:
        return None
    return {
        "neighbours": declared.neighbours,
        "unit": declared.unit,
        "rows_per_unit_max": declared.rows_per_unit_max,
        "rows_per_unit_max_by": dict(declared.rows_per_unit_max_by) or None,
        "groups_per_unit_max": declared.groups_per_unit_max,
        "separate_budget": declared.separate_budget or None,
        "n_records_max": declared.n_records_max,
        "version": declared.version,
        "columns": [dict(column.fields) for column in declared.columns],
    }


def _account(account: Account) -> dict[str, Any]:
    return {
        "name": account.name,
        "spent": exact_text(account.spent),
        "n_charges": account.n_charges,
        "answers": _answers(account.answers),
    }


def _answers(answers: AnswerCounts) -> dict[str, Any]:
    return {
        "n_free": answers.n_free,
        "n_paid": answers.n_paid,
        "plain_laplace_free": exact_text(of_units(answers.plain_units_free)),
        "plain_laplace_paid": exact_text(of_units(answers.plain_units_paid)),
        "width_shares_up_to": [*map(str, WIDTH_BINS), "wider"],
        "widths": list(answers.widths),
    }


def _allowance(allowance: LimitUse) -> dict[str, Any]:
    def text(value: Fraction | None) -> str | None:
        return None if value is None else exact_text(value)

    limit = allowance.limit
    return {
        "for": str(limit.subject),
        "epsilon": text(limit.epsilon),
        "window": limit.window.value,
        "per_query": text(limit.per_query),
        "words": limit_text(limit),
        "used": {str(subject): exact_text(value) for subject, value in allowance.used},
    }
