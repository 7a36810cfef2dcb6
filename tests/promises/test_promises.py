"""What a release promises, asked of each cell: whatever its tables, units, nights, forms, places and values are."""

from __future__ import annotations

import datetime
import itertools
import json
import re
from collections import Counter, defaultdict
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import oracle
import pytest

import ldiv_db
from tests.promises.cells import AXES, REQUIRED, SENSITIVE, VALUES, Cell, members, rows_of
from tests.promises.conftest import Release
from tests.promises.homes import Home
from tests.worlds import posteriors

#: Those of which a report tells.
FORMS = tuple(form for form in AXES["form"] if form != "decomposition")


def asked_of(which: Callable[[Cell], Any]) -> Callable[[Any], Any]:
    """A promise of these cells alone."""

    def decorated(promise: Any) -> Any:
        promise.cells = which
        return promise

    return decorated


def in_turn(first: int, of: int = 4) -> Callable[[Any], Any]:
    """A dear promise: by default it is asked of one cell in so many. Those that run again ask all cells together."""

    def decorated(promise: Any) -> Any:
        promise.turn = (first, of)
        return promise

    return decorated


def test_the_audit_holds_by_the_oracle(release: Release) -> None:
    rows = [(key, value, unit) for key, pairs in release.classes.items() for unit, value in pairs]
    assert rows and not oracle.people_violations(rows, release.cell.require, REQUIRED[release.cell.require][0])
    for result in release.results:
        assert all(audit.holds for audit in result.audits)


def test_rows_add_up(release: Release) -> None:
    """A row is published once, with its own value, or counted as left out."""
    published = Counter(row["note"] for row in release.rows)
    assert not published - Counter(row["note"] for row in release.source)
    if release.decomposes:
        values = Counter(value for pairs in release.classes.values() for _, value in pairs)
        source = Counter(row["dx"] for row in release.source)
        assert not values - source and values.total() == len(release.rows)
        gives_up = release.cell.unit == "apart" or release.cell.sensitive == "set"  # a group, whose rows wait
        assert gives_up or values == source
    else:
        assert all(row["dx"] == release.origin[row["note"]]["dx"] for row in release.rows)
    told = release.result.as_dict()
    by_nights = release.cell.tables == "several" and release.cell.time == "series"
    if release.cell.tables == "several" and not by_nights:
        stays = next(one for one in release.result.tables if one.name == "stays")
        told = {"rows_published": stays.loss.rows_published, "rows_suppressed": stays.loss.rows_suppressed}
    of_people = len(release.nights[-1]["patients"]) if by_nights else 0
    assert told.get("rows_of_table", told["rows_published"]) == len(release.rows) + of_people
    if release.cell.time == "once" and not release.decomposes:
        assert len(release.rows) + told["rows_suppressed"] == len(release.source)


def test_labels_cover_their_values(release: Release) -> None:
    for row in release.rows:
        true = release.origin[row["note"]]
        assert covers_number(row, true["age"]), (row, true)
        assert covers_town(row["zip"], true["zip"]), (row, true)


def covers_number(row: dict[str, Any], age: Any) -> bool:
    if "age_min" in row:
        low, high = plain(row["age_min"]), plain(row["age_max"])
        if low is None:  # of NULL, and of a class that has it beside numbers
            return True
        return age is not None and low <= plain(age) <= high
    label = row["age"]
    if label == "*":
        return True
    if not isinstance(label, str) or not label.startswith("["):
        return plain(label) == plain(age)
    low, high = map(plain, label[1:-1].split(" .. "))
    return age is not None and low <= plain(age) <= high


def covers_town(label: Any, town: Any) -> bool:
    if label is None or town is None:
        return label in (None, "*") or "NULL" in label
    if label.startswith("{"):
        return town in oracle.parse_set(label)
    return label in ("*", town) or (label.endswith("*") and town.startswith(label[:-1]))


def plain(value: Any) -> Any:
    """A number or a day, however it is written."""
    if value is None or value == "":
        return None
    if isinstance(value, datetime.date):
        return f"{value:%Y-%m-%d}"
    return value[:10] if re.fullmatch(r"\d{4}-\d\d-\d\d.*", str(value)) else Decimal(str(value))


@in_turn(0)
def test_the_same_seed_gives_the_same_for_any_order_of_rows_number_of_threads_and_settings_of_the_caller(
    release: Release, tmp_path: Any
) -> None:
    home, results = Home(release.cell, tmp_path, order=1, threads=2, hostile=True), []
    for night in range(len(release.nights)):
        home.place(rows_of(release.cell)[: 12 * (night + 1)])
        results.append(home.run())
    assert home.published() == release.nights[-1]
    for found, expected in zip(results, release.results, strict=True):
        assert figures(found) == figures(expected)
    home.close()


def figures(result: Any) -> dict[str, Any]:
    """What a run says of its release, without what no two runs share."""
    apart = {"run_id", "seconds", "versions", "released_at", "notes", "source"}
    return {name: figure for name, figure in result.as_dict().items() if name not in apart}


@asked_of(lambda cell: cell.place in ("sqlite", "postgres"))
def test_what_runs_in_a_warehouse_publishes_what_a_run_here_does(release: Release, tmp_path: Any) -> None:
    home = Home(release.cell._replace(place="database"), tmp_path)
    for night in range(len(release.nights)):
        home.place(rows_of(release.cell)[: 12 * (night + 1)])
        result = home.run()
    here, there = (
        Counter(tuple(plain_text(row[name]) for name in row if name not in ("nr", "class_id")) for row in rows)
        for rows in (home.published()["stays"], release.rows)
    )
    assert here == there
    for one, other in zip(result.audits, release.result.audits, strict=True):
        assert [verdict.worst for verdict in one.verdicts] == [verdict.worst for verdict in other.verdicts]
    home.close()


def plain_text(value: Any) -> str:
    """A value or a label with its numbers written as floating ones, which decimals are there."""
    return re.sub(r"-?\d+(\.\d+)?", lambda number: str(float(number[0])), str(value))


@asked_of(lambda cell: cell.form != "decomposition" and cell.place != "frame")
def test_order_and_numbers_of_rows_say_nothing(release: Release) -> None:
    """Rows stand by what is published, classes by their labels; people and rows have numbers without gaps."""
    for name in ("class_id", "nr", "who", "group_id"):
        numbers = {row[name] for rows in release.nights[-1].values() for row in rows if name in row}
        assert numbers == set(range(1, len(numbers) + 1)), name
    whose = defaultdict(list)
    for row in release.rows:
        if "position" in row:
            whose[release.pseudonym(row)].append(row["position"])
    assert all(sorted(places) == list(range(1, len(places) + 1)) for places in whose.values())
    for form in (attack for attack in release.attacks if attack.name == "form"):
        assert not any(gain.gain for gain in form.gains)
        if release.cell.time == "once":
            assert not form.figures.get("numbers_against_labels")


@asked_of(lambda cell: cell.unit not in ("row", "apart"))
def test_people_are_linked_and_joined_as_in_the_source(release: Release) -> None:
    """Rows of a pseudonym are one person's; a join by it has as many rows as one of the source by the person.

    Each night has pseudonyms of its own.
    """
    pairs = {(release.pseudonym(row), release.origin[row["note"]]["who"]) for row in release.rows}
    assert len(pairs) == len(dict(pairs))
    assert release.cell.time == "series" or len(pairs) == len({who for _, who in pairs})
    if release.cell.tables == "several":
        people = {row["who"]: row["sex"] for row in release.nights[-1]["patients"]}
        assert len(people) == len(release.nights[-1]["patients"]) and (
            release.cell.time == "series" or {number for number, _ in pairs} <= set(people)
        )  # the row of somebody who has more rows later is in the night that published it
        assert all(people[number] in ("mf"[who % 2], "*", None) for number, who in pairs if number in people)
    days = defaultdict(list)
    for row in sorted(release.rows, key=lambda row: row.get("position", 0)):
        days[release.pseudonym(row)].append(release.origin[row["note"]]["day"])
    if release.cell.unit == "aligned":
        assert all(listed == sorted(listed) for listed in days.values())


@asked_of(
    lambda cell: (
        cell.unit != "apart" and cell.form != "decomposition" and cell.time == "once" and REQUIRED[cell.require][1]
    )
)
def test_nobody_is_surer_than_is_promised_in_all_worlds(release: Release) -> None:
    """Whoever knows what everybody has but the values: no more of the worlds give a person a value than is promised."""
    own, shown, values = defaultdict(list), defaultdict(list), defaultdict(set)
    for place, row in enumerate(sorted(release.rows, key=lambda row: row.get("position", 0))):
        pseudonym = place if release.cell.unit == "row" else release.pseudonym(row)
        shown[pseudonym].append(row)
        values[pseudonym].update(members(release.cell, row["dx"]))
    for place, row in enumerate(release.rows):
        true = release.origin[row["note"]]
        own[place if release.cell.unit == "row" else true["who"]].append(true)
    is_aligned = release.cell.unit == "aligned"
    fits = {
        person: {pseudonym: 1 for pseudonym, labels in shown.items() if may_be(labels, rows, is_aligned)}
        for person, rows in ((person, sorted(rows, key=lambda row: row.get("day", 0))) for person, rows in own.items())
    }
    assert max(posteriors(fits, values).values()) <= REQUIRED[release.cell.require][1]


def may_be(labels: list[Any], rows: list[Any], is_aligned: bool) -> bool:
    """Whether these rows may be published with these labels: each in its place, or all with the same."""
    if is_aligned and len(labels) != len(rows):
        return False
    pairs = zip(labels, rows, strict=True) if is_aligned else itertools.product(labels[:1], rows)
    return all(covers_number(one, row["age"]) and covers_town(one["zip"], row["zip"]) for one, row in pairs)


def test_the_ledger_has_one_row_of_each_run_with_what_was_promised_and_no_value(release: Release) -> None:
    if release.home.is_there is False:
        entered = repr([rows for name, rows in release.home.content().items() if name.startswith("ldiv.")])
        assert all(run_id in entered for run_id in release.result.run_id.split(", ")) or release.decomposes
        assert not [value for value in (*SENSITIVE, "note 0") if value in entered]
    if release.cell.time == "series" or release.decomposes:
        assert [status for (status,) in release.home.ledger("release", "status")] == ["published"] * len(release.nights)
        return
    runs = {run_id: told for run_id, *told in release.home.ledger("run", "run_id, algorithm, rows_published, status")}
    entered = [run_id for result in release.results for run_id in result.run_id.split(", ")]  # one of each table apart
    assert set(runs) == {*entered} and {status for *_, status in runs.values()} == {"published"}
    for result in release.results:
        assert {runs[run_id][0] for run_id in result.run_id.split(", ")} == set(result.algorithm.split(", "))
    promised = set(release.home.ledger("run_requirement", "run_id, requirement"))
    assert {(result.run_id.split(", ")[-1], release.cell.require) for result in release.results} <= promised


@asked_of(lambda cell: cell.time == "series")
def test_a_night_keeps_what_the_night_before_has_published(release: Release) -> None:
    first, second = release.nights
    if release.decomposes:
        assert {name: rows for name, rows in second.items() if name.startswith("pub_1")} == first
        before, after = (
            {row["note"]: row["group_id"] for row in shown[f"pub_{night}_qid"]}
            for night, shown in enumerate((first, second), 1)
        )
        assert before.items() <= after.items()
    else:
        kept = {row["note"]: row for row in first["stays"]}
        assert kept.items() <= {row["note"]: row for row in second["stays"]}.items()


def test_a_check_says_what_the_run_said(release: Release) -> None:
    judged = release.home.judged()
    if release.cell.tables == "several":
        found = ldiv_db.check(release.home.connection, policy=judged, folder=release.home.folder)
    else:
        with release.home.reading(f"pub_{len(release.nights)}_qid" if release.decomposes else "stays") as (con, table):
            found = ldiv_db.check(con, table, policy=judged)
    if release.cell.unit == "apart" and release.cell.method != "bsgi" and not release.decomposes:
        assert found.holds is None  # no column says whose a row is
        return
    assert found.holds
    if not release.decomposes and release.cell.time == "once" and release.cell.unit != "apart":
        assert [v.worst for a in found for v in a.verdicts] == [
            v.worst for a in release.result.audits for v in a.verdicts
        ]


@in_turn(1, of=3)
@asked_of(lambda cell: cell.time == "once" and cell.form != "decomposition" and cell.target in ("table", "parquet"))
def test_measures_say_what_the_run_said(release: Release) -> None:
    home = release.home
    tables = {} if release.cell.tables == "several" else {"published": home.shown()}
    found = ldiv_db.measure(home.connection, policy=home.asked(), folder=home.folder, **tables)
    if release.cell.tables == "several":
        lost = {one.name: one.loss for one in release.result.tables}
        assert {name: one.loss.lm_mean for name, one in found.tables.items()} == pytest.approx(
            {name: lost[name].lm_mean for name in found.tables}
        )
    else:
        assert found.loss.lm_mean == pytest.approx(release.result.loss.lm_mean)
        assert found.as_dict()["rows_published"] == len(release.rows)


def test_attacks_gain_no_more_than_was_promised(release: Release) -> None:
    gains = [gain for attack in release.attacks for gain in attack.gains if gain.bound is not None]
    assert (gains or not REQUIRED[release.cell.require][1]) and all(gain.gain <= gain.bound + 1e-9 for gain in gains)
    assert not any(attack.holds is False for attack in release.attacks)


@in_turn(12)
@asked_of(lambda c: (c.tables, c.time) == ("one", "once") and c.place in ("database", "sqlite") and c.form in FORMS)
def test_a_report_tells_of_the_run(release: Release) -> None:
    with release.home.reading("stays") as (con, table):
        document = ldiv_db.report(con, table, release.home.judged(), queries=5, tries=5, worlds=2).document
    told = document["statement"]
    assert told["rows"] == len(release.rows) and told["holds"] in (True, None)


@in_turn(4, of=5)
def test_no_error_tells_a_value_of_the_data(release: Release) -> None:
    home, too_much = release.home, {"require": [{"frequency": 50}]}
    if release.decomposes:
        too_much = {"sensitive": {name: {"l": 50} for name in home.policy["sensitive"]}}
    before = home.content()
    with pytest.raises(ldiv_db.LdivError) as refused:
        ldiv_db.run(home.connection, home.replacing() | too_much, folder=home.folder)
    *_, towns, _, _ = VALUES[release.cell.values]
    told = json.dumps(str(refused.value), ensure_ascii=False)
    assert told and not [value for value in (*SENSITIVE, *towns, "note 0") if value and value in told]
    assert home.content() == before


@pytest.mark.again
@in_turn(2)
def test_an_unchanged_run_changes_nothing(release: Release) -> None:
    home, before = release.home, release.home.published()
    result = ldiv_db.run(home.connection, home.replacing(again=True), folder=home.folder)
    after = home.published()
    assert before == release.nights[-1]
    if release.cell.tables == "several" and release.cell.time == "series":  # rows that waited may find their place
        assert all(row in after[name] for name, rows in before.items() for row in rows)
    else:
        assert before.items() <= after.items()
    if release.cell.time == "once" and not release.decomposes:
        assert result.as_dict()["unchanged"] == release.result.run_id or release.cell.target != "table"


@in_turn(3)
def test_a_crash_at_a_write_leaves_the_old_or_the_new(release: Release) -> None:
    """The statement that fails is another one of those that follow the first that writes, by the name of the cell."""
    home = release.home
    home.place(rows_of(release.cell, len(release.nights) + 1 if release.cell.time == "series" else None))
    before = home.content()
    moment = release.writes + sum(map(ord, release.cell.id)) % max(1, (release.statements - release.writes) // 2)
    seen = itertools.count()

    def listen(statement: Any) -> None:
        if next(seen) == moment:
            raise ldiv_db.DatabaseError("pulled out")

    listener = ldiv_db.Listener(on_statement=listen)
    try:
        ldiv_db.run(home.connection, home.replacing(), folder=home.folder, listener=listener)
    except ldiv_db.DatabaseError as error:
        assert str(error) == "pulled out"
        after = home.content()
        # Whose run had the lock of a source last says nothing.
        changed = {name for name, rows in after.items() if rows != before.get(name)}
        assert changed <= {"ldiv.source_lock"} and after.keys() == before.keys()
    else:  # it took fewer statements than the run before
        is_of_nights = release.cell.time == "series" and release.cell.tables == "several"  # rows that waited may go
        assert is_of_nights or home.published() == release.nights[-1]


def test_nothing_is_left_behind(release: Release) -> None:
    """Beside sources and what is published there is the ledger, and no file of a run."""
    left = release.home.beside()
    assert not left, left
