"""jsonb_build_object, jsonb_build_array and jsonb_agg in Spark's functions, and documents inside documents.

A document is text, put together of the texts of its values. What is a document already (``json_lineage``) is put in as
it is, so that it nests as an object; any other value by its JSON text.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from sqlglot import exp

from penstock.errors import SqlError
from penstock.sql.dialect import SparkSql
from penstock.sql.documents import JsonAgg, JsonText, quoted
from penstock.sql.json_lineage import BUILDERS, JSON, MARK, mark_documents
from penstock.sql.rewriting import Rewriting, condition_of, operands, read, sort_keys

_LISTS = (exp.ArrayAgg,)
_AROUND = (exp.Filter, exp.IgnoreNulls, exp.RespectNulls)


def uses_json(tree: exp.Expr) -> bool:
    """Whether a query builds documents, or reads stored ones."""
    return any(_name(node) in (*BUILDERS, MARK) for node in tree.find_all(exp.Anonymous))


def rewrite_json(rewriting: Rewriting) -> None:
    """The functions that build documents, spelled so that Spark knows them.

    >>> from penstock.sql.query import parse_query
    >>> q = parse_query("SELECT jsonb_build_object('a', d.x) FROM (SELECT jsonb_build_array(b, 1) AS x FROM t) d")
    >>> print(q.sql(dialect=SparkSql).split(" FROM ")[0])
    SELECT CONCAT('{"a":', COALESCE(d.x, 'null'), '}') AS `jsonb_build_object`
    """
    rewriting.mark(mark_documents)
    for node in rewriting.find(exp.Anonymous, exp.JSONFormat):
        around = node
        while isinstance(around.parent, _AROUND):
            around = around.parent
        new = _built(node, around)
        if new is not None:
            new.meta[JSON] = True
            name = None if _name(node) == MARK else _name(node).lower()
            rewriting.replace(node, new, around=around, name=name)


def _built(node: exp.Expr, around: exp.Expr) -> exp.Expr | None:
    match _name(node):
        case "JSONB_BUILD_OBJECT":
            return _object(node, node.expressions)
        case "JSONB_BUILD_ARRAY":
            return _array(_pieces(node, node.expressions))
        case "JSONB_AGG":
            return _list(node, around)
        case name if name == MARK:
            return operands(node, node.expressions)[0]
    if isinstance(node, exp.JSONFormat) and not node.args.get("options") and _holds_documents(node.this):
        return _piece(node.this, operands(node, [node.this])[0], kept=False)
    return None


def _name(node: exp.Expr) -> str:
    return str(node.this).upper() if isinstance(node, exp.Anonymous) else "TO_JSON"


def _object(node: exp.Expr, arguments: Sequence[exp.Expr]) -> exp.Expr:
    if len(arguments) % 2:
        raise SqlError(
            f"{_text(node)}: jsonb_build_object takes keys and values in turn, and one is missing. "
            "Write jsonb_build_object('key', value, ..)."
        )
    names = [_key(node, key) for key in arguments[::2]]
    twice = [name for place, name in enumerate(names) if name in names[:place]]
    if twice:
        raise SqlError(f"jsonb_build_object has the key {twice[0]!r} twice. Give each value a key of its own.")
    pieces = _pieces(node, arguments)[1::2]
    return _of_fields(list(zip(names, pieces, strict=True)))


def _key(node: exp.Expr, key: exp.Expr) -> str:
    if not isinstance(key, exp.Literal) or not key.is_string:
        raise SqlError(f"{_text(node)}: the keys of jsonb_build_object are texts in quotes, and {_text(key)} is none.")
    return str(key.this)


def _of_fields(fields: Sequence[tuple[str, exp.Expr]]) -> exp.Expr:
    parts: list[exp.Expr] = []
    for number, (name, piece) in enumerate(fields):
        parts += [_said(f"{',' if number else '{'}{quoted(name)}:"), piece]
    return _joined([*parts, _said("}")]) if fields else _said("{}")


def _array(pieces: Sequence[exp.Expr]) -> exp.Expr:
    between: list[exp.Expr] = []
    for number, piece in enumerate(pieces):
        between += [_said("," if number else "["), piece]
    return _joined([*between, _said("]")]) if pieces else _said("[]")


def _list(node: exp.Expr, around: exp.Expr) -> exp.Expr:
    """jsonb_agg(x ORDER BY ..); without an order, and among equal keys, in the order of the texts."""
    if isinstance(around.parent, exp.Window):
        raise SqlError(f"{_text(around.parent)}: jsonb_agg has no OVER. Put it into a subquery with GROUP BY.")
    if len(node.expressions) != 1 and not any(isinstance(e, exp.Order) for e in node.expressions):
        raise SqlError(f"{_text(node)}: jsonb_agg takes one value: jsonb_agg(value ORDER BY key, ..).")
    argument, keys = node.expressions[0], list[exp.Expr]()
    if isinstance(argument, exp.Order):
        argument, keys = argument.this, argument.expressions
    if isinstance(argument, exp.Distinct):
        raise SqlError(f"{_text(node)}: jsonb_agg has no DISTINCT. Read from a subquery with SELECT DISTINCT.")
    operand = operands(node, [argument])[0]
    return _collected(node, around, _piece(argument, operand), keys)


def _collected(node: exp.Expr, around: exp.Expr, piece: exp.Expr, keys: Sequence[exp.Expr]) -> exp.Expr:
    """An array of the pieces of a group."""
    made = sort_keys(node, [key.this for key in keys])
    ordered = [
        exp.Ordered(this=new, desc=key.args.get("desc"), nulls_first=key.args.get("nulls_first"))
        for key, new in zip(keys, made, strict=True)
    ]
    last = exp.Ordered(this=piece.copy(), desc=False, nulls_first=True)
    joined: exp.Expr = JsonAgg(this=piece, order=exp.Order(expressions=[*ordered, last]))
    if isinstance(around, exp.Filter):
        joined = exp.Filter(this=joined, expression=exp.Where(this=condition_of(node, around.expression.this)))
    return _joined([_said("["), exp.Coalesce(this=joined, expressions=[_said("")]), _said("]")])


def _pieces(node: exp.Expr, values: Sequence[exp.Expr]) -> list[exp.Expr]:
    made = operands(node, list(values))
    return [_piece(value, operand) for value, operand in zip(values, made, strict=True)]


def _piece(value: exp.Expr, operand: exp.Expr, *, kept: bool = True) -> exp.Expr:
    """The JSON text of a value inside a document. ``kept``: whether a struct keeps fields that are NULL."""
    inner = value
    while isinstance(inner, exp.Paren):
        inner = inner.this
    if inner.meta.get(JSON) and isinstance(inner, exp.Concat | exp.Literal):
        return operand  # what was built here is never NULL
    if inner.meta.get(JSON):
        return exp.Coalesce(this=operand, expressions=[_said("null")])
    if isinstance(inner, exp.Null):
        return _said("null")
    if not _holds_documents(inner):
        return JsonText(this=operand)
    match inner:
        case exp.Struct():
            return _struct(inner, kept)
        case exp.Array():
            return _array(_pieces(inner, inner.expressions))
    around = inner
    while isinstance(inner, _AROUND):
        inner = inner.this
    document = operands(inner, [inner.this])[0]
    return _collected(inner, around, document, [])


def _struct(node: exp.Struct, kept: bool) -> exp.Expr:
    """NAMED_STRUCT with documents in it. TO_JSON leaves out what is NULL; jsonb_build_object does not."""
    call_values: list[exp.Expr] = []
    for field in node.expressions:
        if not isinstance(field, exp.PropertyEQ):
            raise SqlError(f"{_text(node)}: a document in a struct needs NAMED_STRUCT('name', value, ..).")
        call_values += [exp.Literal.string(field.name), field.expression]
    made = operands(node, call_values)
    fields = [(call_values[place].name, call_values[place + 1], made[place + 1]) for place in range(0, len(made), 2)]
    if kept or all(_is_never_null(value) for _, value, _ in fields):
        return _of_fields([(name, _piece(value, operand, kept=kept)) for name, value, operand in fields])
    parts: list[exp.Expr] = []
    for name, value, operand in fields:
        text = _joined([_said(f"{quoted(name)}:"), _piece(value, operand, kept=False)])
        there = exp.Not(this=exp.Is(this=operand.copy(), expression=exp.Null()))
        parts.append(text if _is_never_null(value) else exp.If(this=there, true=text, false=exp.Null()))
    listed = exp.Anonymous(this="CONCAT_WS", expressions=[_said(","), *parts])
    return _joined([_said("{"), listed, _said("}")])


def _is_never_null(value: exp.Expr) -> bool:
    while isinstance(value, exp.Paren | exp.Filter):
        value = value.this
    return isinstance(value, exp.Literal | exp.Concat | exp.Struct | exp.Array | exp.ArrayAgg)


def _holds_documents(node: exp.Expr) -> bool:
    """Whether a struct, an array or a list of a group has documents in it."""
    if isinstance(node, exp.Paren | exp.Filter):
        return _holds_documents(node.this)
    parts: Iterable[exp.Expr] = ()
    if isinstance(node, exp.Struct):
        parts = [field.expression if isinstance(field, exp.PropertyEQ) else field for field in node.expressions]
    elif isinstance(node, exp.Array):
        parts = node.expressions
    elif isinstance(node, _LISTS) and isinstance(node.this, exp.Expr):
        return bool(node.this.meta.get(JSON))
    return any(part.meta.get(JSON) or _holds_documents(part) for part in parts)


def _joined(parts: Sequence[exp.Expr]) -> exp.Expr:
    """Texts one behind the other; those that are written down become one."""
    merged: list[exp.Expr] = []
    for part in parts:
        inner = part.expressions if isinstance(part, exp.Concat) else [part]
        for one in inner:
            if merged and _is_text(one) and _is_text(merged[-1]):
                merged[-1] = _said(merged[-1].this + one.this)
            else:
                merged.append(one)
    return merged[0] if len(merged) == 1 else exp.Concat(expressions=merged, safe=True, coalesce=False)


def _is_text(node: exp.Expr) -> bool:
    return isinstance(node, exp.Literal) and node.is_string


def _said(text: str) -> exp.Expr:
    return exp.Literal.string(text)


def _text(node: exp.Expr) -> str:
    return str(read(node).sql(dialect=SparkSql))
