"""Jinja templates of SQL, with two kinds of parameter that never mix: names and values.

A name is an `Identifier` or a `Relation`, quoted by sqlglot, or a `SqlType`; a value is a `Value`, always sent as a
bound parameter. A template's header says of which kind each parameter is, and a text or a number that is given for it
becomes that kind. Anywhere else a number is bound, and a text is an error: none of the user's ever becomes SQL.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from contextvars import ContextVar
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import yaml
from jinja2 import Environment, FileSystemBytecodeCache, FileSystemLoader, StrictUndefined, pass_environment
from jinja2 import TemplateError as JinjaError
from jinja2.bccache import Bucket
from jinja2.filters import make_attrgetter
from markupsafe import Markup

from ldiv_db.database.data_files import FileRelation, Table
from ldiv_db.database.errors import TemplateError
from ldiv_db.database.names import CallerView, Figure, Identifier, Part, Relation, SqlType, Value, literal

#: The only plain strings that a parameter may write: the glue between the items of a generated list, and signs.
CONNECTIVES = frozenset({"", ",", " AND ", " OR ", " + ", " UNION", " UNION ALL", "=", "<>", "<", "<=", ">", ">="})
#: What is written as it says itself.
_NAMES = (Identifier, Relation, SqlType, Figure)
#: What is a single value.
SCALARS = (str, int, float, Decimal, Fraction, date)
#: The reader of headers: the fast one, where YAML was built with it.
_YAML = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
#: The kinds of parameters that a template's header lists. Its other entries are prose (`returns`, `implements`), and an
#: `example` that a test works.
PARAM_KINDS = ("relations", "identifiers", "values", "options")
#: The name of a statement that no template wrote.
BUILT_IN = "(built in)"


@dataclass
class Statement:
    """A rendered template: its SQL, its bound values by parameter name, and where it came from."""

    template: str
    sql: str
    values: dict[str, Any] = field(default_factory=dict)
    #: The tables and files that it reads which are not TEMP tables of ours, and the table that it writes, if it stays.
    reads: Sequence[Table] = ()
    writes: Relation | None = None
    #: The steps that are its parts, the last being `template`; none of a statement of one step.
    parts: Sequence[Statement] = ()

    def numbered(self) -> str:
        """The SQL with line numbers, for an error report."""
        return "\n".join(f"{i:4d}  {line}" for i, line in enumerate(self.sql.splitlines(), 1))


#: The values bound by the rendering under way; None where none can be, and they are written down.
_bound: ContextVar[dict[str, Any] | None] = ContextVar("bound")


def _bind(value: Any) -> Markup:
    """The parameter that stands for `value` in the statement being rendered."""
    values = _bound.get()
    if values is None:
        return Markup(literal(value))
    name = f"p{len(values) + 1}"
    values[name] = value
    return Markup(f"${name}")


def _fill(param: Any) -> Markup:
    """The text that Jinja puts out for one parameter; raises TemplateError for a text that nothing says the kind of."""
    if isinstance(param, Markup):
        return param
    if isinstance(param, _NAMES):
        return Markup(param.sql())
    if isinstance(param, FileRelation | Value):
        return Markup(param.sql(_bind(param.path))) if isinstance(param, FileRelation) else _bind(param.value)
    if isinstance(param, str) and param in CONNECTIVES:
        return Markup(param)
    if isinstance(param, StrictUndefined):
        str(param)  # raises, naming the variable
    if param is None or (isinstance(param, SCALARS) and not isinstance(param, str)):
        return _bind(param)
    raise TemplateError(
        f"a parameter takes an Identifier, a Relation, a SqlType or a Value, not {type(param).__name__}"
    )


@pass_environment
def _each(
    environment: Environment, items: Sequence[Any], alias: str, attribute: str = "", more: bool = False
) -> Markup:
    """The columns `r."q1", r."q2"`: each item, or what it calls so; with `more` a comma ends them if there are any."""
    columns = map(make_attrgetter(environment, attribute), items) if attribute else items
    listed = Markup(", ").join(Markup(f"{alias}.") + _fill(column) for column in columns)
    return listed + Markup(",") if more and items else listed


def resource_folder(name: str) -> Path:
    """A folder such as `sql` or `fixtures`: beside the package in a checkout, inside it in a wheel."""
    package = Path(__file__).resolve().parent.parent
    for folder in (package / name, package.parent / name):
        if folder.is_dir():
            return folder
    raise TemplateError(f"the installation is incomplete: no folder {name!r}")


def template_text(template: str, folders: Sequence[Path] = ()) -> str:
    """The source text of a template, ours or in one of the folders besides."""
    for folder in (resource_folder("sql"), *folders):
        with suppress(FileNotFoundError):
            return (folder / f"{template}.sql.j2").read_text(encoding="utf-8")
    raise TemplateError(f"no template {template!r}")


@functools.cache
def header(template: str, folders: tuple[Path, ...] = ()) -> dict[str, Any]:
    """What a template's header says; raises TemplateError if the text begins with none in a comment of Jinja's."""
    text = template_text(template, folders)
    end = text.find("#}")
    if not text.startswith("{#") or end < 0:
        raise TemplateError(f"{template}: a template begins with its header")
    parsed = yaml.load(text[2:end], Loader=_YAML)  # noqa: S506 - a safe loader either way
    if not isinstance(parsed, dict) or "returns" not in parsed:
        raise TemplateError(f"{template}: the header says what the template returns")
    unknown = set(parsed) - {"returns", "implements", "example", *PARAM_KINDS}
    if unknown:
        raise TemplateError(f"{template}: unknown keys in the header: {sorted(unknown)}")
    return parsed


@functools.cache
def declared_params(template: str, folders: tuple[Path, ...] = ()) -> frozenset[str]:
    """The names of all parameters that the header declares."""
    head = header(template, folders)
    return frozenset(name for kind in PARAM_KINDS for name in head.get(kind) or ())


@functools.cache
def _kinds(template: str, folders: tuple[Path, ...]) -> dict[str, type]:
    """What a text or a number becomes that is given for a parameter, by the parameter's name; a relation is none."""
    head = header(template, folders)
    kinds: list[tuple[str, type]] = [("relations", Relation), ("identifiers", Identifier), ("values", Value)]
    return {name: kind for said, kind in kinds for name in head.get(said) or ()}


class _NoRelation:
    """A relation that is left out: false to a template, which cannot write it."""

    def __bool__(self) -> bool:
        return False


def _typed(param: Any, kind: type | None) -> Any:
    """The parameter, or each item of a list, as the header's kind of it; what has a kind keeps it."""
    if kind is Relation:
        if isinstance(param, SCALARS):
            raise TemplateError(f"a parameter takes a Relation or a FileRelation here, not {type(param).__name__}")
        return _NoRelation() if param is None else param
    if kind is None:
        return param
    if isinstance(param, list | tuple):
        return [_typed(one, kind) for one in param]
    if kind is Identifier:
        return Identifier(param) if isinstance(param, str) else param
    return Value(param) if isinstance(param, SCALARS) else param


class Compiled(FileSystemBytecodeCache):
    """Compiled templates, kept where Python keeps its compiled modules, if that may be written."""

    def __init__(self) -> None:
        super().__init__(str(Path(__file__).parent / "__pycache__"), "template_%s.cache")

    def dump_bytecode(self, bucket: Bucket) -> None:
        if not sys.dont_write_bytecode:
            with suppress(OSError):
                super().dump_bytecode(bucket)


@functools.cache
def _environment(folders: tuple[Path, ...]) -> Environment:
    environment = Environment(
        loader=FileSystemLoader([resource_folder("sql"), *folders]),
        bytecode_cache=Compiled(),
        undefined=StrictUndefined,
        finalize=_fill,
        autoescape=True,  # makes macros return Markup, so that their output passes the check of parameters
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=False,
        cache_size=-1,  # there are more templates than Jinja keeps
        auto_reload=False,
    )
    # What every template may call without importing it.
    environment.globals |= {"each": _each}
    environment.globals |= {"join": environment.get_template("macros/join.j2").module.join}  # type: ignore[attr-defined]
    return environment


def render(
    template: str,
    params: Mapping[str, Any],
    folders: tuple[Path, ...] = (),
    values: dict[str, Any] | None = None,
    of_view: bool = False,
) -> Statement:
    """The statement that `template`, ours or of `folders`, makes of `params`; raises TemplateError if they do not fit.

    `values` are those bound by other parts of the same statement, to which its own are added. That of a view binds
    none: its values are written down.
    """
    declared, given = declared_params(template, folders), set(params)
    if declared != given:
        missing, undeclared = sorted(declared - given), sorted(given - declared)
        raise TemplateError(f"{template}: missing parameters {missing}, undeclared parameters {undeclared}")
    kinds = _kinds(template, folders)
    typed = {name: _typed(param, kinds.get(name)) for name, param in params.items()}
    values = {} if values is None else values
    token = _bound.set(None if of_view else values)
    try:
        sql = _environment(folders).get_template(f"{template}.sql.j2").render(typed)
    except JinjaError as error:
        raise TemplateError(f"{template}: {error}") from error
    finally:
        _bound.reset(token)
    return Statement(template, sql.strip(), values, reads=[param for param in params.values() if _is_foreign(param)])


def _is_foreign(param: Any) -> bool:
    """True if a parameter is a table or a file that is not a TEMP table of ours."""
    if isinstance(param, Relation):
        return isinstance(param, CallerView) or (param.parts[:1] != ("temp",) and not isinstance(param, Part))
    return isinstance(param, FileRelation)
