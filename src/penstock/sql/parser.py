"""The statements of Penstock: from text to a value of ``statements``.

The first words decide. Queries and data changes keep the user's text, since Spark reads them; statements about
materialized views are read here in full.
"""

from __future__ import annotations

from collections.abc import Callable

from penstock.errors import NotSupportedError, SqlError
from penstock.sql import statements as s
from penstock.sql.as_of import FOR_QUERIES, refuse_past
from penstock.sql.clauses import find_query_end, read_changed_properties, read_clauses, read_trigger, read_watermark
from penstock.sql.cursor import Cursor
from penstock.sql.lexer import error_at, tokenize
from penstock.sql.names import DEFAULT
from penstock.sql.nearest import no_statement
from penstock.sql.qualifying import qualified
from penstock.sql.query import check_query
from penstock.sql.schemas import create_schema, drop_schema, listed, use
from penstock.sql.triggers import MANUAL
from penstock.vocabulary import Policy

_WRITES: dict[tuple[str, ...], str] = {
    ("INSERT", "INTO", "TABLE"): "INSERT", ("INSERT", "INTO"): "INSERT",
    ("INSERT", "OVERWRITE", "TABLE"): "INSERT", ("INSERT", "OVERWRITE"): "INSERT",
    ("UPDATE",): "UPDATE", ("DELETE", "FROM"): "DELETE",
    ("MERGE", "WITH", "SCHEMA", "EVOLUTION", "INTO"): "MERGE", ("MERGE", "INTO"): "MERGE",
    ("TRUNCATE", "TABLE"): "TRUNCATE", ("ALTER", "TABLE"): "ALTER", ("OPTIMIZE",): "OPTIMIZE",
    ("RESTORE", "TABLE"): "RESTORE", ("RESTORE",): "RESTORE", ("VACUUM",): "VACUUM",
}  # fmt: skip
_DESCRIBE: dict[tuple[str, ...], str] = {
    ("HISTORY",): "DESCRIBE HISTORY", ("DETAIL",): "DESCRIBE DETAIL", ("TABLE", "EXTENDED"): "DESCRIBE",
    ("TABLE", "FORMATTED"): "DESCRIBE", ("EXTENDED",): "DESCRIBE", ("FORMATTED",): "DESCRIBE", ("TABLE",): "DESCRIBE",
    (): "DESCRIBE",
}  # fmt: skip
_READS: dict[tuple[str, ...], str] = {
    **{(verb, *words): said for words, said in _DESCRIBE.items() for verb in ("DESCRIBE", "DESC")},
    ("SHOW", "TBLPROPERTIES"): "SHOW TBLPROPERTIES",
}

ON_ROWS = ("INSERT", "UPDATE", "DELETE", "MERGE")

Reads = Callable[[Cursor], s.Statement]


def split_script(text: str) -> list[str]:
    """The statements of a script, cut at semicolons outside strings and comments.

    >>> split_script("SELECT ';'; SELECT 2; -- done")
    ["SELECT ';'", 'SELECT 2']
    """
    pieces, start = [], 0
    tokens = tokenize(text)
    cuts = [t for t in tokens if t.upper == ";"]
    for cut_start, cut_end in [*((t.start, t.end) for t in cuts), (len(text), len(text))]:
        if any(start <= t.start < cut_start for t in tokens):
            pieces.append(text[start:cut_start].strip())
        start = cut_end
    return pieces


def parse(text: str, current: str = DEFAULT) -> s.Statement:
    """One statement, all names in it as they are meant where ``current`` is the schema of those that say none.

    A closing semicolon is allowed, a second statement is not.
    """
    pieces = split_script(text)
    if not pieces:
        raise SqlError("the statement is empty")
    if len(pieces) > 1:
        offset = text.index(pieces[1], text.index(pieces[0]) + len(pieces[0]))
        raise error_at(text, offset, "one statement at a time: a second one begins here")
    cursor = Cursor(pieces[0], current)
    for words, read in _READERS.items():
        if cursor.at(*words):
            return read(cursor)
    if cursor.at("(") or any(cursor.at(word) for word in ("SELECT", "WITH", "VALUES", "FROM", "TABLE")):
        return s.Query(qualified(cursor.text, current))
    for table, writes in ((_WRITES, True), (_READS, False)):
        for words, verb in table.items():
            if cursor.take(*words):
                meant = Cursor(qualified(cursor.text, current), current) if verb in ON_ROWS else cursor
                meant.index = 0
                meant.expect(*words)
                return _table_statement(meant, verb, writes)
    raise no_statement(cursor, [*_READERS, *_WRITES, *_READS])


def _table_statement(cursor: Cursor, verb: str, writes: bool) -> s.Statement:
    if verb == "VACUUM" and cursor.token is None:
        return s.Vacuum(cursor.text)
    start = cursor.offset
    name = cursor.relation("the name of a table")
    if verb == "ALTER":
        about_time = _alter_watermark(cursor, name)
        if about_time is not None:
            return about_time
    end = cursor.tokens[cursor.index - 1].end
    if verb in ON_ROWS:
        refuse_past(cursor.text, end, len(cursor.text), FOR_QUERIES)
    rows = not writes or verb in ("OPTIMIZE", "RESTORE", "VACUUM")
    return s.TableStatement(
        cursor.text, verb=verb, target=name, target_span=(start, end), writes=writes, returns_rows=rows
    )


def _create_table(cursor: Cursor) -> s.Statement:
    cursor.expect("CREATE", "TABLE")
    if_not_exists = cursor.take("IF", "NOT", "EXISTS")
    name = cursor.relation("the name of the table")
    columns, watermark = "", None
    if cursor.at("("):
        columns, watermark = _table_columns(cursor)
    options, location, query = [], None, None
    while cursor.token is not None:
        if cursor.take("LOCATION"):
            location = cursor.string("a path in quotes")
        elif cursor.take("USING"):
            if cursor.name("a format").lower() != "delta":
                cursor.index -= 1
                raise cursor.error("tables of Penstock are Delta tables: write USING delta or leave it out")
        elif cursor.at("AS") or cursor.at("SELECT") or cursor.at("WITH"):
            cursor.take("AS")
            refuse_past(cursor.text, cursor.offset, len(cursor.text), FOR_QUERIES)
            query = qualified(cursor.text[cursor.offset :].strip(), cursor.current)
            break
        else:
            options.append(_table_option(cursor))
    return s.CreateTable(
        cursor.text,
        name=name,
        if_not_exists=if_not_exists,
        columns=columns,
        options=" ".join(options),
        query=query,
        location=location,
        watermark=watermark,
    )


def _table_option(cursor: Cursor) -> str:
    """PARTITIONED BY (..), CLUSTER BY (..), COMMENT '..' or TBLPROPERTIES (..), as it stands."""
    start = cursor.offset
    if cursor.take("COMMENT"):
        cursor.string("a comment in quotes")
    elif cursor.take("PARTITIONED", "BY") or cursor.take("CLUSTER", "BY") or cursor.take("TBLPROPERTIES"):
        cursor.group()
    else:
        raise cursor.error("expected LOCATION, USING, PARTITIONED BY, CLUSTER BY, COMMENT, TBLPROPERTIES or AS")
    return cursor.text[start : cursor.tokens[cursor.index - 1].end]


def _table_columns(cursor: Cursor) -> tuple[str, s.Watermark | None]:
    """The columns as Spark is to read them, and the watermark, which stands among them."""
    begin = cursor.index
    start, end = cursor.group()
    after = cursor.index
    depth = cursor.tokens[begin].depth + 1
    for index in range(begin + 1, after - 1):
        cursor.index = index
        begins = cursor.tokens[index].depth == depth and cursor.tokens[index - 1].upper in ("(", ",")
        if begins and cursor.take("WATERMARK", "FOR"):
            cursor.index -= 1
            watermark = read_watermark(cursor)
            if not cursor.at(",") and cursor.index != after - 1:
                raise cursor.error("expected , or ) behind the watermark")
            before = cursor.text[start : cursor.tokens[index - 1].start].strip() if index > begin + 1 else ""
            rest = cursor.text[cursor.offset : end].strip().removeprefix(",").strip()
            cursor.index = after
            return ", ".join(part for part in (before, rest) if part), watermark
    cursor.index = after
    return cursor.text[start:end].strip(), None


def _alter_watermark(cursor: Cursor, name: str) -> s.Statement | None:
    """SET, DROP or ADVANCE WATERMARK; None for another ALTER TABLE."""
    if cursor.take("SET", "WATERMARK"):
        watermark = read_watermark(cursor)
        cursor.end()
        return s.SetWatermark(cursor.text, name, watermark)
    if cursor.take("DROP", "WATERMARK"):
        cursor.end()
        return s.SetWatermark(cursor.text, name, None)
    if cursor.take("ADVANCE", "WATERMARK", "TO"):
        cursor.take("TIMESTAMP")
        moment = cursor.string("a time in quotes")
        cursor.end()
        return s.AdvanceWatermark(cursor.text, name, moment)
    return None


def _drop_table(cursor: Cursor) -> s.Statement:
    cursor.expect("DROP", "TABLE")
    if_exists = cursor.take("IF", "EXISTS")
    name = cursor.relation("the name of the table")
    cascade = cursor.take("CASCADE")
    if not cascade:
        cursor.take("RESTRICT")
    cursor.end()
    return s.DropTable(cursor.text, name, if_exists, cascade)


def _create_view(cursor: Cursor) -> s.CreateView:
    begin = cursor.index
    cursor.expect("CREATE")
    or_replace = cursor.take("OR", "REPLACE") or cursor.take("OR", "REFRESH")
    cursor.expect("MATERIALIZED", "VIEW")
    if_not_exists = cursor.take("IF", "NOT", "EXISTS")
    if or_replace and if_not_exists:
        raise cursor.error("OR REPLACE and IF NOT EXISTS exclude each other")
    name = cursor.relation("the name of the view")
    columns = _view_columns(cursor) if cursor.at("(") else ()
    clauses = read_clauses(cursor, before_query=True)
    if not cursor.take("AS"):
        raise cursor.error("expected AS and a query")
    end, start = find_query_end(cursor), cursor.offset
    if end == cursor.index:
        raise cursor.error("expected a query")
    stop = cursor.tokens[end - 1].end
    refuse_past(cursor.text, start, stop)
    check_query(cursor.text, start, stop)
    cursor.index = end
    read_clauses(cursor, clauses)
    return s.CreateView(
        cursor.text[cursor.tokens[begin].start :], name=name,
        query=qualified(cursor.text[start:stop], cursor.current), or_replace=or_replace,
        if_not_exists=if_not_exists, columns=columns, comment=clauses.comment, properties=clauses.properties,
        trigger=clauses.trigger or MANUAL, policy=clauses.policy or Policy.AUTO, initialize=clauses.initialize,
        placement=s.Placement(clauses.partition, clauses.cluster, clauses.buckets), options=clauses.options,
        cascade=clauses.cascade,
    )  # fmt: skip


def _create_plain_view(cursor: Cursor) -> s.Statement:
    cursor.expect("CREATE")
    or_replace = cursor.take("OR", "REPLACE")
    cursor.expect("VIEW")
    if_not_exists = cursor.take("IF", "NOT", "EXISTS")
    if or_replace and if_not_exists:
        raise cursor.error("OR REPLACE and IF NOT EXISTS exclude each other")
    name = cursor.relation("the name of the view")
    columns = _view_columns(cursor) if cursor.at("(") else ()
    comment = cursor.string("a comment in quotes") if cursor.take("COMMENT") else None
    if not cursor.take("AS"):
        raise cursor.error("expected AS and a query")
    if cursor.token is None:
        raise cursor.error("expected a query")
    start, stop = cursor.offset, cursor.tokens[-1].end
    refuse_past(cursor.text, start, stop)
    check_query(cursor.text, start, stop)
    return s.CreatePlainView(
        cursor.text, name=name, query=qualified(cursor.text[start:stop], cursor.current), or_replace=or_replace,
        if_not_exists=if_not_exists, columns=columns, comment=comment,
    )  # fmt: skip


def _drop_plain_view(cursor: Cursor) -> s.Statement:
    cursor.expect("DROP", "VIEW")
    if_exists = cursor.take("IF", "EXISTS")
    name = cursor.relation("the name of the view")
    cursor.take("RESTRICT")
    cursor.end()
    return s.DropPlainView(cursor.text, name, if_exists)


def _view_columns(cursor: Cursor) -> tuple[tuple[str, str | None], ...]:
    cursor.expect("(")
    columns: list[tuple[str, str | None]] = []
    while True:
        name = cursor.name("the name of a column")
        columns.append((name, cursor.string("a comment in quotes") if cursor.take("COMMENT") else None))
        if not cursor.take(","):
            cursor.expect(")")
            return tuple(columns)


def _refresh_view(cursor: Cursor) -> s.Statement:
    cursor.expect("REFRESH", "MATERIALIZED", "VIEW")
    name = cursor.relation("the name of the view")
    full = cursor.take("FULL")
    cursor.end()
    return s.RefreshView(cursor.text, name, full)


def _alter_view(cursor: Cursor) -> s.Statement:
    cursor.expect("ALTER", "MATERIALIZED", "VIEW")
    name = cursor.relation("the name of the view")
    for word, suspended in (("SUSPEND", True), ("RESUME", False)):
        if cursor.take(word):
            cursor.end()
            return s.SuspendView(cursor.text, name, suspended)
    if cursor.take("RENAME", "TO"):
        other = cursor.relation("the new name")
        raise NotSupportedError(
            f"view {name!r} cannot be renamed: what reads it knows it by its name. SHOW CREATE MATERIALIZED VIEW "
            f"{name} prints its statement: run that with the name {other}, then drop {name}."
        )
    if cursor.token is None:
        raise cursor.error(
            "expected REFRESH, SCHEDULE, REFRESH POLICY, TARGET LAG, CONSISTENCY, PRIORITY, SET TBLPROPERTIES, SUSPEND "
            "or RESUME"
        )
    if cursor.at("SET") or cursor.at("UNSET"):
        changed_properties = read_changed_properties(cursor)
        cursor.end()
        return s.AlterView(cursor.text, name=name, properties=changed_properties)
    if cursor.take("DROP", "SCHEDULE") or cursor.take("DROP", "TRIGGER"):
        cursor.end()
        return s.AlterView(cursor.text, name=name, trigger=MANUAL)
    if cursor.take("DROP", "TARGET", "LAG"):
        cursor.end()
        return s.AlterView(cursor.text, name=name, lag=s.NONE)
    if cursor.at("ADD") or cursor.at("ALTER"):
        cursor.index += 1
        trigger = read_trigger(cursor)
        cursor.end()
        return s.AlterView(cursor.text, name=name, trigger=trigger)
    clauses = read_clauses(cursor)
    if not clauses.seen <= _ALTERED:
        raise SqlError(f"ALTER MATERIALIZED VIEW {name} cannot change that. Use CREATE OR REPLACE.")
    changed = clauses.options
    return s.AlterView(
        cursor.text, name=name, policy=clauses.policy, trigger=clauses.trigger, lag=changed.lag,
        consistency=changed.consistency, schedule=changed.schedule,
        priority=changed.priority if "PRIORITY" in clauses.seen else None,
    )  # fmt: skip


_ALTERED = {"REFRESH", "REFRESH POLICY", "TARGET LAG", "PRIORITY", "CONSISTENCY", "SCHEDULE POLICY"}


def _drop_view(cursor: Cursor) -> s.Statement:
    cursor.expect("DROP", "MATERIALIZED", "VIEW")
    if_exists = cursor.take("IF", "EXISTS")
    name = cursor.relation("the name of the view")
    cascade = cursor.take("CASCADE")
    if not cascade:
        cursor.take("RESTRICT")
    cursor.end()
    return s.DropView(cursor.text, name, if_exists, cascade)


def _show_dependencies(cursor: Cursor) -> s.Statement:
    cursor.expect("SHOW", "DEPENDENCIES", "FOR")
    name = cursor.relation("the name of a view or table")
    cursor.end()
    return s.ShowDependencies(cursor.text, name)


def _show_history(cursor: Cursor) -> s.Statement:
    cursor.expect("SHOW", "REFRESH", "HISTORY")
    name = cursor.relation("the name of a view") if cursor.take("FOR") else None
    limit = cursor.integer() if cursor.take("LIMIT") else None
    cursor.end()
    return s.ShowHistory(cursor.text, name, limit)


def _plain(kind: type[s.Statement], *words: str) -> Callable[[Cursor], s.Statement]:
    def read(cursor: Cursor) -> s.Statement:
        cursor.expect(*words)
        cursor.end()
        return kind(cursor.text)

    return read


def _boundary(kind: type[s.Statement], *words: str) -> Reads:
    """BEGIN, COMMIT or ROLLBACK, with words that mean the same."""

    def read(cursor: Cursor) -> s.Statement:
        cursor.expect(*words)
        if not cursor.take("TRANSACTION"):
            cursor.take("WORK")
        cursor.end()
        return kind(cursor.text)

    return read


_Named = s.MakeCheckpoint | s.RestoreCheckpoint | s.DropCheckpoint | s.ReplayLate


def _named(kind: type[_Named], *words: str) -> Reads:
    def read(cursor: Cursor) -> s.Statement:
        cursor.expect(*words)
        name = cursor.relation() if kind is s.ReplayLate else cursor.name()
        cursor.end()
        return kind(cursor.text, name)

    return read


def _set(cursor: Cursor) -> s.Statement:
    cursor.expect("SET")
    if cursor.at("SPARK", ".") or cursor.at("TIME", "ZONE"):
        raise NotSupportedError(
            f"{cursor.text!r} is about a Spark session, and SET is about the warehouse (see SHOW SETTINGS). Set it in "
            "a session of your own and pass that on: penstock.connect(path, spark=session)."
        )
    name = cursor.name("the name of a setting")
    if not cursor.take("="):
        cursor.take("TO")
    token = cursor.token
    if token is None:
        raise cursor.error("expected a value")
    value = cursor.string() if token.kind == "string" else " ".join(t.text for t in cursor.tokens[cursor.index :])
    cursor.index = len(cursor.tokens) if token.kind != "string" else cursor.index
    cursor.end()
    return s.SetSetting(cursor.text, name, value)


def _show_create(cursor: Cursor) -> s.Statement:
    cursor.expect("SHOW", "CREATE")
    view = cursor.take("MATERIALIZED", "VIEW")
    if not view and not cursor.take("TABLE") and not cursor.take("VIEW"):
        raise cursor.error("expected TABLE, VIEW or MATERIALIZED VIEW")
    name = cursor.relation("the name of a table or view")
    cursor.end()
    return s.ShowCreate(cursor.text, name, view)


def _describe_view(cursor: Cursor) -> s.Statement:
    cursor.index += 3
    if not cursor.take("EXTENDED"):
        cursor.take("FORMATTED")
    name = cursor.relation("the name of the view")
    cursor.end()
    return s.DescribeView(cursor.text, name)


def _explain(cursor: Cursor) -> s.Statement:
    cursor.expect("EXPLAIN")
    if cursor.take("MATERIALIZED", "VIEW"):
        name = cursor.relation("the name of the view")
        cursor.end()
        return s.ExplainView(cursor.text, name)
    if cursor.at("CREATE"):
        return s.ExplainCreate(cursor.text, _create_view(cursor))
    mode = "simple"
    for word in ("EXTENDED", "FORMATTED", "COST", "CODEGEN"):
        if cursor.take(word):
            mode = word.lower()
    if cursor.token is None:
        raise cursor.error("expected MATERIALIZED VIEW and a name, or a query")
    return s.ExplainQuery(cursor.text, qualified(cursor.text[cursor.offset :], cursor.current), mode)


_READERS: dict[tuple[str, ...], Callable[[Cursor], s.Statement]] = {
    ("CREATE", "TABLE"): _create_table,
    ("DROP", "TABLE"): _drop_table,
    ("CREATE", "MATERIALIZED", "VIEW"): _create_view,
    ("CREATE", "OR", "REPLACE", "MATERIALIZED", "VIEW"): _create_view,
    ("CREATE", "OR", "REFRESH", "MATERIALIZED", "VIEW"): _create_view,
    ("CREATE", "VIEW"): _create_plain_view,
    ("CREATE", "OR", "REPLACE", "VIEW"): _create_plain_view,
    ("DROP", "VIEW"): _drop_plain_view,
    ("SHOW", "VIEWS"): listed(s.ShowPlainViews, "SHOW", "VIEWS"),
    ("SHOW", "READ", "MODELS"): listed(s.ShowModels, "SHOW", "READ", "MODELS"),
    ("REFRESH", "MATERIALIZED", "VIEW"): _refresh_view,
    ("ALTER", "MATERIALIZED", "VIEW"): _alter_view,
    ("DROP", "MATERIALIZED", "VIEW"): _drop_view,
    ("SHOW", "TABLES"): listed(s.ShowTables, "SHOW", "TABLES"),
    ("SHOW", "MATERIALIZED", "VIEWS"): listed(s.ShowViews, "SHOW", "MATERIALIZED", "VIEWS"),
    ("SHOW", "SCHEMAS"): _plain(s.ShowSchemas, "SHOW", "SCHEMAS"),
    ("CREATE", "SCHEMA"): create_schema,
    ("DROP", "SCHEMA"): drop_schema,
    ("USE",): use,
    ("SHOW", "CREATE"): _show_create,
    ("SHOW", "DEPENDENCIES"): _show_dependencies,
    ("SHOW", "REFRESH", "HISTORY"): _show_history,
    ("SHOW", "CONSISTENCY", "GROUPS"): _plain(s.ShowGroups, "SHOW", "CONSISTENCY", "GROUPS"),
    ("SHOW", "ALERTS"): _plain(s.ShowAlerts, "SHOW", "ALERTS"),
    ("SHOW", "SETTINGS"): _plain(s.ShowSettings, "SHOW", "SETTINGS"),
    ("SET",): _set,
    ("BEGIN",): _boundary(s.Begin, "BEGIN"),
    ("START", "TRANSACTION"): _boundary(s.Begin, "START"),
    ("COMMIT",): _boundary(s.Commit, "COMMIT"),
    ("ROLLBACK",): _boundary(s.Rollback, "ROLLBACK"),
    ("REPLAY", "LATE", "ROWS"): _named(s.ReplayLate, "REPLAY", "LATE", "ROWS", "FOR"),
    ("CHECKPOINT",): _named(s.MakeCheckpoint, "CHECKPOINT"),
    ("RESTORE", "CHECKPOINT"): _named(s.RestoreCheckpoint, "RESTORE", "CHECKPOINT"),
    ("DROP", "CHECKPOINT"): _named(s.DropCheckpoint, "DROP", "CHECKPOINT"),
    ("SHOW", "CHECKPOINTS"): _plain(s.ShowCheckpoints, "SHOW", "CHECKPOINTS"),
    ("SHOW", "WATERMARKS"): _plain(s.ShowWatermarks, "SHOW", "WATERMARKS"),
    ("DESCRIBE", "MATERIALIZED", "VIEW"): _describe_view,
    ("DESC", "MATERIALIZED", "VIEW"): _describe_view,
    ("EXPLAIN",): _explain,
}
