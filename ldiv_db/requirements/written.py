"""The parameters of a requirement as they are written, in a policy or on the command line."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from ldiv_db.database.errors import nearest

AUTO = "auto"
#: The parameters that `auto` may stand for.
_AUTOMATIC = ("k", "l", "p")
#: Reads one parameter as it is written; raises ValueError.
Reader = Callable[[Any], Any]


class Written:
    """What a requirement is called, which parameters it takes, and how they are read."""

    name: ClassVar[str]
    #: The parameters as they are written, each with its reader; the only one that must be given may be written alone.
    fields: ClassVar[Mapping[str, Reader]] = {}
    #: Those of them that may be left out.
    optional: ClassVar[frozenset[str]] = frozenset()
    #: The parameter that says how many values a class seems to have, if it has one of this name.
    l_parameter: ClassVar[str] = "l"
    #: What is wrong where the parameters need a source and there is none, and what to do.
    lacks_source: ClassVar[tuple[str, str]] = ("auto needs a source, say the number", "")

    @classmethod
    def parse(cls, text: str) -> Any:
        """The argument that a command line writes: `3`, or `c=2,l=3`; without a name it is the first parameter."""
        if "=" not in text:
            return text
        parameters: dict[str, str] = {}
        for part in text.split(","):
            key, equals, value = part.rpartition("=")
            parameters[key.strip() if equals else next(iter(cls.fields), "default")] = value
        return parameters

    @classmethod
    def by_name(cls, argument: Any) -> dict[Any, Any]:
        """The parameters by name, as they are written; raises ValueError if one is missing or unknown."""
        needed = [name for name in cls.fields if name not in cls.optional]
        if not isinstance(argument, Mapping):
            if len(needed) > 1:
                raise ValueError(f"takes {', '.join(needed)}, not {argument!r}")
            return {needed[0]: argument}
        unknown = [str(name) for name in argument if name not in cls.fields]
        if unknown:
            raise ValueError(f"has no parameter {unknown[0]!r} ({nearest(unknown[0], cls.fields)})")
        missing = [name for name in needed if name not in argument]
        if missing:
            raise ValueError(f"lacks {', '.join(missing)}")
        return dict(argument)

    @classmethod
    def typed(cls) -> dict[str, str]:
        """The parameters as Python takes them, each with its type; `Number` is what has a decimal."""
        kinds = {"int": "int", "str": "str"}
        types = {name: kinds.get(str(read.__annotations__["return"]), "Number") for name, read in cls.fields.items()}
        return {name: f'{kind} | Literal["{AUTO}"]' if name in _AUTOMATIC else kind for name, kind in types.items()}

    @classmethod
    def built(cls, given: Mapping[str, Any]) -> Any:
        """The argument of parameters that are given by name, as a document has it."""
        needed = [name for name in cls.fields if name not in cls.optional]
        return given[needed[0]] if list(given) == needed and len(needed) == 1 else dict(given)

    @classmethod
    def needs_source(cls, argument: Any) -> bool:
        """Whether a parameter follows from the distribution of the source; not, where it is written wrongly."""
        try:
            return AUTO in [str(v) for k, v in cls.by_name(argument).items() if k in _AUTOMATIC]
        except ValueError:
            return False

    @classmethod
    def read(cls, argument: Any, auto: int | None) -> dict[Any, Any]:
        """The parameters read and checked, `auto` being what the source makes of it; raises ValueError."""
        written = cls.by_name(argument)
        if auto is None and cls.needs_source(argument):
            raise ValueError("auto needs the distribution of the source")
        given = {k: auto if k in _AUTOMATIC and v == AUTO else v for k, v in written.items()}
        return {name: read(given[name]) for name, read in cls.fields.items() if name in given}

    @classmethod
    def written_with(cls, argument: Any, name: str, value: int) -> Any:
        """The argument as it is written with another value of a parameter; None if it has none of that name."""
        if name not in cls.fields:
            return None
        parameters = cls.by_name(argument) | {name: value}
        return value if list(parameters) == [name] else parameters
