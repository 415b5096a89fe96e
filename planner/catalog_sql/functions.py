"""Writes PostgreSQL's functions of the catalog for DuckDB, with the facts that they return.

What the catalog knows besides its relations: of the server, the caller and their session.

Each is a function of its arguments, and perhaps of the facts, that returns a tree. Those that look
something up are subqueries of the catalog's own relations. Sizes are NULL: they would tell of data.
"""

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from sqlglot import exp

from planner.sql import setting_named


@dataclass(frozen=True, slots=True)
class CatalogFacts:
    """Facts for one query.

    Parameters
    ----------
    user, database, schema, version : str
        The caller, where tables are, and the server's version as a sentence.
    settings : mapping
        Every setting and its value, by names in lower case.
    numbers : mapping
        The object numbers of relations, by schema and name; of types and schemas, by kind and name.
    """

    user: str
    database: str
    schema: str
    version: str
    settings: Mapping[str, str] = field(default_factory=dict)
    numbers: Mapping[tuple[str, str], int] = field(default_factory=dict)

    @property
    def key(self) -> Hashable:
        """A value that is equal for equal facts."""
        said = self.user, self.database, self.schema, self.version
        return said, frozenset(self.settings.items()), frozenset(self.numbers.items())


Arguments: TypeAlias = Sequence[exp.Expr]
Builder: TypeAlias = Callable[[Arguments, CatalogFacts], exp.Expr]

TYPE_NAMES: Final = "tacit.type_names"  # a relation of ours: the SQL names of types
RELATION_NAMES: Final = "tacit.relation_names"  # their names, with their schemas if need be
DEFINITIONS: Final = "tacit.definitions"  # of indexes and constraints, in SQL
_SCHEMAS: Final = "pg_namespace"


def _text(value: str | None) -> exp.Expr:
    return exp.null() if value is None else exp.Literal.string(value)


def _constant(value: str | bool | int | None) -> Builder:
    def build(_arguments: Arguments, _facts: CatalogFacts) -> exp.Expr:
        return exp.convert(value)

    return build


def _fact(name: str) -> Builder:
    def build(_arguments: Arguments, facts: CatalogFacts) -> exp.Expr:
        return _text(getattr(facts, name))

    return build


def _typed_null(sql_type: str) -> Builder:
    def build(_arguments: Arguments, _facts: CatalogFacts) -> exp.Expr:
        return exp.cast(exp.null(), sql_type, dialect="duckdb")

    return build


def looked_up(
    relation: str,
    wanted: str,
    key: str,
    value: exp.Expr,
    also: tuple[str, exp.Expr] | None = None,
) -> exp.Expr:
    """One value of the row of a relation of `pg_catalog` whose key it is.

    Its columns get names of ours, since a bare name in the value is that of a column outside.

    Parameters
    ----------
    relation, wanted, key : str
        The relation, the column that is wanted, and the one that is compared.
    value : Expr
    also : (str, Expr), optional
        A further column, and what it equals.
    """
    compared = [(key, value), *([] if also is None else [also])]
    named = [exp.alias_(exp.column(wanted), "tacit_wanted")]
    named += [exp.alias_(exp.column(one), f"tacit_{n}") for n, (one, _) in enumerate(compared)]
    source = exp.to_table(relation if "." in relation else f"pg_catalog.{relation}")
    conditions = [
        exp.EQ(this=exp.column(f"tacit_{n}", table="looked"), expression=one.copy())
        for n, (_, one) in enumerate(compared)
    ]
    found = (
        exp.select(exp.column("tacit_wanted", table="looked"))
        .from_(exp.select(*named).from_(source).subquery("looked"))
        .where(*conditions)
        .limit(1)
    )
    return found.subquery()


def _setting(arguments: Arguments, facts: CatalogFacts) -> exp.Expr:
    if not isinstance(arguments[0], exp.Literal):
        return looked_up("pg_settings", "setting", "name", exp.func("lower", *arguments[:1]))
    name = arguments[0].name.casefold()
    is_optional = len(arguments) > 1 and bool(arguments[1].this)
    is_constant = bool(arguments) and isinstance(arguments[0], exp.Literal)
    if is_constant and name not in facts.settings and not is_optional:
        setting_named(name)  # refuses what is none of ours either
    return _text(facts.settings.get(name))


def _set_config(arguments: Arguments, _facts: CatalogFacts) -> exp.Expr:
    return arguments[1] if len(arguments) > 1 else exp.null()


def _schemas(_arguments: Arguments, facts: CatalogFacts) -> exp.Expr:
    names = [exp.Literal.string(name) for name in ("pg_catalog", facts.schema)]
    return exp.Array(expressions=names)


def _format_type(arguments: Arguments, _facts: CatalogFacts) -> exp.Expr:
    """The SQL name of a type; of a NUMERIC, with its digits, which its modifier holds."""
    name = looked_up(TYPE_NAMES, "spoken", "oid", arguments[0])
    if len(arguments) == 1 or isinstance(arguments[1], exp.Null):
        return name
    # The modifier is bound once: written out thrice, nested calls would grow by powers.
    digits = "'(' || ((m_ - 4) // 65536) || ',' || ((m_ - 4) % 65536) || ')'"
    shown = f"LAMBDA m_: CASE WHEN m_ > 4 THEN {digits} ELSE '' END"
    text: exp.Expr = exp.maybe_parse(
        f"LIST_EXTRACT(LIST_TRANSFORM([m_], {shown}), 1)", dialect="duckdb"
    )
    items = next(text.find_all(exp.Array))  # and not those of the argument
    items.set("expressions", [arguments[1].copy()])
    return exp.paren(exp.DPipe(this=name, expression=text), copy=False)


def _described(catalog: str | None) -> Builder:
    def build(arguments: Arguments, _facts: CatalogFacts) -> exp.Expr:
        return looked_up(
            "pg_description" if catalog is None else "pg_shdescription",
            "description",
            "objoid",
            arguments[0],
            ("objsubid", exp.Literal.number(0)) if catalog is None else None,
        )

    return build


def _column_described(arguments: Arguments, _facts: CatalogFacts) -> exp.Expr:
    return looked_up(
        "pg_description", "description", "objoid", arguments[0], ("objsubid", arguments[1])
    )


def _constraint(arguments: Arguments, _facts: CatalogFacts) -> exp.Expr:
    return looked_up(DEFINITIONS, "sql", "oid", arguments[0], ("place", exp.Literal.number(0)))


def _index(arguments: Arguments, _facts: CatalogFacts) -> exp.Expr:
    """The statement that would make an index, or, with a number, the column of that place."""
    place = exp.Literal.number(0) if len(arguments) == 1 else arguments[1]
    return looked_up(DEFINITIONS, "sql", "oid", arguments[0], ("place", place))


def _identifiers(arguments: Arguments, _facts: CatalogFacts) -> exp.Expr:
    bare = exp.Anonymous(
        this="REPLACE", expressions=[arguments[0], *map(exp.Literal.string, ('"', ""))]
    )
    return exp.Anonymous(this="STRING_SPLIT", expressions=[bare, exp.Literal.string(".")])


def _owner(arguments: Arguments, _facts: CatalogFacts) -> exp.Expr:
    return looked_up("pg_roles", "rolname", "oid", arguments[0])


def _is_visible(arguments: Arguments, facts: CatalogFacts) -> exp.Expr:
    """Whether a relation is found without its schema."""
    schema = looked_up("pg_class", "relnamespace", "oid", arguments[0])
    visible = [facts.numbers[_SCHEMAS, name] for name in ("pg_catalog", facts.schema)]
    return exp.In(this=schema, expressions=[exp.Literal.number(one) for one in visible])


def _number_of(kind: str | None) -> Builder:
    """``to_regclass('t')`` and its like: NULL if there is no such object."""

    def build(arguments: Arguments, facts: CatalogFacts) -> exp.Expr:
        number = number_named(arguments[0].name, kind, facts)
        return exp.null() if number is None else exp.Literal.number(number)

    return build


def number_named(written: str, kind: str | None, facts: CatalogFacts) -> int | None:
    """The object number of a relation (without a kind), a type or a schema, by its written name."""
    parts = [part.strip('"') for part in written.strip().split(".")]
    name = parts[-1] if '"' in written else parts[-1].lower()
    if kind is not None:
        return facts.numbers.get((kind, name))
    schemas = [parts[-2]] if len(parts) > 1 else [facts.schema, "pg_catalog"]
    found = (facts.numbers.get((schema, name)) for schema in schemas)
    return next((number for number in found if number is not None), None)


def _quoted(arguments: Arguments, _facts: CatalogFacts) -> exp.Expr:
    inner = arguments[0].sql("duckdb")
    return exp.maybe_parse(f"'\"' || REPLACE({inner}, '\"', '\"\"') || '\"'", dialect="duckdb")


def _same(name: str) -> Builder:
    def build(arguments: Arguments, _facts: CatalogFacts) -> exp.Expr:
        return exp.Anonymous(this=name, expressions=list(arguments))

    return build


def _list_end(arguments: Arguments, _facts: CatalogFacts) -> exp.Expr:
    return exp.Anonymous(this="LEN", expressions=[arguments[0]])


def _subscripts(arguments: Arguments, _facts: CatalogFacts) -> exp.Expr:
    length = f"LEN({arguments[0].sql('duckdb')})"
    return exp.maybe_parse(f"UNNEST(RANGE(1, {length} + 1))", dialect="duckdb")


def _expanded(arguments: Arguments, _facts: CatalogFacts) -> exp.Expr:
    items = arguments[0].sql("duckdb")
    pair = "{'x': item_, 'n': place_::INTEGER}"
    return exp.maybe_parse(
        f"UNNEST(LIST_TRANSFORM({items}, LAMBDA item_, place_: {pair}))", dialect="duckdb"
    )


def _may(arguments: Arguments, _facts: CatalogFacts) -> exp.Expr:
    """Whether the caller has a privilege, its name being the last argument: they may only read."""
    named = arguments[-1].name.upper() if arguments else ""
    return exp.convert(any(one.strip() in _READING for one in named.split(",")))


def _keywords(_arguments: Arguments, _facts: CatalogFacts) -> exp.Expr:
    """The reserved words that standard SQL has not: clients know the others."""
    words = ", ".join(f"'{word}'" for word in _RESERVED)
    rows = f"SELECT UNNEST([{words}]) AS word, 'R' AS catcode, 'reserved' AS catdesc"
    return exp.maybe_parse(rows, dialect="duckdb").subquery()


_TRUE: Final = _constant(value=True)
_FALSE: Final = _constant(value=False)
_PRIVILEGES: Final = (
    *("has_table_privilege", "has_schema_privilege", "has_database_privilege"),
    *("has_column_privilege", "has_any_column_privilege", "pg_has_role", "has_type_privilege"),
    *("has_language_privilege", "has_tablespace_privilege", "has_function_privilege"),
    *("has_sequence_privilege", "has_server_privilege", "has_foreign_data_wrapper_privilege"),
)
_RESERVED: Final = ("analyze", "ilike", "isnull", "limit", "notnull", "offset", "verbose")
_READING: Final = frozenset({"SELECT", "USAGE", "CONNECT", "EXECUTE", "MEMBER", "TEMP"})
_NO_TEXT: Final = (
    "pg_get_expr",
    *("pg_get_ruledef", "pg_get_triggerdef", "pg_get_functiondef", "pg_get_function_result"),
    *("pg_get_function_arguments", "pg_get_function_identity_arguments", "pg_get_partkeydef"),
    *("pg_get_partition_constraintdef", "pg_get_statisticsobjdef_columns", "pg_size_pretty"),
    *("pg_tablespace_location", "pg_get_serial_sequence", "inet_client_addr", "inet_server_addr"),
    *("pg_get_statisticsobjdef", "pg_describe_object", "pg_get_function_sqlbody"),
    *("pg_relation_filepath", "row_security_active"),
    *("json_build_object", "jsonb_build_object", "row_to_json", "to_json", "json_agg"),
)
_NO_NUMBER: Final = (
    *("pg_relation_size", "pg_total_relation_size", "pg_table_size", "pg_indexes_size"),
    *("pg_database_size", "pg_sequence_last_value", "inet_client_port", "inet_server_port"),
    *("pg_stat_get_numscans", "age", "pg_stat_get_live_tuples", "txid_current_if_assigned"),
    *("mxid_age", "pg_current_xact_id_if_assigned", "pg_advisory_unlock_all"),
)
_VISIBLE: Final = (
    *("pg_type_is_visible", "pg_function_is_visible", "pg_opclass_is_visible"),
    *("pg_operator_is_visible", "pg_collation_is_visible", "pg_conversion_is_visible"),
    *("pg_ts_config_is_visible", "pg_ts_dict_is_visible", "pg_statistics_obj_is_visible"),
    *("pg_opfamily_is_visible", "pg_ts_parser_is_visible", "pg_ts_template_is_visible"),
)
_FUNCTIONS: Final[Mapping[str, Builder]] = {
    **dict.fromkeys(_PRIVILEGES, _may),
    **dict.fromkeys(_VISIBLE, _TRUE),
    **dict.fromkeys(_NO_TEXT, _typed_null("VARCHAR")),
    **dict.fromkeys(_NO_NUMBER, _typed_null("BIGINT")),
    "array_lower": _constant(1),
    "array_upper": _list_end,
    "array_length": _list_end,
    "array_to_string": _same("ARRAY_TO_STRING"),
    "cardinality": _list_end,
    "col_description": _column_described,
    "current_catalog": _fact("database"),
    "current_database": _fact("database"),
    "current_role": _fact("user"),
    "current_schema": _fact("schema"),
    "current_schemas": _schemas,
    "current_setting": _setting,
    "current_user": _fact("user"),
    "format_type": _format_type,
    "generate_subscripts": _subscripts,
    "getdatabaseencoding": _constant("UTF8"),
    "_pg_expandarray": _expanded,
    "obj_description": _described(None),
    "parse_ident": _identifiers,
    "pg_backend_pid": _constant(0),
    "pg_char_to_encoding": _constant(6),
    "pg_client_encoding": _constant("UTF8"),
    "pg_conf_load_time": _typed_null("TIMESTAMPTZ"),
    "pg_encoding_to_char": _constant("UTF8"),
    "pg_current_xact_id": _constant(0),
    "pg_get_keywords": _keywords,
    "pg_get_constraintdef": _constraint,
    "pg_get_indexdef": _index,
    "pg_get_userbyid": _owner,
    "pg_is_other_temp_schema": _FALSE,
    "pg_get_viewdef": _constant(""),  # it is no SQL: drivers take NULL for no such view
    "pg_is_in_recovery": _FALSE,
    "pg_is_wal_replay_paused": _FALSE,
    "pg_my_temp_schema": _constant(0),
    "pg_postmaster_start_time": _typed_null("TIMESTAMPTZ"),
    "pg_table_is_visible": _is_visible,
    "pg_relation_is_publishable": _FALSE,
    "pg_typeof": lambda arguments, _: exp.Anonymous(this="TYPEOF", expressions=list(arguments)),
    "quote_ident": _quoted,
    "session_user": _fact("user"),
    "set_config": _set_config,
    "shobj_description": _described("shared"),
    "to_regclass": _number_of(None),
    "to_regtype": _number_of("pg_type"),
    "to_regnamespace": _number_of(_SCHEMAS),
    "txid_current": _constant(0),
    "user": _fact("user"),
    "version": _fact("version"),
}
KNOWN_FUNCTIONS: Final = frozenset(_FUNCTIONS)


def written_out(name: str, arguments: Arguments, facts: CatalogFacts) -> exp.Expr | None:
    """What a function of the catalog is for DuckDB; None if there is no such function."""
    build = _FUNCTIONS.get(name.casefold())
    return None if build is None else build(arguments, facts)
