"""Data sources: how private tables are opened, encoded as level positions, and counted."""

from proxy.sources.closed import closed_database
from proxy.sources.extract_file import ExtractPlace, Told, WhyMade, untold
from proxy.sources.location import (
    OF_TEXT,
    SCHEME,
    TIMEOUT_OF_HOLDERS,
    TIMEOUT_OF_HOLDERS_MAX,
    Extract,
    HeldTable,
    HolderPlace,
    Location,
    PostgresRows,
    PrivateView,
    SourceFiles,
    SourceKind,
    SourceLocation,
    SparkTable,
    TableLocation,
    UnitRows,
    default_format,
    kind_of,
)
from proxy.sources.opening import (
    TIMEOUT_SECONDS,
    Extracted,
    StaysThere,
    growing_rows,
    table_rows,
)
from proxy.sources.problems import Problems, Section
from proxy.sources.text_format import KINDS_BY_NAME, TextFormat, inner_suffix

__all__ = [
    "KINDS_BY_NAME",
    "OF_TEXT",
    "SCHEME",
    "TIMEOUT_OF_HOLDERS",
    "TIMEOUT_OF_HOLDERS_MAX",
    "TIMEOUT_SECONDS",
    "Extract",
    "ExtractPlace",
    "Extracted",
    "HeldTable",
    "HolderPlace",
    "Location",
    "PostgresRows",
    "PrivateView",
    "Problems",
    "Section",
    "SourceFiles",
    "SourceKind",
    "SourceLocation",
    "SparkTable",
    "StaysThere",
    "TableLocation",
    "TextFormat",
    "Told",
    "UnitRows",
    "WhyMade",
    "closed_database",
    "default_format",
    "growing_rows",
    "inner_suffix",
    "kind_of",
    "table_rows",
    "untold",
]
