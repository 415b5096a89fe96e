"""A network as plain JSON values, and back, so that rows can be drawn from it again.

Released numbers and public names only.
"""

from typing import Any, Final

import numpy as np

from cube.query import Partition
from synthesis.privbayes.attributes import Attribute
from synthesis.privbayes.network import BayesianNetwork, Node, Parent

KIND: Final = "privbayes"


def network_json(network: BayesianNetwork) -> dict[str, Any]:
    """A network as JSON values."""
    return {
        "kind": KIND,
        "total": network.total,
        "columns": [
            {"name": one.name, "views": [view.labels.tolist() for view in one.views]}
            for one in network.attributes
        ],
        "nodes": [
            {
                "child": node.child,
                "parents": [{"column": one.column, "level": one.level} for one in node.parents],
                "degree_max": node.degree_max,
                "law": law.tolist(),
            }
            for node, law in zip(network.nodes, network.conditionals, strict=True)
        ],
    }


def network_of(encoded: dict[str, Any]) -> BayesianNetwork:
    """The network that `network_json` wrote.

    Raises
    ------
    ValueError, KeyError, TypeError
        If the values are not such a network.
    """
    if encoded["kind"] != KIND:
        raise ValueError(f"a model of kind {encoded['kind']!r}")
    attributes = tuple(
        Attribute(
            column["name"],
            tuple(
                Partition((column["name"],), np.array(labels, dtype=np.int64))
                for labels in column["views"]
            ),
        )
        for column in encoded["columns"]
    )
    nodes = tuple(
        Node(
            node["child"],
            tuple(Parent(one["column"], one["level"]) for one in node["parents"]),
            node["degree_max"],
        )
        for node in encoded["nodes"]
    )
    laws = tuple(np.array(node["law"], dtype=np.float64) for node in encoded["nodes"])
    return BayesianNetwork(attributes, nodes, laws, encoded["total"])
