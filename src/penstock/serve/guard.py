"""What a statement may not touch unless an admin runs it: files outside the warehouse, Java, scripts.

It is told twice. On the parsed tree, everything that is called must be a function that is known to look at its
arguments alone. And in the tokens, no word that reaches further may be called, whatever the parser made of it.
What cannot be read here is refused, since nobody can say what Spark would make of it.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import pairwise

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from penstock.errors import NotFoundError, NotSupportedError
from penstock.plan.functions import AGGREGATES, GENERATORS, NON_DETERMINISTIC, SCALARS, WINDOW_ONLY
from penstock.serve.problems import Refused
from penstock.serve.roles import Role
from penstock.sql import statements as s
from penstock.sql.as_of import find_past
from penstock.sql.dialect import SparkSql
from penstock.sql.lexer import Token, tokenize
from penstock.sql.names import OF_SPARK
from penstock.sql.query import name_of, parse_query, table_names, tables, whole

REACHING = frozenset(
    """
    java_method reflect try_reflect
    from_protobuf to_protobuf from_avro to_avro schema_of_avro from_xml schema_of_xml to_xml
    xpath xpath_boolean xpath_double xpath_float xpath_int xpath_long xpath_number xpath_short xpath_string
    input_file_name input_file_block_start input_file_block_length python_worker_logs
    read_files read_csv read_json read_parquet read_text read_xml read_avro read_orc read_kafka read_statestore
    read_state_metadata table_changes table_changes_by_path delta_table_changes cloud_files
    identifier execute http_request secret try_secret ai_query session_user current_user user
    """.split()
)
"""What calls Java or scripts, reads files or other servers, tells of them, or names things by a text."""

KNOWN = (AGGREGATES | GENERATORS | NON_DETERMINISTIC | SCALARS | WINDOW_ONLY | {
    "range", "tumble", "tumble_start", "tumble_end", "hop", "hop_start", "hop_end", "session", "session_start",
    "session_end", "window", "window_time", "session_window", "timestampadd", "jsonb_build_object", "jsonb_agg",
}) - REACHING  # fmt: skip
"""What may be called by its name."""

_SCRIPTS = (exp.QueryTransform, exp.Command, exp.Into, exp.Directory, exp.LoadData, exp.Copy)
_READERS = tuple(
    kind for name in ("ReadCSV", "ReadParquet", "OpenJSON", "XMLTable", "XMLElement", "ParseXML", "LoadFile")
    if (kind := getattr(exp, name, None)) is not None
)  # fmt: skip


Known = Callable[[str], bool]
"""Says whether a name of Spark's catalogs is that of a table or view of the warehouse."""


def check(statement: s.Statement, role: Role, known: Known) -> None:
    """Raise ``Refused`` for a statement that reaches outside the warehouse, unless it is an admin's."""
    if role >= Role.ADMIN:
        return
    match statement:
        case s.Query(text=text):
            _check_query(text, known)
        case s.ExplainQuery(query=text):
            _check_query(text, known)
        case s.ExplainCreate(create=create):
            _check_query(create.query, known)
            _check_known(create.query, known)
        case s.TableStatement(writes=False, text=text):
            _check_tokens(text)
        case s.TableStatement() | s.CreateView() | s.CreateTable():
            raise _refused("it makes or changes something")


def _check_query(text: str, known: Known) -> None:
    _check_tokens(text)
    try:
        trees = sqlglot.parse(whole(find_past(text)[0]), dialect=SparkSql)
    except (SqlglotError, RecursionError):
        raise _refused("it cannot be read here, so nobody can tell what it would reach") from None
    if len(trees) != 1 or not isinstance(trees[0], exp.Query | exp.Values | exp.From | exp.Table):
        raise _refused("it is no plain query")
    for node in trees[0].walk():
        _check_node(node, known)
    try:
        list(tables(trees[0]))
    except (NotSupportedError, NotFoundError) as problem:
        raise _refused(f"it names what is outside the warehouse: {problem}") from None


def _check_known(text: str, known: Known) -> None:
    """What a view may take from Spark's catalogs, whoever only asks how it would be kept does not get to see."""
    for name in table_names(parse_query(text)):
        if not known(name):
            raise _refused(f"{name} is no table or view of the warehouse")


def _check_node(node: exp.Expr, known: Known) -> None:
    if isinstance(node, _SCRIPTS + _READERS):
        raise _refused("it runs a script, or reads or writes files")
    if isinstance(node, exp.Anonymous | exp.AnonymousAggFunc) and _called(node) not in KNOWN:
        raise _refused(f"it calls {_called(node)}, which is not known to look at its arguments alone")
    if isinstance(node, exp.Table):
        _check_table(node, known)


def _called(node: exp.Expr) -> str:
    name = node.this if isinstance(node.this, str) else getattr(node.this, "name", "")
    return str(name).lower()


def _check_table(table: exp.Table, known: Known) -> None:
    if isinstance(table.this, exp.Identifier):
        strange = any(c in part.name for part in table.parts for c in "/\\:")
        if strange or table.db.lower() in OF_SPARK or (table.catalog and not known(name_of(table))):
            raise _refused(f"{table.sql(dialect='spark')} is no table of the warehouse")
    elif not isinstance(table.this, exp.Func) or _name_of_function(table.this) not in KNOWN:
        raise _refused(f"{table.sql(dialect='spark')} is no table of the warehouse")


def _name_of_function(node: exp.Expr) -> str:
    return _called(node) if isinstance(node, exp.Anonymous) else str(node.key).lower()


def _check_tokens(text: str) -> None:
    tokens = tokenize(text)
    check_reading(text, tokens)
    for token, following in pairwise(tokens):
        if following.text == "(" and _word(token) in REACHING:
            raise _refused(f"it calls {_word(token)}")
        if _word(token) == "using" and following.kind == "string":
            raise _refused("it runs a script")
    if any(_word(token) in ("location", "transform_using") and _is_clause(tokens, i) for i, token in enumerate(tokens)):
        raise _refused("it names a place for files")


def check_reading(text: str, tokens: list[Token]) -> None:
    """Raise ``Refused`` where Spark would cut the text into other tokens: code could hide in what is none here."""
    ends = [0, *(token.end for token in tokens)]
    starts = [*(token.start for token in tokens), len(text)]
    between = [text[end:start] for end, start in zip(ends, starts, strict=True)]
    if any(token.text == "$" for token in tokens) or any(_CUT_COMMENT.search(gap) for gap in between):
        raise _refused("a comment or a quotation in it could be read in two ways")


_CUT_COMMENT = re.compile(r"--[^\n]*\r(?!\n)")
"""To Spark, a comment ends at a carriage return too."""


def _is_clause(tokens: list[Token], place: int) -> bool:
    """Whether a word stands before a text, as LOCATION '..' does; a column of that name may."""
    return place + 1 < len(tokens) and tokens[place + 1].kind == "string"


def _word(token: Token) -> str:
    return token.text.strip("`").lower() if token.kind in ("word", "quoted") else ""


def _refused(why: str) -> Refused:
    return Refused(
        403,
        f"the statement is refused for this role: {why}.",
        help="Ask somebody with the role admin to run it, or to make a table or a view of what it reads.",
    )
