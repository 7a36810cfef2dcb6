"""Kinds of failure, and the exit code that each has on the command line."""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Remedy:
    """A change of the policy that a run then accepts.

    `change` holds the keys of the policy that are other then, None where they would show a value of the data that is
    not to be shown. `costs` says in words what the change gives up; `rows` are all that are left out then, at least.
    """

    change: Mapping[str, Any] | None
    costs: str
    rows: int

    def __str__(self) -> str:
        if self.change is None:
            return self.costs
        keys = "; ".join(_flow({key: value}) for key, value in self.change.items())
        return f"{keys} ({self.costs})"

    def as_dict(self) -> dict[str, Any]:
        """As JSON has it, where NULL cannot be a key: a change that names it is not told there."""
        return {"change": None if _has_null_key(self.change) else self.change, "costs": self.costs, "rows": self.rows}


def _flow(part: Mapping[str, Any]) -> str:
    """A part of a policy in YAML, on one line."""
    import yaml  # noqa: PLC0415 - every command imports this module, and few of them fail

    ((key, value),) = part.items()
    text = yaml.safe_dump(value, default_flow_style=True, sort_keys=False, width=math.inf, allow_unicode=True)
    return f"{key}: {text.removesuffix(chr(10)).removesuffix('...').strip()}"


def _has_null_key(part: Any) -> bool:
    if isinstance(part, Mapping):
        return None in part or any(map(_has_null_key, part.values()))
    return isinstance(part, list) and any(map(_has_null_key, part))


class LdivError(Exception):
    """Any failure that is reported to the user as one clear message, and the remedies that are known of it.

    `remedies` come in the order of what they cost, the one that gives up least first.
    """

    exit_code = 2
    remedies: Sequence[Remedy] = ()

    def __reduce__(self) -> tuple[Any, ...]:
        """The same error, whatever it was made of: as it comes from another process."""
        return _again, (type(self), self.args, vars(self))

    @property
    def message(self) -> str:
        """The problem, without the remedies."""
        return super().__str__()

    def __str__(self) -> str:
        return "\n".join([self.message, *self.ways_out])

    def _render_traceback_(self) -> list[str]:
        """The problem and the ways out, which a notebook shows in place of a traceback."""
        return f"{type(self).__name__}: {self}".splitlines()

    @property
    def ways_out(self) -> list[str]:
        """The remedies as lines."""
        listed = [f"  {number}. {remedy}" for number, remedy in enumerate(self.remedies, 1)]
        return ["a run accepts, the least costly first:", *listed] if listed else []


def _again(kind: type[LdivError], said: tuple[Any, ...], known: Mapping[str, Any]) -> LdivError:
    error = kind.__new__(kind, *said)
    vars(error).update(known)
    return error


class InfeasibleError(LdivError):
    """The data cannot meet the policy; the message carries the numbers that prove it.

    `l` is set where sensitive values in more than 1/l of the rows are to blame.
    """

    exit_code = 1

    def __init__(self, message: str, l: int | None = None):
        super().__init__(message)
        self.l = l


class SuppressionError(InfeasibleError):
    """More rows would be left out than the policy allows; `rows` says how many, at least."""

    def __init__(self, message: str, rows: int):
        super().__init__(message)
        self.rows = rows


class UnprovedError(InfeasibleError):
    """A search ended before it had the proof that the policy wants: another policy is not what is missing."""


class AuditError(LdivError):
    """The table to be published fails its policy; nothing was written."""

    exit_code = 1


class DatabaseError(LdivError):
    """The database refused: locked, read-only, full, out of memory, or a broken statement."""

    exit_code = 3


class ConstraintError(DatabaseError):
    """A table of the user's does not take the rows, by a constraint of one of these `kinds`."""

    def __init__(self, message: str, kinds: Sequence[str] = ()):
        super().__init__(message)
        self.kinds = kinds


class ConflictError(DatabaseError):
    """Another transaction, which is open or was committed meanwhile, writes the same schema or table."""


class TemplateError(LdivError):
    """A template and what was put into it do not fit: a defect of this program, not of its input."""

    exit_code = 3


@dataclass(frozen=True)
class Problem:
    """One thing wrong with a policy or an argument: where, what, and the way out."""

    key: str
    what: str
    hint: str = ""

    def __str__(self) -> str:
        hint = f" ({self.hint})" if self.hint else ""
        return f"{self.key}: {self.what}{hint}"

    @property
    def code(self) -> str:
        """The key without names below `tables`, `sensitive` and such: `tables.key` for `tables.stays.key`."""
        words, code = self.key.lstrip("-").split(" ")[0].split("."), list[str]()
        while words:
            code.append(words.pop(0))
            if code[-1] in _OF_NAMES and words:
                del words[0]
        return ".".join(code)


class PolicyError(LdivError):
    """Everything that is wrong with a policy, reported at once."""

    def __init__(self, problems: Iterable[Problem]):
        self.problems = list(problems)
        super().__init__("\n".join(map(str, self.problems)))


def refused(key: str, what: str, hint: str = "") -> PolicyError:
    """The error of a single problem."""
    return PolicyError([Problem(key, what, hint)])


def refuse(problems: Iterable[Problem]) -> None:
    """Raise PolicyError with all problems, if there are any."""
    if found := list(problems):
        raise PolicyError(found)


def in_words(error: LdivError) -> str:
    """The reason of an error, without the keys that it is about."""
    return "; ".join(problem.what for problem in error.problems) if isinstance(error, PolicyError) else error.message


def first_of(problems: Sequence[Problem], most: int = 10) -> list[Problem]:
    """The first problems of a file, and how many more there are."""
    left = len(problems) - most
    more = [Problem(problems[0].key, f"and {left:,} more problems like these")] if left > 0 else []
    return [*problems[:most], *more]


#: Keys of a policy below which the user's own names stand.
_OF_NAMES = {"quasi_identifiers", "sensitive", "tables", "output", "threshold", "databases"}
#: The kind that a value should be of, by the beginning of pydantic's name for the error.
_KINDS = {
    "string": "takes a text",
    "int": "takes a whole number",
    "float": "takes a number",
    "finite_number": "takes a finite number",
    "bool": "takes true or false",
    "list": "takes a list",
    "dict": "takes a mapping of keys",
    "model": "takes a mapping of keys",
    "too_short": "names nothing",
    "too_long": "has too many entries",
}
_BOUNDS = {
    "greater_than_equal": ("ge", "a number from"),
    "less_than_equal": ("le", "a number up to"),
    "greater_than": ("gt", "a number above"),
    "less_than": ("lt", "a number below"),
}


def what_is_wrong(item: Mapping[str, Any]) -> str:
    """An error of pydantic's in our words."""
    kind = str(item["type"])
    if kind == "literal_error":
        return f"takes {item['ctx']['expected']}"
    if kind in _BOUNDS:
        key, words = _BOUNDS[kind]
        return f"takes {words} {item['ctx'][key]:g}"
    for beginning, words in _KINDS.items():
        if kind.startswith(beginning):
            return words
    return str(item["msg"]).removeprefix("Value error, ")


#: What is wrong with a file whose bytes are no UTF-8, and the way out.
NOT_UTF_8 = "is not in UTF-8{}: Latin-1, Windows-1252 or another encoding"
CONVERT = (
    "convert it, as `iconv -f WINDOWS-1252 -t UTF-8` does, or name its encoding: source:"
    " {query: \"FROM read_csv('FILE', encoding = 'latin-1', comment = '')\"}"
)


def count_phrase(number: int, one: str, many: str) -> str:
    """The number with the words that go with it: `1 key is`, `2 keys are`."""
    return f"{number:,} {one if number == 1 else many}"


def rows_phrase(number: int) -> str:
    """`1 row`, `2 rows`."""
    return count_phrase(number, "row", "rows")


def people_phrase(number: int) -> str:
    """`1 person`, `2 people`."""
    return count_phrase(number, "person", "people")


def in_unit(figure: str, unit: str) -> str:
    """The name of a figure of rows, for those who are counted in their place."""
    return re.sub(r"\brows\b", unit, figure)


def classes_phrase(number: int, kind: str = "") -> str:
    """`1 class`, `2 distinct classes` of the `kind` distinct."""
    return count_phrase(number, f"{kind}class", f"{kind}classes")


def nearest(name: str, known: Iterable[str]) -> str:
    """A hint naming the known word nearest to `name`, or listing the known words."""
    known = list(known)
    lowered = {word.lower(): word for word in known}
    close = difflib.get_close_matches(name.lower(), lowered, n=1, cutoff=0.6)
    if close:
        return f"did you mean {lowered[close[0]]!r}?"
    return "known: " + ", ".join(known) if known else ""
