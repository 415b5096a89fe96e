"""Limits on the work of planning one statement, so that a short text cannot cause much work.

A text of a few hundred bytes can stand for millions of nodes (a name that stands for another name
twice, forty times over), for patterns that are matched on long texts, and for many tables of
millions of combinations. All of this work is counted before it is done, and refused beyond its
limit. So planning is bounded by these counts, independent of any deadline; every count is also a
step of the statement's pace.

The counts depend on the text, the schema and public tables alone, never on what other statements
left in a cache.
"""

from sqlglot import exp

from cube.pace import checkpoint
from cube.refusals import TooLarge
from planner.sql.messages import position, shown

N_PUT_IN_MAX = 20_000  # nodes; as many as the longest text has, some 60 microseconds each
N_PLAN_CELLS_MAX = 2**24  # 128 MB of whole numbers
N_STEPS_MAX = 2**31  # about nanoseconds, each rated at the worst that was measured
N_DRAWN_MAX = 2**26  # of the truths of all formulas, some 30 nanoseconds each
N_DRAWN_EACH = 2**19  # as much as a formula takes however few are drawn: 128 fit
N_STEPS_EACH = 3 * 2**19  # to plan and read one expression, however small
N_STEPS_A_NODE = 2**15  # to rewrite, write out and bind one node of it


class Allowance:
    """The remaining allowance of one statement."""

    def __init__(self) -> None:
        self._n_put_in = 0
        self._n_cells = 0
        self._n_steps = 0
        self._n_drawn = 0
        self._n_formulas = 0

    def put_in(self, meaning: exp.Expr, node: exp.Expr) -> None:
        """Count the nodes that a name stands for, before they replace `node`.

        Raises
        ------
        TooLarge
            If names stand for more than `N_PUT_IN_MAX` nodes in total.
        """
        checkpoint()
        left = N_PUT_IN_MAX - self._n_put_in
        n_nodes = sum(1 for _ in zip(meaning.walk(), range(left + 1), strict=False))
        self._n_put_in += n_nodes
        if n_nodes > left:
            raise TooLarge(
                f"With {shown(node)} written out, the names of the statement stand for more than "
                f"{N_PUT_IN_MAX} words and signs.",
                hint="Name shorter expressions, or use their names less often.",
                position=position(node),
            )

    def cells(self, n_cells: int, node: exp.Expr | None = None) -> None:
        """Count combinations of levels on which something is evaluated or multiplied out.

        Raises
        ------
        TooLarge
            If the total exceeds `N_PLAN_CELLS_MAX`.
        """
        checkpoint()
        self._n_cells += n_cells
        if self._n_cells > N_PLAN_CELLS_MAX:
            raise TooLarge(
                f"The statement evaluates expressions on more than {N_PLAN_CELLS_MAX} combinations "
                "of levels.",
                hint="Ask for fewer things at once, or use fewer columns in each expression.",
                position=None if node is None else position(node),
            )

    def draws(self, n_drawn: int, formula: str) -> None:
        """Count the numbers that will be drawn for the intervals of a formula.

        Raises
        ------
        TooLarge
            If the total exceeds `N_DRAWN_MAX` numbers.
        """
        checkpoint()
        self._n_formulas += 1
        self._n_drawn += n_drawn + N_DRAWN_EACH
        if self._n_drawn > N_DRAWN_MAX:
            raise TooLarge(
                f"With {formula} the statement has {self._n_formulas} averages, ratios or "
                f"quantiles, whose intervals are cut from more than {N_DRAWN_MAX} draws.",
                hint="Ask for fewer averages, ratios or quantiles at once, for fewer groups, or "
                "with a lower confidence.",
            )

    def steps(self, n_steps: int, n_nodes: int, node: exp.Expr) -> None:
        """Count the work of evaluating one expression.

        Raises
        ------
        TooLarge
            If it is more than `N_STEPS_MAX` in all.
        """
        checkpoint()
        before = self._n_steps
        self._n_steps += n_steps + N_STEPS_EACH + N_STEPS_A_NODE * n_nodes
        if self._n_steps > N_STEPS_MAX:
            alone = self._n_steps - before
            raise TooLarge(
                f"{shown(node)} needs up to {alone} steps on the public levels, after {before} for "
                f"what stands before it; {N_STEPS_MAX} are allowed for a statement.",
                hint="Use fewer columns and shorter texts and patterns in it, or ask for fewer "
                "things at once.",
                position=position(node),
            )
