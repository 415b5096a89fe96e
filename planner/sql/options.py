"""Reads OPTIONS(..): the accuracy of a SELECT's answers, and how they are made from counts.

Accuracy (half_width, confidence, epsilon, simultaneous, relative, at_least, decide), and what of
each unit counts (rows_per_unit, unit_sum_max), are inherited by the SELECTs inside. The
`AnswerOptions` (level, replicates and statistic of a test, consistency of grouping sets) are of the
SELECT that names them, and refused where they would change nothing; what to fall back on, and which
holders of a federated table have to answer, is of the whole statement.
"""

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final

from cube.refusals import InvalidTarget
from cube.target import PosteriorMethod
from planner.sql.exact_numbers import exact_number
from planner.sql.messages import shortened, suggestion
from planner.workload import Consistency, Fallback, RequestedTarget

REQUESTED = "requested"  # where a SELECT's meta data have the target that its OPTIONS name
MANNER = "manner"  # in the same: what else they name

TARGET_NAMES = (
    *("half_width", "confidence", "epsilon", "simultaneous", "relative", "at_least", "decide"),
    "unit_sum_max",
)
TEST_NAMES = ("level", "replicates", "statistic")
# Options that are on or off.
SWITCHES = ("nonnegative_counts", "integer_counts", "refuse_unknown_values", "certainty")
NOISY = "noisy"  # what extremes may be
STATISTICS = {"pearson": False, "g2": True}  # of a test, and whether it is the likelihood ratio
OPTION_NAMES = (
    *TARGET_NAMES,
    *TEST_NAMES,
    "consistency",
    "extremes",
    "fallback",
    "posterior",
    "holders",
    "rows_per_unit",
    *SWITCHES,
)
HOLDERS = {"all": False, "any": True}  # of a federated table, and whether some of them will do
_SWITCH = {"true": True, "on": True, "false": False, "off": False}
AUTO: Final = "auto"
_WHOLE: Final = re.compile(r"[0-9]{1,9}", re.ASCII)
N_SIMULTANEOUS_MAX = 1_000_000
N_REPLICATES_MAX = 100_000  # a p-value is then known to a thousandth or better
DEFAULT_LEVEL = Fraction(1, 20)
N_REPLICATES = 999
LEAST_SURE = Fraction(3, 5)  # of a decision; one that is right half of the time is none


@dataclass(frozen=True, slots=True)
class Option:
    """One ``name => value`` as it was written; a number stays text, because epsilon is exact."""

    name: str
    value: str
    is_number: bool


@dataclass(frozen=True, slots=True)
class AnswerOptions:
    """What OPTIONS say beside accuracy; None where they do not.

    Parameters
    ----------
    level : float, optional
        Of a test: the probability of rejecting what is true.
    n_replicates : int, optional
        Of a test: tables that are simulated.
    is_likelihood_ratio : bool, optional
        Of a test: whether its statistic is ``G**2``.
    consistency : Consistency, optional
        Of the counts of grouping sets.
    noisy_extremes : bool
        Whether MIN and MAX may be read off noisy counts.
    """

    level: float | None = None
    n_replicates: int | None = None
    is_likelihood_ratio: bool | None = None
    consistency: Consistency | None = None
    noisy_extremes: bool = False

    def over(self, other: "AnswerOptions") -> "AnswerOptions":
        """Fill in what these leave open from `other`."""
        ratio = self.is_likelihood_ratio
        return AnswerOptions(
            other.level if self.level is None else self.level,
            other.n_replicates if self.n_replicates is None else self.n_replicates,
            other.is_likelihood_ratio if ratio is None else ratio,
            other.consistency if self.consistency is None else self.consistency,
            self.noisy_extremes or other.noisy_extremes,
        )

    def refuse_test(self) -> None:
        """Refuse the options of a test, in a SELECT that is none."""
        if (self.level, self.n_replicates, self.is_likelihood_ratio) != (None, None, None):
            raise InvalidTarget(
                f"{', '.join(TEST_NAMES[:-1])} and {TEST_NAMES[-1]} are options of a test.",
                hint="Leave them out, or use DP_CHI2_TEST(a, b).",
            )

    def refuse_consistency(self) -> None:
        """Refuse the option of grouping sets, in a SELECT that has none."""
        if self.consistency is not None:
            raise InvalidTarget(
                "consistency is an option of counts by GROUPING SETS, CUBE or ROLLUP.",
                hint="Leave it out, or count with GROUP BY CUBE(a, b).",
            )


NO_MANNER = AnswerOptions()


def read_options(options: Sequence[Option]) -> tuple[RequestedTarget, AnswerOptions]:
    """The target and the manner that options name.

    Raises
    ------
    InvalidTarget
        If an option is unknown, named twice, or no value in its range.
    """
    named: dict[str, Fraction] = {}
    words: dict[str, Any] = {}
    switches: dict[str, bool] = {}
    seen: set[str] = set()
    for option in options:
        name = option.name
        if name not in OPTION_NAMES:
            raise InvalidTarget(
                f"OPTIONS has no option {shortened(name)}.",
                hint=suggestion(name, OPTION_NAMES)
                or f"The options are {', '.join(OPTION_NAMES)}.",
            )
        if name in seen:
            raise InvalidTarget(f"OPTIONS names {name} twice.", hint="Write it once.")
        seen.add(name)
        if name in _WORDS:
            words[name] = _WORDS[name](option.value)
        elif name in SWITCHES:
            switches[name] = switched(name, option.value)
        else:
            named[name] = _number(option)
    _check_widths(named)
    check_decide(named.get("decide"))
    level, replicates = named.get("level"), named.get("replicates")
    check_test(level, replicates)
    target = RequestedTarget(
        half_width=_double(named.get("half_width")),
        confidence=_double(named.get("confidence")),
        epsilon_cap=named.get("epsilon"),
        simultaneous=_simultaneous(named.get("simultaneous")),
        relative=_double(named.get("relative")),
        at_least=_double(named.get("at_least")),
        fallback=words.get("fallback"),
        nonnegative_counts=switches.get("nonnegative_counts"),
        integer_counts=switches.get("integer_counts"),
        refuse_unknown_values=switches.get("refuse_unknown_values"),
        decide=_double(named.get("decide")),
        certainty=switches.get("certainty"),
        posterior=words.get("posterior"),
        any_holders=words.get("holders"),
        rows_per_unit=words.get("rows_per_unit"),
        unit_sum_max=_unit_sum(named.get("unit_sum_max")),
    )
    n_replicates = None if replicates is None else int(replicates)
    is_noisy = "extremes" in seen
    return target, AnswerOptions(
        _double(level), n_replicates, words.get("statistic"), words.get("consistency"), is_noisy
    )


def _rows_per_unit(written: str) -> int:
    """The number, or 0 for one that fits."""
    if written.lower() == AUTO:
        return 0
    if not _WHOLE.fullmatch(written) or not int(written):
        raise InvalidTarget(
            f"rows_per_unit cannot be {shortened(written)}.",
            hint="It says how many of the rows of each unit that the statement is about count: a "
            "whole number from 1, or 'auto' to find one that fits.",
        )
    return int(written)


def _unit_sum(most: Fraction | None) -> Fraction | None:
    if most is not None and most <= 0:
        raise InvalidTarget(
            "unit_sum_max must be above 0.",
            hint="It says how much one unit adds to a sum at most.",
        )
    return most


def _check_extremes(name: str) -> None:
    if name.lower() != NOISY:
        raise InvalidTarget(
            f"extremes cannot be {shortened(name)}.",
            hint="extremes => 'noisy' answers MIN and MAX from noisy counts.",
        )


def _is_likelihood_ratio(name: str) -> bool:
    if name.lower() not in STATISTICS:
        raise InvalidTarget(
            f"statistic cannot be {shortened(name)}.",
            hint="statistic => 'pearson' is Pearson's chi-square, the default; 'g2' is the "
            "likelihood ratio.",
        )
    return STATISTICS[name.lower()]


def _is_any(name: str) -> bool:
    if name.lower() not in HOLDERS:
        raise InvalidTarget(
            f"holders cannot be {shortened(name)}.",
            hint="holders => 'all', the default, asks every holder of a federated table; 'any' "
            "answers from those that can, and says so.",
        )
    return HOLDERS[name.lower()]


def consistency_named(name: str) -> Consistency:
    """A kind of consistency by its name."""
    known = [kind.value for kind in Consistency]
    if name.lower() not in known:
        raise InvalidTarget(
            f"{shortened(name)} is not a kind of consistency.",
            hint=f"The kinds are {', '.join(known)}.",
        )
    return Consistency(name.lower())


def fallback_named(name: str) -> Fallback:
    """What a statement may fall back on, by its name."""
    if name.lower() not in set(Fallback):
        raise InvalidTarget(
            f"{shortened(name)} is not a fallback.",
            hint="'history' gives the best known answer, 'model' asks the newest synthetic "
            "table, 'none' refuses an answer that cannot be paid for, and 'error' also "
            "refuses one that misses its target.",
        )
    return Fallback(name.lower())


def posterior_named(name: str) -> PosteriorMethod:
    """How posteriors are computed, by its name."""
    if name.lower() not in set(PosteriorMethod):
        raise InvalidTarget(
            f"{shortened(name)} is not a way to compute posteriors.",
            hint="'exact' inverts the transform with a proved bound, 'convolution' adds up a "
            "Fourier series, and 'monte_carlo' draws.",
        )
    return PosteriorMethod(name.lower())


# What each option means that is one of a few words.
_WORDS: Final[Mapping[str, Callable[[str], object]]] = {
    "consistency": consistency_named,
    "extremes": _check_extremes,
    "statistic": _is_likelihood_ratio,
    "fallback": fallback_named,
    "posterior": posterior_named,
    "holders": _is_any,
    "rows_per_unit": _rows_per_unit,
}


def switched(name: str, value: str) -> bool:
    """Whether an option or a setting that is on or off is on."""
    if value.lower() not in _SWITCH:
        raise InvalidTarget(
            f"{name} must be true or false, not {shortened(value)}.", hint="Write true or false."
        )
    return _SWITCH[value.lower()]


def check_test(level: Fraction | None, replicates: Fraction | None) -> None:
    """Refuse the level and the replicates of a test that are out of range, or too few for it."""
    level = DEFAULT_LEVEL if level is None else level
    replicates = Fraction(N_REPLICATES) if replicates is None else replicates
    if not 0 < level < 1:
        raise InvalidTarget(
            "level must lie strictly between 0 and 1.", hint="A usual value is 0.05."
        )
    if replicates.denominator != 1 or not 1 <= replicates <= N_REPLICATES_MAX:
        raise InvalidTarget(
            f"replicates must be a whole number from 1 to {N_REPLICATES_MAX}.",
            hint=f"A usual value is {N_REPLICATES}.",
        )
    if level * (replicates + 1) < 1:
        raise InvalidTarget(
            f"{int(replicates)} replicates are too few for level {float(level):g}.",
            hint=f"Ask for {math.ceil(1 / level) - 1} or more, or for a higher level.",
        )


def _number(option: Option) -> Fraction:
    if not option.is_number:
        raise InvalidTarget(
            f"{shortened(option.name)} must be a number, not {shortened(option.value)}.",
            hint="Write the number without quotes, as in half_width => 50.",
        )
    magnitude = exact_number(option.value.removeprefix("-"))
    return -magnitude if option.value.startswith("-") else magnitude


def _check_widths(named: Mapping[str, Fraction]) -> None:
    if "relative" in named and "half_width" in named:
        raise InvalidTarget("OPTIONS has both half_width and relative.", hint="Keep one of them.")
    check_relative(named.get("relative"), named.get("at_least"))


def check_relative(relative: Fraction | float | None, at_least: Fraction | float | None) -> None:
    """Refuse a relative target that is out of range, or a size without one."""
    if at_least is not None and relative is None:
        raise InvalidTarget(
            "at_least needs relative.", hint="Add relative, or use half_width alone."
        )
    if relative is not None and not 0 < relative < 1:
        raise InvalidTarget(
            "relative must be a fraction strictly between 0 and 1.",
            hint="0.05 stands for 5 percent.",
        )
    if at_least is not None and not (at_least > 0 and math.isfinite(at_least)):
        raise InvalidTarget(
            "at_least must be a positive number.",
            hint="Write a number that the answer surely reaches.",
        )


def check_decide(named: Fraction | float | None) -> None:
    """Refuse a probability of a decision that is out of range."""
    if named is not None and not LEAST_SURE <= named < 1:
        raise InvalidTarget(
            f"decide must be a probability from {float(LEAST_SURE):g} to below 1.",
            hint="decide => 0.99 stops measuring once a claim holds, or does not, with a "
            "probability of 0.99.",
        )


def _double(named: Fraction | None) -> float | None:
    return None if named is None else float(named)


def _simultaneous(named: Fraction | None) -> int | None:
    if named is None:
        return None
    if named.denominator != 1 or not 1 <= named <= N_SIMULTANEOUS_MAX:
        raise InvalidTarget(
            f"simultaneous must be a whole number from 1 to {N_SIMULTANEOUS_MAX}.",
            hint="Write how many answers you will compare, such as the number of groups of a "
            "query.",
        )
    return int(named)
