"""Tables and drawings as files, written to the path that `-o` names."""

from collections.abc import Callable
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq

from cube.refusals import ConfigurationInvalid
from proxy.api.clean_arrow import clean_table
from proxy.cli.shared.rendering import no_formula

MODEL_SUFFIX: Final = ".model"

_WRITERS: Final[dict[str, Callable[[pa.Table, Path], object]]] = {
    ".parquet": pq.write_table,
    ".csv": pa_csv.write_csv,
}


def table_writer(output: Path, *, is_for_spreadsheets: bool = False) -> Callable[[pa.Table], None]:
    """The function that writes a file; chosen before anything is queried and paid for.

    Parameters
    ----------
    is_for_spreadsheets : bool
        Whether text in CSV that a spreadsheet would take for a formula is begun with an apostrophe.

    Raises
    ------
    ConfigurationInvalid
        If the format is unknown or the directory does not exist; when called, if writing fails.
    """
    write_table = _WRITERS.get(output.suffix.lower())
    if write_table is None:
        raise ConfigurationInvalid(
            f"The name {output} does not end in .parquet or .csv.", hint="Choose one of them."
        )
    check_folder(output)

    def write(data: pa.Table) -> None:
        try:
            if is_for_spreadsheets and write_table is pa_csv.write_csv:
                data = _without_formulas(data)
            write_table(clean_table(data), output)
        except OSError as error:
            raise not_written(output, error) from None

    return write


def _without_formulas(data: pa.Table) -> pa.Table:
    """The same table, with names and texts that are shown, and not calculated."""
    columns = [
        pa.array([None if one is None else no_formula(one) for one in column.to_pylist()])
        if pa.types.is_string(column.type) or pa.types.is_large_string(column.type)
        else column
        for column in data.columns
    ]
    return pa.table(columns, names=[no_formula(name) for name in data.column_names])


def write_bytes(output: Path, content: bytes) -> None:
    """Write a file, or raise ConfigurationInvalid with the reason why it cannot be."""
    try:
        output.write_bytes(content)
    except OSError as error:
        raise not_written(output, error) from None


def is_model(name: str | Path) -> bool:
    """Whether a name is that of a file with a model, and not of a table."""
    return str(name).lower().endswith(MODEL_SUFFIX)


def check_folder(output: Path) -> None:
    """Raise ConfigurationInvalid if there is no directory to write a file to."""
    if not output.parent.is_dir():
        raise ConfigurationInvalid(
            f"There is no directory {output.parent}.", hint="Create it first."
        )


def not_written(output: Path, error: OSError) -> ConfigurationInvalid:
    """The error for a file that could not be written."""
    reason = error.strerror or type(error).__name__
    return ConfigurationInvalid(f"{output} cannot be written: {reason}.")
