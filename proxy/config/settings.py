"""Configuration: one TOML file as frozen settings, or one refusal that lists all its problems.

Environment variables may override only the `[server]` table (``TACIT_SERVER__LISTEN`` and the
like): everything that is promised about a private table is read from the file alone. Nothing here
opens the data; whether a declared column exists is checked when the source opens.
"""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, field_validator

from accountant.gate import Funds
from accountant.ledger import Window
from cube.axis import Axis
from cube.refusals import ConfigurationInvalid
from cube.schema import N_RECORDS_MAX, N_ROWS_PER_UNIT_MAX, Neighbours, RowsByLevel, Schema
from cube.target import CONFIDENCE_MAX, AccuracyTarget, SumTarget
from planner.measuring import GaussianOffer, Strategy
from proxy.api import CUT_SHARE
from proxy.config.budgets import (
    EPSILON_MAX,
    check_same_people,
    checked_renewal,
    funds_of,
    is_budget_name,
    parse_delta,
    parse_epsilon,
    read_budgets,
)
from proxy.config.columns import (
    GrowsSection,
    LevelFiles,
    closing_of,
    grows_section,
    read_axis,
    read_sum_target,
)
from proxy.config.holders import holder_axis
from proxy.config.ledger import LedgerSettings, read_ledger
from proxy.config.location import (
    TextSection,
    check_counted_there,
    read_extract,
    read_location,
    read_public,
    texts_of_public,
)
from proxy.config.server import ServerSettings, read_server
from proxy.config.sharing import PreviewRows, Sharing
from proxy.config.table_settings import TableSettings, with_units
from proxy.sources import Extract, HeldTable, Problems, Section, TableLocation, TextFormat
from proxy.sources.public import PublicSettings

DEFAULT_SHARE = Fraction(1, 100)  # of the budget, that a statement without a target may cost
EXPECTED_SHARE = Fraction(1, 4)  # of the budget, that is spent before the owner looks again


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """All settings of one server process."""

    server: ServerSettings
    ledger: LedgerSettings
    tables: tuple[TableSettings, ...]
    public: tuple[PublicSettings, ...] = ()


class FileSection(Section):
    """The top level of the file; its tables are read separately, so that each reports problems."""

    server: Any = Field(default_factory=dict)
    ledger: Any
    tables: Any
    public: Any = Field(default_factory=dict)
    budgets: Any = Field(default_factory=dict)


class TableSection(TextSection):
    """One private table."""

    source: str | None = Field(default=None, min_length=1)
    source_table: str | None = Field(default=None, min_length=1)
    source_query: str | None = Field(default=None, min_length=1)
    password_file: str | None = Field(default=None, min_length=1)
    immutable: bool = False
    version: Annotated[int, Field(strict=True, ge=0)] | None = None
    token_file: str | None = Field(default=None, min_length=1)
    tls: bool = True
    timeout: float | None = Field(default=None, gt=0)
    extract: str | None = None
    extract_dir: str | None = Field(default=None, min_length=1)
    view: str | None = Field(default=None, min_length=1)
    sources: Any = None
    holders: Any = None
    holder_public: bool = False
    people_overlap: bool = False
    unit: str | None = Field(default=None, min_length=1)
    rows_per_unit_max: int = Field(default=1, ge=1, le=N_ROWS_PER_UNIT_MAX)
    groups_per_unit_max: int | None = Field(default=None, ge=1, le=N_ROWS_PER_UNIT_MAX)
    grows: Any = None
    rows_per_unit_max_by: dict[str, Annotated[int, Field(strict=True, ge=1)]] = Field(
        default_factory=dict, max_length=1
    )
    per_unit: list[str] | None = Field(default=None, min_length=1)
    budget: str | int | float
    budget_renews: str | None = None
    separate_budget: str | None = Field(default=None, min_length=1)
    n_records_max: int = Field(ge=1, le=N_RECORDS_MAX)
    half_width: float = Field(gt=0)
    default_cost: str | int | float | None = None
    cut_share_max: float = Field(default=CUT_SHARE, ge=0, lt=1)
    per_query: str | int | float | None = None
    confidence: float = Field(default=0.95, gt=0, le=CONFIDENCE_MAX)
    neighbours: str = Neighbours.ADD_REMOVE.value
    strategy: str = Strategy.AUTO.value
    delta: str | int | float = 0
    expected_epsilon: str | int | float | None = None
    history: str = Sharing.SHARED.value
    preview: str = PreviewRows.NONE.value
    columns: Any

    @field_validator("budget", mode="before")
    @classmethod
    def _budget_is_exact(cls, value: Any) -> Any:
        if parse_epsilon(value) is None and not is_budget_name(value):
            raise ValueError(
                f'should be a positive decimal up to {EPSILON_MAX}, such as "1.0", '
                "or the name of a budget in [budgets]"
            )
        return value

    @field_validator("budget_renews")
    @classmethod
    def _renewal_is_a_window(cls, value: str | None) -> str | None:
        return checked_renewal(value)

    @field_validator("delta", mode="before")
    @classmethod
    def _delta_is_exact(cls, value: Any) -> Any:
        if parse_delta(value) is None:
            raise ValueError("should be 0, or from 1e-30 to 1e-5, such as 1e-9")
        return value

    @field_validator("default_cost", "per_query", mode="before")
    @classmethod
    def _cost_is_exact(cls, value: Any) -> Any:
        if value is not None and parse_epsilon(value) is None:
            raise ValueError('should be a positive decimal, such as "0.01"')
        return value

    @field_validator("expected_epsilon", mode="before")
    @classmethod
    def _expected_is_exact(cls, value: Any) -> Any:
        if value is not None and parse_epsilon(value) is None:
            raise ValueError('should be a positive decimal, such as "0.5"')
        return value

    @field_validator("neighbours")
    @classmethod
    def _neighbours_are_known(cls, value: str) -> str:
        if value not in set(Neighbours):
            raise ValueError(f"should be one of {', '.join(Neighbours)}")
        return value

    @field_validator("strategy")
    @classmethod
    def _strategy_is_known(cls, value: str) -> str:
        if value not in set(Strategy):
            raise ValueError(f"should be one of {', '.join(Strategy)}")
        return value

    @field_validator("preview")
    @classmethod
    def _preview_is_known(cls, value: str) -> str:
        if value not in set(PreviewRows):
            raise ValueError(f"should be one of {', '.join(PreviewRows)}")
        return value

    @field_validator("extract")
    @classmethod
    def _extract_is_known(cls, value: str | None) -> str | None:
        if value is not None and value not in set(Extract):
            raise ValueError(f"should be one of {', '.join(Extract)}")
        return value

    @field_validator("history")
    @classmethod
    def _history_is_known(cls, value: str) -> str:
        if value not in set(Sharing):
            raise ValueError(f"should be one of {', '.join(Sharing)}")
        return value


def load(path: Path) -> Settings:
    """The settings in a file; `ConfigurationInvalid` with every problem if it has any."""
    values = _read_toml(path)
    folder = path.parent
    problems = Problems(path)
    problems.section(FileSection, values, ())
    server = read_server(values.get("server", {}), folder, problems)
    ledger = read_ledger(values["ledger"], folder, problems) if "ledger" in values else None
    budgets = read_budgets(values.get("budgets", {}), problems)
    texts = texts_of_public(values.get("public", {}), folder)
    tables = (
        _read_tables(values["tables"], folder, budgets, texts, problems)
        if "tables" in values
        else ()
    )
    if ledger is not None:
        tables = _with_extracts(tables, ledger, problems)
    private = values.get("tables")
    names = list(private) if isinstance(private, Mapping) else []
    names += [table.schema.table for table in tables if table.schema.table not in names]
    public = read_public(values.get("public", {}), folder, names, problems)
    _check_public(public, tables, problems)
    problems.raise_if_any()
    if server is None or ledger is None:
        raise RuntimeError("a part of the configuration is missing and no problem was recorded")
    return Settings(server=server, ledger=ledger, tables=tables, public=public)


def _with_extracts(
    tables: tuple[TableSettings, ...], ledger: LedgerSettings, problems: Problems
) -> tuple[TableSettings, ...]:
    """The tables, each with the folder of its extract, if it is to have one."""
    found = [replace(one, extract=one.extract.beside(ledger.path)) for one in tables]
    for one in found:
        if one.extract.kept is Extract.FILE and one.extract.folder is None:
            keys = ("tables", one.schema.table, "extract_dir")
            problems.add(keys, "is missing; a ledger in a database has no folder beside it")
    return tuple(found)


def _check_public(
    public: tuple[PublicSettings, ...], tables: tuple[TableSettings, ...], problems: Problems
) -> None:
    """Record a problem if a public table is read from a private table's file, by whatever path."""
    private = {file.resolve() for table in tables for file in table.location.files}
    for table in public:
        if table.path.resolve() in private:
            problems.add(("public", table.name, "source"), "is the file of a private table")


def _read_toml(path: Path) -> dict[str, Any]:
    try:
        text = path.read_bytes().decode("utf-8")
    except FileNotFoundError:
        raise ConfigurationInvalid(
            f"There is no file {path}.",
            hint="`tacit init DATA_FILE --table NAME` drafts one.",
        ) from None
    except IsADirectoryError:
        raise ConfigurationInvalid(f"{path} is a directory, not a TOML file.") from None
    except UnicodeDecodeError:
        raise ConfigurationInvalid(f"{path} is not UTF-8 text, as TOML must be.") from None
    except OSError as error:
        raise ConfigurationInvalid(f"{path} cannot be read: {error.strerror}.") from None
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigurationInvalid(f"{path} is not valid TOML: {error}.") from None
    except RecursionError:
        raise ConfigurationInvalid(f"{path} is nested too deeply.") from None


def _read_tables(
    values: Any,
    folder: Path,
    budgets: Mapping[str, Funds],
    texts: Mapping[Path, TextFormat],
    problems: Problems,
) -> tuple[TableSettings, ...]:
    if not isinstance(values, Mapping) or not values:
        problems.add(("tables",), "should hold at least one table, as [tables.NAME]")
        return ()
    if len({name.casefold() for name in values}) != len(values):
        problems.add(("tables",), "two tables share a name (letter case does not count)")
    locations = {
        name: read_location(table, folder, ("tables", name), problems)
        for name, table in values.items()
        if isinstance(table, Mapping)
    }
    private = (file for location in locations.values() if location for file in location.files)
    files = LevelFiles(folder, frozenset(file.resolve() for file in private), texts)
    read = (
        _read_table(name, table, locations.get(name), files, budgets, problems)
        for name, table in values.items()
    )
    tables = [table for table in read if table is not None]
    check_same_people([(table.schema, table.location, table.funds) for table in tables], problems)
    return with_units(tables, budgets, problems)


def _read_table(  # noqa: PLR0913, PLR0917 - what the file says, and where to say what is wrong
    name: str,
    values: Any,
    location: TableLocation | None,
    files: LevelFiles,
    budgets: Mapping[str, Funds],
    problems: Problems,
) -> TableSettings | None:
    keys = ("tables", name)
    section = problems.section(TableSection, values, keys)
    if not isinstance(values, Mapping):
        return None
    # Each part is read even if another has problems, so that all problems are found.
    columns = values.get("columns")
    axes = () if columns is None else _read_columns(columns, (*keys, "columns"), problems, files)
    grows = None if section is None else grows_section(section.grows, keys, problems)
    axis = holder_axis(location) if isinstance(location, HeldTable) else None
    schema = _build_schema(name, axes, axis, section, grows, problems) if axes else None
    if section is None or location is None or schema is None or columns is None:
        return None
    separate = section.separate_budget or ""
    funds = funds_of(section.budget, section.budget_renews, separate, budgets, keys, problems)
    target = AccuracyTarget(half_width=section.half_width, confidence=section.confidence)
    said = section.extract, section.timeout
    extract = read_extract(said, section.extract_dir, location, files.folder, keys, problems)
    check_counted_there(extract, schema, keys, problems)
    return TableSettings(
        schema=schema,
        location=location,
        extract=extract,
        funds=funds,
        default=target,
        sums=_read_sums(columns),
        strategy=Strategy(section.strategy),
        gaussian=_read_gaussian(section, funds, problems, keys),
        sharing=Sharing(section.history),
        has_previews=section.preview == PreviewRows.SYNTHETIC,
        closing=None if grows is None else closing_of(grows, schema, problems),
        per_unit=tuple(section.per_unit or ()),
        default_cost=parse_epsilon(section.default_cost) or funds.budget * DEFAULT_SHARE,
        cut_share_max=section.cut_share_max,
        per_query=parse_epsilon(section.per_query),
        holders_public=section.holder_public,
    )


def _read_gaussian(
    section: TableSection, funds: Funds, problems: Problems, keys: tuple[str, ...]
) -> GaussianOffer | None:
    """The offer of Gaussian noise; where nothing is said, a part of the budget is expected."""
    delta, expected = parse_delta(section.delta), parse_epsilon(section.expected_epsilon)
    if expected is not None and not delta:
        problems.add((*keys, "expected_epsilon"), "is for a table with a delta")
    is_lasting = funds.renews is Window.NEVER  # one that renews may be spent many times over
    if expected is not None and is_lasting and expected > funds.budget:
        problems.add((*keys, "expected_epsilon"), "should be at most the budget")
    if not delta:
        return None
    if expected is None:
        return GaussianOffer(delta, funds.budget * EXPECTED_SHARE)
    return GaussianOffer(delta, expected, is_declared=True)


def _build_schema(  # noqa: PLR0913, PLR0917 - what the file says, and where to say what is wrong
    name: str,
    axes: tuple[Axis, ...],
    holders: Axis | None,
    section: TableSection | None,
    grows: GrowsSection | None,
    problems: Problems,
) -> Schema | None:
    """The schema, or its problems; unused if the table's section has problems."""
    n_records_max = N_RECORDS_MAX if section is None else section.n_records_max
    neighbours = Neighbours.ADD_REMOVE if section is None else Neighbours(section.neighbours)
    unit = None if section is None else section.unit
    try:
        schema = Schema(
            table=name,
            axes=axes if holders is None else (*axes, holders),
            n_records_max=n_records_max,
            neighbours=neighbours,
            unit=unit,
            rows_per_unit_max=1 if section is None else section.rows_per_unit_max,
            groups_per_unit_max=None if section is None else section.groups_per_unit_max,
            grows=None if grows is None else grows.axis,
            rows_per_unit_max_by=RowsByLevel.declared(
                {} if section is None else section.rows_per_unit_max_by
            ),
            holders=None if holders is None else holders.name,
        )
        has_overlap = section is not None and holders is not None and section.people_overlap
        return schema.with_overlap() if has_overlap else schema
    except ValueError as error:
        problems.add(("tables", name), str(error).removeprefix(f"{name}: "))
        return None


def _read_columns(
    values: Any, keys: tuple[str, ...], problems: Problems, files: LevelFiles
) -> tuple[Axis, ...]:
    if not isinstance(values, Mapping) or not values:
        problems.add(keys, "should hold at least one column")
        return ()
    read = (
        read_axis(name, column, (*keys, name), problems, files) for name, column in values.items()
    )
    return tuple(axis for axis in read if axis is not None)


def _read_sums(columns: Mapping[str, Any]) -> dict[str, SumTarget]:
    """The declared targets for sums, by the measure's name."""
    found = {name: read_sum_target(column) for name, column in columns.items()}
    return {name: target for name, target in found.items() if target is not None}
