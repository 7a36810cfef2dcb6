"""What a statement leaves to the settings of its connection: orders, divisions, the pick of an aggregate."""

import re

import sqlglot
from sqlglot import exp
from sqlglot.tokens import TokenType

#: Aggregates that pick or join values in the order in which rows come to them, by the name they are written with.
PICKING = {
    "any_value", "arbitrary", "arg_max", "arg_max_null", "arg_min", "arg_min_null", "argmax", "argmin", "array_agg",
    "first", "group_concat", "last", "list", "listagg", "max_by", "min_by", "mode", "string_agg",
}  # fmt: skip
FRACTIONS = {exp.DataType.Type.DOUBLE, exp.DataType.Type.FLOAT, exp.DataType.Type.DECIMAL}


def plain(template):
    """The text of a template as one text of SQL tokens: all branches one after the other, each parameter a name."""
    text = re.sub(r"\{#.*?#\}", " ", template, flags=re.DOTALL)
    text = re.sub(r"\{\{[^}]*\",\"[^}]*\}\}", ",", text)
    text = re.sub(r"\{\{.*?\}\}", "param", text)
    return re.sub(r"\{%.*?%\}", " ", text, flags=re.DOTALL)


def unstated_orders(sql):
    """The terms of every ORDER BY that lack ASC or DESC, or NULLS FIRST or LAST, as their words."""
    tokens = sqlglot.tokenize(sql, read="duckdb")
    starts = [place for place, token in enumerate(tokens, 1) if token.token_type is TokenType.ORDER_BY]
    return [" ".join(term) for start in starts for term in _terms(tokens[start:]) if not _is_stated(term)]


def _terms(tokens):
    """The terms of the ORDER BY that the tokens begin with, each a list of words."""
    terms, depth = [[]], 0
    for place, token in enumerate(tokens):
        depth += {TokenType.L_PAREN: 1, TokenType.R_PAREN: -1}.get(token.token_type, 0)
        if depth < 0 or (depth == 0 and _is_end([other.text.upper() for other in tokens[place:][:2]])):
            break
        if depth == 0 and token.token_type is TokenType.COMMA:
            terms.append([])
        else:
            terms[-1].append("''" if token.token_type is TokenType.STRING else token.text)
    return [term for term in terms if term]


def _is_end(words):
    """Whether the next words are no more of a term: those of a window's frame, or of what follows an ORDER BY."""
    return words[0] in {"LIMIT", "UNION", "EXCEPT", "INTERSECT"} or words in (
        [frame, bound] for frame in ("ROWS", "RANGE", "GROUPS") for bound in ("BETWEEN", "UNBOUNDED", "CURRENT")
    )


def _is_stated(term):
    return re.search(r" (ASC|DESC) NULLS (FIRST|LAST)$", " ".join(term).upper()) is not None


def is_sorted_at_once(node):
    """Whether a list is sorted where it is made: then its values alone say what it is, in every engine."""
    above = node.parent
    while isinstance(above, exp.Filter | exp.ArrayDistinct):
        above = above.parent
    return isinstance(node, exp.ArrayAgg) and isinstance(above, exp.ArraySort)


def undecided(tree):
    """What in a statement's syntax tree depends on settings or on the order of rows: divisions, aggregates, limits."""
    found = [f"{node.sql('duckdb')}: whole numbers?" for node in tree.find_all(exp.Div) if not _is_fraction(node)]
    for node in tree.find_all(exp.Func):
        name = node.name if isinstance(node, exp.Anonymous) else node.sql_name()
        written = {name.lower(), *(other.lower() for other in getattr(node, "sql_names", list)())}
        is_ordered = isinstance(node.this, exp.Order) or node.find_ancestor(exp.WithinGroup) or is_sorted_at_once(node)
        if written & PICKING and not is_ordered:
            found.append(f"{node.sql('duckdb')}: in which order?")
    for node in tree.find_all(exp.Select):
        if node.args.get("limit") and not node.args.get("order"):
            found.append("LIMIT without ORDER BY")
        if isinstance(node.args.get("distinct"), exp.Distinct) and node.args["distinct"].args.get("on"):
            found.append("DISTINCT ON")
    return found


def _is_fraction(node):
    """Whether the number is no whole one as it is written, so that `/` cannot mean a division of whole numbers."""
    if isinstance(node, exp.Cast):
        return node.to.this in FRACTIONS
    if isinstance(node, exp.Literal):
        return not node.is_string and not node.name.isdigit()
    if isinstance(node, exp.Ln | exp.Sqrt | exp.Exp | exp.Avg | exp.Pow):
        return True
    if isinstance(node, exp.Column | exp.Subquery | exp.Placeholder | exp.Parameter | exp.IntDiv):
        return False
    if isinstance(node, exp.Case):
        return any(map(_is_fraction, [*(branch.args["true"] for branch in node.args["ifs"]), *_default(node)]))
    return any(_is_fraction(child) for child in node.iter_expressions())


def _default(case):
    return [case.args["default"]] if case.args.get("default") else []
