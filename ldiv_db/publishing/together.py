"""What several releases tell of all keys together: values that no assignment of keys to rows leaves are ruled out.

The attacker knows every key's group in every release. The inference check looks at keys one by one, and at groups in
pairs; here all groups of all releases decide at once which values a key may have (`attacking.joint`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ldiv_db.attacking.joint import infer
from ldiv_db.database.engine import Engine
from ldiv_db.database.templates import Relation, Value


def weigh_together(
    engine: Engine, members: Relation, cells: Relation, weighed: Relation, numbers: Sequence[Value]
) -> None:
    """Append to `weighed` (key, attribute_no, …, top, total) each key's best share by all releases and keys.

    `members` are (release_no, key, group_id), `cells` (release_no, group_id, attribute_no, value, n), `numbers` those
    of the attributes.
    """
    with engine.scope():
        keys = engine.materialise("numbered_keys", "publishing/number_keys", members=members)
        groups = engine.materialise("groups", "publishing/number_groups", cells=cells)
        holes: dict[str, Any] = {"members": members, "keys": keys, "groups": groups}
        places = engine.materialise("places", "publishing/list_places", **holes)
        for number in numbers:
            with engine.scope():
                shown = engine.materialise(
                    "shown", "publishing/list_shown", cells=cells, groups=groups, attribute=number
                )
                joint = infer(engine, keys, places, shown)
                possible = {"options": joint.options, "told": joint.told, "attribute": number}
                engine.insert(weighed, "publishing/weigh_possible", keys=keys, places=places, **possible)
