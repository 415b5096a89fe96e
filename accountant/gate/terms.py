"""The terms of Gaussian noise in what is asked: the table's, or for the first time those asked for.

Every decision depends on the plan and the history of charges alone. Proof:
proofs/gaussian_noise.md, "Why the order never changes".
"""

from collections.abc import Sequence
from dataclasses import replace

from accountant.cost.zcdp_account import GaussianAccount
from cube.measurement import GaussianTerms, PlannedMeasurement
from cube.refusals import InvalidRequest
from cube.statistic import Asked, PlannedGaussian


def account_with(
    account: GaussianAccount, plan: Sequence[PlannedMeasurement], statistics: Sequence[Asked]
) -> GaussianAccount:
    """The account of Gaussian noise once a plan and statistics are paid for.

    Rows add nothing to it but the terms: they are paid for cell by cell.

    Raises
    ------
    InvalidRequest
        As `terms_of`.
    """
    terms = terms_of(account, plan, statistics)
    if terms is None:
        return account
    with_gaussian = (asked for asked in statistics if isinstance(asked, PlannedGaussian))
    return account.followed_by(sum(asked.rho.units for asked in with_gaussian), terms)


def terms_of(
    account: GaussianAccount, plan: Sequence[PlannedMeasurement], statistics: Sequence[Asked]
) -> GaussianTerms | None:
    """The terms for Gaussian noise: the table's, if it has any. None if nothing asked has it.

    Raises
    ------
    InvalidRequest
        If the table has another delta.
    """
    wanted = {planned.terms for planned in plan if planned.terms is not None}
    wanted |= {asked.terms for asked in statistics if isinstance(asked, PlannedGaussian)}
    if not wanted:
        return None
    terms = account.terms or min(wanted, key=lambda one: one.order)
    if any(one.delta != terms.delta for one in wanted):
        raise InvalidRequest(
            "The table's Gaussian noise is already accounted with another delta.",
            hint=f"Ask with delta {float(terms.delta):g}.",
        )
    return terms


def on_terms(
    plan: Sequence[PlannedMeasurement], terms: GaussianTerms | None
) -> list[PlannedMeasurement]:
    """The same plan with its Gaussian rows on these terms."""
    return [replace(one, terms=terms) if one.is_gaussian else one for one in plan]
