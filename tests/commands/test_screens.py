"""What stands on a screen, narrow or wide: whole words, policies to be copied, one term for each count of classes."""

import json
import random
import re
from typing import Any

import pytest
import yaml
from rich.cells import cell_len
from rich.table import Table

from ldiv_db.display import fitted
from tests.strategies import draws, search, some

FRAME = re.compile(r"[━-╋┏┓┗┛┡┩╇┌┐└┘├┤┬┴┼│┃─]+")


def words(text: str) -> set[str]:
    return set(FRAME.sub(" ", text).split())


def commands(bed: Any) -> list[tuple[Any, ...]]:
    keys = ("published.patients", "--qi", "age,country", "--sensitive", "disease", "--require", "distinct:3")
    return [
        ("plan", bed.database, bed.policy), ("runs", bed.database), ("check", bed.database, *keys),
        ("attack", bed.database, *keys), ("profile", bed.database, "patients", "--sensitive", "disease", "--quiet"),
        ("measure", bed.database, "published.patients", "--policy", bed.policy),
    ]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("width", [40, 80])
def test_no_word_is_cut_and_no_table_is_wider_than_the_screen(
    width: int, bed: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    bed.write_policy(target={"table": "published.patients", "if_exists": "replace"})
    assert bed.run("--quiet").code == 0
    for words_ in commands(bed):
        monkeypatch.setenv("COLUMNS", "400")
        wide = bed.call(*words_)
        monkeypatch.setenv("COLUMNS", str(width))
        narrow = bed.call(*words_)
        assert wide.code == narrow.code
        framed = [line for line in narrow.out.splitlines() if FRAME.match(line)]
        assert framed and all(cell_len(line) <= width for line in framed)
        steady = {word for word in words(wide.out) if len(word) <= width - 4}
        cut = words("\n".join(framed)) - steady
        assert not {word for word in cut if not re.search(r"\d", word)}, words_


def test_columns_without_room_are_named(released: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    bed = released
    monkeypatch.setenv("COLUMNS", "80")
    shown = bed.call("runs", bed.database).out
    assert "no room for: target, rows published, distinct classes, LM (--json has all)" in shown
    monkeypatch.setenv("COLUMNS", "40")
    keys = ("--qi", "age,country", "--class", "class_id", "--sensitive", "disease", "--require", "distinct:3")
    shown = bed.call("check", bed.database, "published.patients", *keys).out
    assert "holds" in shown and "margin" in shown.splitlines()[-1]


@search(30, draw=draws)
def test_any_table_fits(draw: random.Random) -> None:
    """What is kept are whole columns that have room, the first and the verdict as long as they can."""
    headings = [draw.choice(["a", "holds", "some words", "longest-of-all"]) + str(n) for n in range(draw.randint(1, 7))]
    headings[-1] = draw.choice([headings[-1], "holds"])
    rows = [["x" * draw.randint(0, 12) + " " + "é" * draw.randint(0, 9) for _ in headings] for _ in range(3)]
    table = Table(title="a title")
    for heading in headings:
        table.add_column(heading)
    for row in rows:
        table.add_row(*row)
    width = draw.randint(8, 120)
    found, dropped = fitted(table, width)
    kept = [str(column.header) for column in found.columns]
    assert sorted(kept + dropped) == sorted(headings) and kept[0] == headings[0]
    assert [heading for heading in headings if heading in kept] == kept
    assert "holds" not in dropped or len(kept) == 1
    total = sum((column.min_width or 0) + 3 for column in found.columns) + 1
    assert total <= width or all(column.min_width == 1 for column in found.columns)
    if len(kept) > 1:
        for column in found.columns:
            longest = max(
                cell_len(word) for text in [str(column.header), *column.cells] for word in [*text.split(), ""]
            )
            assert (column.min_width or 0) >= longest


@pytest.mark.parametrize("width", some([20, 40, 80]))
def test_a_policy_on_the_screen_can_be_copied(width: int, bed: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Line for line what would be written, at any width."""
    asked = ("profile", bed.database, "patients", "--sensitive", "disease", "--quiet")
    monkeypatch.setenv("COLUMNS", str(width))
    shown = bed.call(*asked).out
    (bed.folder / "new").mkdir()
    assert bed.call(*asked, "--policy", bed.folder / "new" / "policy.yml").code == 0
    written = (bed.folder / "new" / "policy.yml").read_text()
    assert shown.endswith(f"\n{written}") and yaml.safe_load(written)["sensitive"]


@pytest.mark.slow
def test_each_count_of_classes_has_its_term_everywhere(bed: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two classes of equal labels are one to a reader, where no class id is published."""
    monkeypatch.setenv("COLUMNS", "250")
    bed.sql("UPDATE patients SET age = 30, country = 'Italy'")
    bed.write_policy(require=[{"distinct": 3}], algorithm={"name": "bsgi", "select": "bisect"})
    planned = bed.call("plan", bed.database, bed.policy, "--json").json
    assert planned["classes_made"] == 8
    assert re.search(r"classes made +│ up to 8 ", bed.call("plan", bed.database, bed.policy).out)
    called = bed.run("--quiet")
    assert re.search(r"distinct classes +│ 1 ", called.out) and re.search(r"classes made +│ 8;", called.out)
    assert "audit of disease: 1 distinct class," in called.out
    keys = ("--qi", "age,country", "--sensitive", "disease")
    checked = bed.call("check", bed.database, "published.patients", *keys, "--require", "distinct:3")
    assert "1 distinct class" in checked.out
    assert "1 distinct class" in bed.call("attack", bed.database, "published.patients", *keys).out
    measured = ("measure", bed.database, "published.patients", "--policy", bed.policy)
    assert re.search(r"distinct classes +│ 1 ", bed.call(*measured).out)
    assert "distinct classes" in bed.call("runs", bed.database).out
    bed.write_policy(require=[{"distinct": 3}], target="published.again")
    found = bed.run("--json").json
    assert (found["classes"], found["classes_made"]) == (1, 8)
    assert bed.call(*measured, "--json").json["classes"] == 1
    assert bed.call("runs", bed.database, "--json").json["runs"][-1]["classes"] == 1


@pytest.mark.slow
def test_remedies_are_told_to_people_and_to_programs(bed: Any) -> None:
    """No value of the data is among them unless it is asked for."""
    bed.sql("UPDATE patients SET disease = 'Flu' WHERE age > 25")
    bed.write_policy(require=[{"frequency": 2}], algorithm="topdown")
    called = bed.run()
    assert called.code == 1 and "a run accepts, the least costly first:\n  1. require: [{frequency: " in called.err
    assert "Flu" not in called.err and "--show-values" in called.err
    hidden = bed.run("--json").json["error"]
    assert "a run accepts" not in hidden["problems"][0]["what"] and "Flu" not in json.dumps(hidden)
    assert [remedy["change"] is None for remedy in hidden["remedies"]] == [False, True, False]
    shown = bed.call("plan", bed.database, bed.policy, "--show-values", "--json").json["error"]["remedies"]
    (own,) = shown[1]["change"]["require"][0]["threshold"]["values"].items()
    assert own[0] == "Flu" and 0.5 < own[1] < 1 and shown[1]["rows"] == 0
    for remedy in shown:
        bed.write_policy(**{"require": [{"frequency": 2}], "algorithm": "topdown"} | remedy["change"])
        assert bed.run("--json").json["rows_suppressed"] == remedy["rows"]
        bed.sql("DROP TABLE published.patients")
    bed.write_policy(require=[{"t_closeness": 0.9}], algorithm="bsgi")
    refused = bed.run("--json")
    assert refused.code == 2 and refused.json["error"]["remedies"][0]["change"] == {"algorithm": "auto"}
