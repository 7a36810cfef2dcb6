"""The inference check: what published tables tell of a key when they are compared.

For every key and sensitive attribute the values still possible are those that its groups have in all releases. And
where two releases have groups with keys in common, what one group has and the other lacks is of the keys that only the
one has. The attacker, who knows every key's group in every release, must not come to more than 1/l by either. Groups
that are the same in two releases tell nothing new, so only groups that differ are looked into. Of combinations of
sensitive values those of the new groups are worked out, and what they tell of pairings within these (`pairings`).

The first is of one key at a time, the second of two groups at a time. Releases of our own keep their groups, so that
nothing more follows from them; of other tables all groups of all releases decide at once which values a key may have:
those that no assignment of keys to rows leaves are ruled out.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from ldiv_db.database.data_files import Table
from ldiv_db.database.engine import Engine
from ldiv_db.database.equality import read_as_one, read_exactly
from ldiv_db.database.errors import AuditError, count_phrase
from ldiv_db.database.flow import EngineFlow
from ldiv_db.database.names import Identifier, Relation
from ldiv_db.database.queries import Where
from ldiv_db.display import Printed
from ldiv_db.publishing.pairings import Channel, LimitedAttribute, list_limits, tell_pairings

#: How combinations of values are taken: checked one by one, told whatever they tell, or checked all at once.
Combinations = Literal["checked", "allowed", "jointly"]


@dataclass(frozen=True)
class Release:
    """A published release: its sensitive table and the columns of its groups, and where its keys are.

    Keys are those of the table `people`, or those that the ledger's `members` say were published up to it.
    `combinations` is the table of combinations of sensitive values, if it has one.
    """

    name: str
    values: Table
    group: Sequence[str]
    people: Table | None = None
    key: str | None = None
    members: Relation | None = None
    series: str | None = None
    number: int = 0
    count: str | None = None
    combinations: Table | None = None


@dataclass(frozen=True)
class Inference(Printed):
    """Findings on a sequence of releases: the best probability for each attribute, and where it is too much.

    `allowed` are channels that the policy has asked for, `ordered` releases whose groups were formed in an order that
    tells who has which value. Nights `of_people` were judged by these when they were published, and tell no more
    together; those that are `altered` are no longer what was judged.
    """

    releases: tuple[str, ...]
    best: dict[str, float]
    limits: dict[str, LimitedAttribute]
    keys_exposed: int = 0
    channels: tuple[Channel, ...] = field(default_factory=tuple)
    allowed: tuple[Channel, ...] = field(default_factory=tuple)
    ordered: tuple[str, ...] = field(default_factory=tuple)
    altered: tuple[str, ...] = field(default_factory=tuple)
    of_people: bool = False

    @classmethod
    def of_nights(
        cls, releases: Iterable[str], limits: Sequence[LimitedAttribute], altered: Iterable[str] = ()
    ) -> Inference:
        """The findings on nights of people, of which some may be altered."""
        known = {limit.column.name: limit for limit in limits}
        return cls(tuple(releases), {}, known, altered=tuple(altered), of_people=True)

    @property
    def holds(self) -> bool:
        return not (self.channels or self.ordered or self.altered)

    def as_dict(self) -> dict[str, Any]:
        return {
            "releases": list(self.releases),
            "holds": self.holds,
            "keys_exposed": self.keys_exposed,
            "attributes": {n: {"l": one.largest_l, "best": self.best_of(n)} for n, one in self.limits.items()},
            "channels": [channel.as_dict() for channel in self.channels],
            "allowed": [channel.as_dict() for channel in self.allowed],
            "ordered": list(self.ordered),
            "altered": list(self.altered),
        }

    def best_of(self, attribute: str) -> float | None:
        """The best probability of a value of the attribute, None where people were counted."""
        return None if self.of_people else self.best.get(attribute, 0.0)

    def joined(self, pairings: Sequence[Channel], allowed: bool) -> Inference:
        """With what combinations tell besides, which is allowed or not."""
        if allowed:
            return replace(self, allowed=(*self.allowed, *pairings))
        return replace(self, channels=(*self.channels, *pairings))

    def keeps(self, attribute: str) -> bool:
        """True if no key's value of the attribute can be told too well."""
        return not self.altered and all(channel.attribute != attribute for channel in self.channels)

    def require_good(self) -> None:
        """Raise AuditError, with how many keys and which releases, unless nothing is exposed."""
        if self.holds:
            return
        lines = [
            f"{channel.attribute} of {count_phrase(channel.keys, 'key', 'keys')} can be inferred with probability"
            f" {channel.best:.3g}, more than {self.limits[channel.attribute]}, by {_channel_in_words(channel)}"
            for channel in self.channels
        ]
        whose = f" of {count_phrase(self.keys_exposed, 'key', 'keys')}" if self.keys_exposed else ""
        raise AuditError(f"too much can be inferred{whose}, nothing was published:\n" + "\n".join(lines))


def check_releases(
    engine: Engine,
    releases: Sequence[Release],
    limits: Sequence[LimitedAttribute],
    since: int = 1,
    combinations: Combinations = "checked",
    secret: str = "",
) -> Inference:
    """Check what releases, in their order, tell of their keys; pairs before release number `since` were checked before.

    Where combinations are `allowed` they may tell what they do. Where they are looked at `jointly` values are ruled out
    over all keys and groups at once too, which tells more only where keys change groups. `secret` is that of the
    series, by which values that have limits of their own are known.

    Raises AuditError for tables that do not belong together: keys without values, or in several groups of a release.
    """
    flow, names = EngineFlow(engine, "publishing", since=since), {limit.number: limit.column.name for limit in limits}
    with engine.scope():
        _load(flow, releases, limits)
        _require_sound(flow.record("count_unsound"))
        flow.know(limits=list_limits(engine, flow["cells"], limits, secret))
        flow.step("differing", "list_differing")
        if any(limit.is_set for limit in limits) and (changed := engine.count(flow["differing"])):
            pairs = count_phrase(changed, "pair of classes", "pairs of classes")
            raise AuditError(f"{pairs} of two releases have rows in common and not the same sets: they were changed")
        flow.know(twins=flow.step("weighed", "weigh_twins"))
        flow.step("keys", "weigh_keys")
        flow.drop("differing")
        if combinations == "jointly" and len(releases) > 1:
            _weigh_together(flow, names)
        flow.step("exposed", "list_exposed")
        rows = engine.records("publishing/summarise_exposed", exposed=flow["exposed"])
        return Inference(
            releases=tuple(release.name for release in releases),
            best={names[number]: share for number, share in flow.rows("find_best_share")},
            limits={limit.column.name: limit for limit in limits},
            keys_exposed=rows[0]["all_keys"] if rows else 0,
            channels=tuple(
                Channel(
                    names[row["attribute_no"]],
                    tuple(releases[number - 1].name for number in sorted({row["first_no"], row["last_no"]})),
                    row["keys"],
                    row["best"],
                )
                for row in rows
            ),
        ).joined(_pairings(engine, flow["cells"], releases, limits, since), combinations == "allowed")


def _weigh_together(flow: EngineFlow, numbers: Iterable[int]) -> None:
    """Append to `keys` (key, attribute_no, …, top, total) each key's best share by all releases and keys at once."""
    from ldiv_db.attacking.composition import infer  # noqa: PLC0415 - what attacks know, for a few series

    engine, weighed = flow.engine, flow["keys"]
    with flow.scope():
        flow.know(keys=flow.step("numbered_keys", "number_keys"))
        group = ("release_no", "group_id")
        columns = (*group, "attribute_no", "value", "n")
        numbered = engine.number_groups("numbered", flow["cells"], *group, number="class_no", columns=columns)
        flow.know(groups=engine.select("groups", numbered, *group, "class_no", distinct=True))
        flow.step("places", "list_places")
        for number in numbers:
            with flow.scope():
                own = [Where("attribute_no", number), Where("n", 0, ">")]
                shown = engine.select("shown", numbered, "release_no", "class_no", "value", ("n", "rows"), where=own)
                joint = infer(engine, flow["keys"], flow["places"], shown)
                possible = flow.params("weigh_possible", options=joint["options"], told=joint["told"], attribute=number)
                engine.insert(weighed, "publishing/weigh_possible", **possible)


def _pairings(
    engine: Engine, cells: Relation, releases: Sequence[Release], limits: Sequence[LimitedAttribute], since: int
) -> list[Channel]:
    """Channels by combinations of the groups that are new since the last release that published combinations."""
    channels: list[Channel] = []
    before: tuple[int, Table | None] = (0, None)
    for number, release in enumerate(releases, 1):
        if release.combinations is None:
            continue
        if number >= since:
            named = [releases[last - 1].name for last in (before[0], number) if last]
            with engine.scope():
                own, old = (engine.select("own", cells, where=[Where("release_no", no)]) for no in (number, before[0]))
                fresh = engine.select_others("fresh", own, old, "group_id")
                channels += tell_pairings(engine, fresh, release.combinations, before[1], limits, tuple(named))
        before = (number, release.combinations)
    return channels


def _load(flow: EngineFlow, releases: Sequence[Release], limits: Sequence[LimitedAttribute]) -> None:
    """Make `members` (release_no, key, group_id) and `cells` (release_no, group_id, attribute_no, value, n)."""
    engine = flow.engine
    members = engine.load("members", {"release_no": "INTEGER", "key": "VARCHAR", "group_id": "VARCHAR"}, [])
    columns = {"release_no": "INTEGER", "group_id": "VARCHAR", "attribute_no": "INTEGER", "value": "VARCHAR"}
    cells = engine.load("cells", columns | {"n": "BIGINT", "size": "BIGINT"}, [])
    for number, release in enumerate(releases, 1):
        own: dict[str, Any] = {"group": [Identifier(name) for name in release.group], "release": number}
        same = {limit.column.name: limit.same for limit in limits}
        with read_as_one(engine, release.values, same) as read, read_exactly(engine, read) as values:
            counted = {"attributes": limits, "count": release.count}
            engine.insert(cells, "publishing/list_cells", published=values, **counted, **own)
        if release.people is None:
            ledger = {"members": release.members, "series": release.series, "release": release.number, "number": number}
            engine.insert(members, "publishing/list_ledger_members", **ledger)
            continue
        with read_exactly(engine, release.people) as people:
            engine.insert(members, "publishing/list_members", published=people, key=release.key, **own)
    flow.know(members=members, cells=cells)


def _require_sound(found: dict[str, Any]) -> None:
    if found["unseen"]:
        where = count_phrase(found["unseen"], "key is in a group that has", "keys are in groups that have")
        raise AuditError(f"{where} no sensitive values: do the tables belong together?")
    if found["regrouped"]:
        keys = count_phrase(found["regrouped"], "key is", "keys are")
        raise AuditError(f"{keys} in several groups of one release: is it a key?")


def _channel_in_words(channel: Channel) -> str:
    names = channel.releases
    if channel.known:
        return f"{channel.known} and the combinations of {' and '.join(names)}"
    return names[0] if len(names) == 1 else f"comparing {' and '.join(names)}"
