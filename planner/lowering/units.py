"""Counts of the privacy unit, by its key: as counts of rows, or of units where they have several.

    COUNT(customer)                                        every row has one: COUNT(*)
    COUNT(DISTINCT customer)                               COUNT(*), or a count of units
    COUNT(DISTINCT CASE WHEN p THEN customer END)          the same FILTER (WHERE p)
    COUNT(DISTINCT customer) FILTER (WHERE WAS_CUT(customer))   of those with rows left out

The key itself is in no other place: it has no levels, and its values are private.
"""

from sqlglot import exp

from planner.lowering.rows import Rows
from planner.lowering.summands import conjuncts
from planner.sql.nodes import WAS_CUT, unit_count


def count_of_units(node: exp.Expr, rows: Rows) -> exp.Expr:
    """A count of the unit's key, over axes; another node as it is.

    Where no unit has several rows, none has rows left out either.
    """
    counted = node.this if isinstance(node, exp.Filter) else node
    if not isinstance(counted, exp.Count | exp.ApproxDistinct):
        return node
    inner, is_distinct = counted.this, isinstance(counted, exp.ApproxDistinct)
    if isinstance(inner, exp.Distinct) and len(inner.expressions) == 1:
        inner, is_distinct = inner.expressions[0], True
    conditions: list[exp.Expr] = []
    if is_distinct and isinstance(inner, exp.Case):
        inner, conditions = _under_conditions(inner)
    if not rows.is_unit(inner):
        return node
    if isinstance(node, exp.Filter):
        conditions = [*conditions, *conjuncts(node.expression.this)]
    own = [one for one in conditions if not _is_about_cuts(one, rows)]
    only_cut = len(own) < len(conditions)
    found: exp.Expr
    if is_distinct and rows.schema.rows_per_unit_max > 1:
        found = unit_count(str(rows.schema.unit), counted, only_cut=only_cut)
    else:
        found = exp.Count(this=exp.Star(), big_int=True)
        found.meta.update(counted.meta)
        own = conditions  # of which WAS_CUT is refused, as everywhere else
    if own:
        where = exp.and_(*(rows.resolved(one.copy()) for one in own))
        found = exp.Filter(this=found, expression=exp.Where(this=where))
    return found


def _under_conditions(case: exp.Case) -> tuple[exp.Expr, list[exp.Expr]]:
    """The value of CASE WHEN p THEN value END, and its conditions; of others, itself."""
    ifs, default = case.args["ifs"], case.args.get("default")
    if len(ifs) != 1 or case.this is not None or not isinstance(default, exp.Null | None):
        return case, []
    return ifs[0].args["true"], list(conjuncts(ifs[0].this))


def _is_about_cuts(condition: exp.Expr, rows: Rows) -> bool:
    """Whether a condition is WAS_CUT of the unit's key."""
    condition = condition.unnest()
    return (
        isinstance(condition, exp.Anonymous)
        and condition.name.upper() == WAS_CUT
        and len(condition.expressions) == 1
        and rows.is_unit(condition.expressions[0])
    )
