"""Whether a table in an engine is what its owner declared: its columns, then what a survey found.

Which rows are not, and how many, is private: a message names columns alone.
"""

from collections.abc import Mapping
from typing import Any

from cube.refusals import ConfigurationInvalid
from cube.schema import Schema
from proxy.sources.axis_sql import can_read
from proxy.sources.problems import Problems
from proxy.sources.source_column import SourceColumn


def check_columns(schema: Schema, label: str, columns: Mapping[str, SourceColumn]) -> None:
    """Raise ConfigurationInvalid unless every declared column is there, of a type that fits."""
    problems = Problems(label)
    for axis in schema.axes:
        column = columns.get(axis.name.casefold())
        keys = ("tables", schema.table, "columns", axis.name)
        if column is None:
            problems.add(keys, "the source has no such column")
        elif not can_read(axis, column):
            unlike = "in the source, which does not fit the declared kind"
            problems.add(keys, f"is {column.type_name} {unlike}")
    if schema.unit is not None and schema.unit.casefold() not in columns:
        problems.add(("tables", schema.table, "unit"), f"the source has no column {schema.unit}")
    problems.raise_if_any()


def check_survey(schema: Schema, label: str, found: Mapping[str, Any]) -> None:
    """Raise ConfigurationInvalid unless the rows are as declared."""
    problems = Problems(label)
    for place, axis in enumerate(schema.axes):
        if found[f"wrong_{place}"]:
            of_axis = ("tables", schema.table, "columns", axis.name)
            problems.add(of_axis, f"the source holds a value that is not of type {axis.sql_type}")
    keys = ("tables", schema.table, "unit")
    if found.get("has_no_unit"):
        problems.add(keys, "the source holds NULL; every row should be about a unit")
    if found.get("has_several"):
        problems.add(
            keys,
            "the source holds a value twice; a table that is counted where it is should have one "
            'row for each unit; or declare rows_per_unit_max, and extract = "file"',
        )
    problems.raise_if_any()
    if found["has_too_many"]:
        raise ConfigurationInvalid(
            f"{label} holds more records than tables.{schema.table}.n_records_max allows.",
            hint="Declare a public upper bound that is surely true.",
        )
