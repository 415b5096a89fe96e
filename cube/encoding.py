"""Blocks and statistics as plain JSON values, and back: how a ledger records what was measured.

Arrays are run-length encoded (``[length, value, length, value, ...]``), so a predicate on an
ordered axis is a few numbers that a person can check. The encoding is canonical: equal blocks have
equal text, which makes `fingerprint` an identity.
"""

import hashlib
import json
import math
from fractions import Fraction
from typing import Any
from weakref import WeakKeyDictionary, WeakValueDictionary

import numpy as np
from numpy.typing import NDArray

from cube.block import Partition, QueryBlock
from cube.gaussian import GaussianCounts
from cube.query import N_FACTOR_CELLS_MAX, Factor, LinearQuery, Term
from cube.statistic import Choice, ChoiceCandidate, Distance, Score


def encode_block(block: QueryBlock) -> dict[str, Any]:
    """A block as JSON values."""
    encoded: dict[str, Any] = {
        "terms": [_encode_term(term) for term in block.query.terms],
        "constant": str(block.query.constant),
    }
    if block.partition is not None:
        encoded["partition"] = _encode_array(block.partition.axes, block.partition.labels)
    return encoded


def decode_block(encoded: dict[str, Any]) -> QueryBlock:
    """The block that `encode_block` wrote.

    Raises
    ------
    ValueError, KeyError, TypeError
        If the values are not such an encoding.
    """
    terms = tuple(_decode_term(term) for term in encoded["terms"])
    query = LinearQuery(terms, Fraction(encoded["constant"]))
    partition = None
    if "partition" in encoded:
        axes, labels = _decode_array(encoded["partition"])
        partition = Partition(axes, labels)
    return QueryBlock(query, partition)


def encode_statistic(statistic: Distance | Choice | GaussianCounts) -> dict[str, Any]:
    """A statistic as JSON values."""
    if isinstance(statistic, GaussianCounts):
        return {"kind": "normal_counts", "block": encode_block(statistic.block)}
    if isinstance(statistic, Distance):
        return {
            "kind": "distance",
            "block": encode_block(statistic.block),
            "reference": list(statistic.reference),
        }
    return {
        "kind": "choice",
        "score": statistic.score.value,
        "views": [_encode_array(view.axes, view.labels) for view in statistic.views],
        "candidates": [[one.child, *one.parents] for one in statistic.candidates],
    }


def decode_statistic(encoded: dict[str, Any]) -> Distance | Choice | GaussianCounts:
    """The statistic that `encode_statistic` wrote.

    Raises
    ------
    ValueError, KeyError, TypeError
        If the values are not such an encoding.
    """
    match encoded["kind"]:
        case "normal_counts":
            return GaussianCounts(decode_block(encoded["block"]))
        case "distance":
            return Distance(decode_block(encoded["block"]), tuple(encoded["reference"]))
        case "choice":
            return Choice(
                Score(encoded["score"]),
                tuple(Partition(*_decode_array(view)) for view in encoded["views"]),
                tuple(
                    ChoiceCandidate(child, tuple(rest)) for child, *rest in encoded["candidates"]
                ),
            )
        case other:
            raise ValueError(f"there is no statistic called {other!r}")


def canonical_json(value: object) -> str:
    """The one JSON text of a value: sorted keys, no spaces, ASCII."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True)


# Weak: a block may hold megabytes, and a cache of names must not keep it alive.
_FINGERPRINTS: WeakKeyDictionary[QueryBlock, str] = WeakKeyDictionary()


def fingerprint(block: QueryBlock) -> str:
    """A name for what a block counts: equal encodings have equal fingerprints."""
    known = _FINGERPRINTS.get(block)
    if known is None:
        known = hashlib.sha256(canonical_json(encode_block(block)).encode()).hexdigest()
        _FINGERPRINTS[block] = known
    return known


def _encode_term(term: Term) -> dict[str, Any]:
    return {
        "scale": str(term.scale),
        "factors": [_encode_array(factor.axes, factor.values) for factor in term.factors],
    }


def _decode_term(encoded: dict[str, Any]) -> Term:
    factors = tuple(_decode_factor(factor) for factor in encoded["factors"])
    return Term(Fraction(encoded["scale"]), factors)


# Many statements share few predicates: equal factors in use are one object. Weak, as above.
_FACTORS: WeakValueDictionary[tuple[tuple[Any, ...], ...], Factor] = WeakValueDictionary()


def _decode_factor(encoded: dict[str, Any]) -> Factor:
    name = (tuple(encoded["axes"]), tuple(encoded["shape"]), tuple(encoded["runs"]))
    known = _FACTORS.get(name)
    if known is None:
        known = _FACTORS[name] = Factor(*_decode_array(encoded))
    return known


def _encode_array(axes: tuple[str, ...], values: NDArray[np.int64]) -> dict[str, Any]:
    flat = values.ravel()
    starts = np.concatenate(([0], np.flatnonzero(np.diff(flat)) + 1))
    lengths = np.diff(np.concatenate((starts, [flat.size])))
    runs = np.stack((lengths, flat[starts]), axis=1).ravel()
    return {"axes": list(axes), "shape": list(values.shape), "runs": runs.tolist()}


def _decode_array(encoded: dict[str, Any]) -> tuple[tuple[str, ...], NDArray[np.int64]]:
    shape = tuple(int(size) for size in encoded["shape"])
    if not 0 < math.prod(shape) <= N_FACTOR_CELLS_MAX:
        raise ValueError(f"an array of shape {shape}")
    runs = np.array(encoded["runs"], dtype=np.int64)
    lengths, values = runs[0::2], runs[1::2]
    if (lengths <= 0).any() or int(lengths.sum()) != math.prod(shape):
        raise ValueError("run lengths do not fill the array")
    return tuple(encoded["axes"]), np.repeat(values, lengths).reshape(shape)
