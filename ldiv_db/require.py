"""What a policy may require, each a call: `require=[Distinct(3), K(5)]`. Types for editors are in `require.pyi`.

They follow from what is entered in `REQUIREMENTS`: `p_sensitive: {p: 2, k: 3}` is `PSensitive(2, 3)`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from inspect import Parameter, Signature
from typing import Any, Literal

from ldiv_db.database.errors import refuse
from ldiv_db.requirements import REQUIREMENTS, Requirement, RequirementSpec


def builder_name(name: str) -> str:
    """What the requirement of that name is called here."""
    return "".join(word.capitalize() for word in name.split("_"))


def _builder(kind: type[Requirement]) -> Callable[..., RequirementSpec]:
    """The call that makes the requirement as a policy has it; raises PolicyError for parameters that are none."""
    parameters = [
        Parameter(name, Parameter.POSITIONAL_OR_KEYWORD, default=None if name in kind.optional else Parameter.empty)
        for name in kind.typed()
    ]
    shape = Signature(parameters)

    def build(
        *args: Any,
        sensitive: str | Sequence[str] = (),
        others_known: bool = False,
        each: Literal["", "position", "row"] = "",
        **kwargs: Any,
    ) -> RequirementSpec:
        given = {name: value for name, value in shape.bind(*args, **kwargs).arguments.items() if value is not None}
        names = (sensitive,) if isinstance(sensitive, str) else tuple(sensitive)
        spec = RequirementSpec(kind.name, kind.built(given), names, others_known, each)
        refuse(spec.problems("require"))
        return spec

    build.__name__ = build.__qualname__ = builder_name(kind.name)
    build.__doc__ = kind.__doc__
    beside = [
        Parameter("sensitive", Parameter.KEYWORD_ONLY, default=()),
        Parameter("others_known", Parameter.KEYWORD_ONLY, default=False),
        Parameter("each", Parameter.KEYWORD_ONLY, default=""),
    ]
    build.__signature__ = shape.replace(parameters=[*parameters, *beside])  # type: ignore[attr-defined]
    return build


_BUILDERS = {builder_name(name): _builder(kind) for name, kind in REQUIREMENTS.items()}
__all__ = list(_BUILDERS)
globals().update(_BUILDERS)
