"""A learned network as JSON values, and as text for Graphviz.

Names of columns and released numbers only.
"""

from typing import Any

from synthesis.networks.learned import LearnedNetwork


def network_json(network: LearnedNetwork) -> dict[str, Any]:
    """A network as JSON values."""
    return {
        "columns": list(network.dag.columns),
        "arcs": [
            {
                "from": one.parent,
                "to": one.child,
                "directed": one.is_directed,
                "support": one.support,
            }
            for one in network.arcs
        ],
        "method": network.method.value,
        "degree": network.degree,
        "score": network.score,
        "effective_rows": network.n_effective,
    }


def network_dot(network: LearnedNetwork) -> str:
    """A network in the language of Graphviz; an arc whose direction is open has no arrowhead."""
    lines = [f"  {_quoted(name)};" for name in network.dag.columns]
    for one in network.arcs:
        style = "" if one.is_directed else " [dir=none]"
        lines.append(f"  {_quoted(one.parent)} -> {_quoted(one.child)}{style};")
    return "\n".join(["digraph network {", "  node [shape=box];", *lines, "}", ""])


def _quoted(name: str) -> str:
    r"""A name as a quoted text.

    >>> print(_quoted('a "b" \\'))
    "a \"b\" \\"
    """
    escaped = name.replace("\\", "\\\\").replace('"', '\\"').replace("\n", " ")
    return f'"{escaped}"'
