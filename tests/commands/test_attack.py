"""`ldiv attack`: attacks on a release and on anybody's table, as they are printed."""

from __future__ import annotations

from inspect import signature
from pathlib import Path
from typing import Any

import pytest
from beds import Bed, Called

import ldiv_db
from ldiv_db.commands.published import attack_command

GAIN = {"measure", "gain", "bound", "holds"}


@pytest.fixture(scope="module")
def first(first_release: Path, tmp_path_factory: pytest.TempPathFactory) -> Bed:
    """A release that keeps its policy, and some people of its source."""
    bed = Bed(first_release).copied(tmp_path_factory.mktemp("attacked"))
    bed.write("people.csv", "name,age,country\nP0,20,Norway\nP5,55,Italy\nnobody,99,Korea\n")
    return bed


@pytest.fixture
def released(first: Bed, tmp_path: Path) -> Bed:
    return first.copied(tmp_path)


def attack(bed: Bed, *words: Any) -> Called:
    """What the attack says of the release, which changes no file."""
    before = bed.files()
    called = bed.call("attack", bed.database, "published.patients", *words)
    assert bed.files() == before
    return called


def test_the_command_asks_for_all_that_the_call_takes() -> None:
    arguments, options = (set(signature(made).parameters) for made in (ldiv_db.attack, attack_command))
    assert arguments - options == {"con", "table", "folder", "listener"}
    assert {name for name in options if name.startswith("replay")} == {
        "replay", "replay_seed", "replay_tries", "replay_limit",
    }  # fmt: skip


def test_a_release_keeps_what_its_policy_promises(first: Bed) -> None:
    words = ("--policy", first.policy, "--known", first.folder / "people.csv", "--population", "patients")
    called = attack(first, *words, "--json", "--categories", "[[Cancer, Hepatitis], [Flu], [Asthma]]", "--m", "2")
    assert called.code == 0, called.err
    found = called.json
    keys = {"table", "rows", "classes", "holds", "finished", "attacks", "warnings"}
    assert set(found) == keys and found["holds"]
    assert (found["rows"], found["classes"]) == (24, 8)
    for each in found["attacks"]:
        assert set(each) == {"attack", "sensitive", "holds", "finished", "untried", "gains", "figures"}
        assert each["gains"] and all(set(gain) == GAIN for gain in each["gains"])
    names = ["homogeneity", "similarity", "skewness", "background knowledge", "posterior", "linking"]
    assert [each["attack"] for each in found["attacks"]] == [
        *names, "prosecutor", "journalist", "marketer", "presence", "form",
    ]  # fmt: skip
    by_name = {each["attack"]: each for each in found["attacks"]}
    assert by_name["posterior"]["gains"] == [{"measure": "posterior", "gain": 1 / 3, "bound": 1 / 3, "holds": True}]
    assert (by_name["linking"]["figures"]["people"], by_name["linking"]["figures"]["no_class"]) == (3, 1)


def test_people_read_a_table_and_values_on_request_alone(first: Bed) -> None:
    words = ("--policy", first.policy, "--known", first.folder / "people.csv")
    called = attack(first, *words)
    assert called.code == 0 and "bound promised" in called.out and "homogeneity" in called.out
    assert "linking of disease: people 3, people in no class 1" in called.out
    assert not {"Flu", "Cancer", "Norway"} & set(called.out.replace(",", " ").split())
    shown = attack(first, *words, "--show-values").out
    assert "most certain: disease" in shown and "Norway" in shown


def test_classes_of_several_rows_have_nobody_unique_in_the_population(first: Bed) -> None:
    words = ("--policy", first.policy, "--population-size", "1000")
    (found,) = (one for one in attack(first, *words, "--json").json["attacks"] if "uniqueness" in one["attack"])
    assert found["gains"] == [
        {"measure": "share of rows unique in the population, estimated", "gain": 0.0, "bound": 0.0, "holds": True}
    ]
    models = {f"unique_people_by_{name}": 0.0 for name in ("pitman", "zayatz", "snb")}
    assert found["figures"].items() > models.items()
    assert (found["figures"]["population"], found["figures"]["sampling_fraction"]) == (1_000, 0.024)


def test_labels_are_read_backwards_and_people_are_tried(released: Bed) -> None:
    """The people of the source and others, with what they are sensitive about."""
    released.write("others.csv", "name,age,country,disease\nA,21,Norway,Flu\nB,48,Korea,Asthma\nC,33,Italy,Flu\n")
    words = ("--policy", released.policy, "--targets", "patients", "--control", released.folder / "others.csv")
    words += ("--downcoding", "--population", "patients", "--link-columns", "country | age", "--tries", "4")
    called = attack(released, *words, "--seed", "3", "--json")
    assert called.code == 0, called.err
    by_name = {each["attack"]: each for each in called.json["attacks"]}
    names = ["downcoding", "singling out by one column", "singling out by several columns", "linkability", "inference"]
    assert [name for name in by_name if name in names] == names
    for name in names:
        assert by_name[name]["holds"] is None and {gain["bound"] for gain in by_name[name]["gains"]} == {None}
    figures = by_name["inference"]["figures"]
    assert (figures["attempts"], figures["control_attempts"], len(figures["risk_interval"])) == (4, 3, 2)
    assert by_name["downcoding"]["figures"]["rows_unexplained"] == 0
    assert not [value for value in ("Flu", "Cancer", "Norway") if value in called.out]


def test_categories_are_said_once(released: Bed) -> None:
    """By the options if the policy has none; both at once are refused."""
    options = ("--policy", released.policy, "--categories", "[[Cancer, Hepatitis], [Flu, Asthma]]", "--json")
    by_options = attack(released, *options)
    assert "similarity" in [each["attack"] for each in by_options.json["attacks"]]
    released.write_policy(sensitive={"disease": {"categories": [["Cancer", "Hepatitis"], ["Flu", "Asthma"]]}})
    assert attack(released, *options[:2], "--json").json == by_options.json
    message = released.fails(2, "attack", released.database, "published.patients", *options)
    assert "sensitive.disease: the policy says" in message


def test_a_broken_promise_is_exit_code_1(first: Bed) -> None:
    words = ("--qi", "age,country", "--sensitive", "disease", "--require", "distinct:5")
    called = attack(first, *words)
    assert called.code == 1 and "NO" in called.out
    assert attack(first, *words[:4]).code == 0, "nothing is promised"


def test_a_file(released: Bed) -> None:
    released.sql(f"COPY published.patients TO '{released.folder / 'r.parquet'}'")
    words = ("--qi", "age", "--qi", "country", "--class", "class_id", "--sensitive", "disease")
    called = released.call("attack", ":memory:", released.folder / "r.parquet", *words, "--require", "frequency:3")
    assert called.code == 0, called.err


PLAIN = ("--qi", "age", "--sensitive", "disease")
#: What is refused, by its code; what is about a policy has that of the release.
REFUSED = {
    "known": (*PLAIN, "--known", "people_.csv"),
    "categories": ("--qi", "age", "--categories", "[[x], [y]]"),
    "policy": ("--policy", "nothing.yml"),
    "targets": (*PLAIN, "--targets", "main.patients"),
    "downcoding": (*PLAIN, "--downcoding"),
    "control": (*PLAIN, "--control", "main.patients"),
    "link_columns": (*PLAIN, "--link-columns", "a|b|c"),
    "replay": (*PLAIN, "--require", "distinct:3", "--replay"),
    "replay_tries": ("--policy", "policy.yml", "--replay-tries", "1"),
    "replay_seed": ("--policy", "policy.yml", "--replay-seed", "1"),
}


def test_bad_input_is_refused_by_its_code(released: Bed, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(released.folder)
    for code, words in REFUSED.items():
        released.refuses(code, "attack", released.database, "published.patients", *words)
    for seed in ("one", "9" * 90):
        words = ("--policy", "policy.yml", "--replay", "--replay-seed", seed)
        released.refuses("replay_seed", "attack", released.database, "published.patients", *words)


def test_labels_of_another_taxonomy_are_refused(released: Bed) -> None:
    released.sql("UPDATE published.patients SET country = 'Scandinavia' WHERE class_id = 1")
    words = ("--policy", released.policy, "--known", "main.patients")
    message = released.fails(2, "attack", released.database, "published.patients", *words)
    assert "country" in message and "not in the taxonomy country.csv" in message


def test_a_release_is_replayed_by_its_ledger_and_nothing_is_written(released: Bed) -> None:
    """The seed is the ledger's; progress goes to stderr, and the database is as it was."""
    released.write_policy(seed=None)
    called = attack(released, "--policy", released.policy, "--replay", "--replay-limit", 2, "--json")
    assert called.code == 0
    (found,) = [each for each in called.json["attacks"] if each["attack"] == "replay"]
    assert found["figures"]["tried"] == "drawn classes" and found["figures"]["seed"] == "known"
    assert found["gains"][0]["bound"] is None and found["figures"]["promised_without_replay"] == 1 / 3


def test_attacks_by_inference(released: Bed) -> None:
    """What the release teaches, what two releases tell together, who can be in which class."""
    released.sql("CREATE TABLE published.again AS FROM published.patients")
    words = ("--policy", released.policy, "--population", "patients", "--counting", "--definetti", "patients")
    words = (*words, "--known", "patients", "--also", "published.again", "--also-policy", released.policy, "--json")
    called = attack(released, *words)
    assert called.code == 0, called.err
    by_name = {each["attack"]: each for each in called.json["attacks"]}
    figures = {name: by_name[name]["figures"] for name in ("counting", "composition", "definetti")}
    assert [each["people"] for each in figures.values()] == [24, 24, 24]
    assert figures["composition"]["releases"] == 2 and figures["composition"]["contradicted"] == 0
    assert figures["counting"]["people_contradicted"] == 0
    assert by_name["counting"]["gains"][0]["bound"] == 1 / 3
    assert by_name["definetti"]["gains"][0]["bound"] is by_name["composition"]["gains"][0]["bound"] is None


def test_an_anatomised_release_is_attacked(released: Bed) -> None:
    released.sql("CREATE TABLE qit AS SELECT class_id, age FROM published.patients")
    released.sql("CREATE TABLE st AS SELECT class_id, disease FROM published.patients")
    pair = ("--sensitive-table", "st", "--group", "class_id", "--qi", "age", "--sensitive", "disease")
    words = ("attack", released.database, "qit", *pair, "--definetti", "published.patients", "--require", "frequency:3")
    called = released.call(*words, "--json")
    assert called.code == 0, called.err
    by_name = {each["attack"]: each for each in called.json["attacks"]}
    assert by_name["definetti"]["figures"]["by_chance"] == pytest.approx(1 / 3)
    assert by_name["posterior"]["gains"][0]["holds"] and "prosecutor" not in by_name
    assert "goes with --group" in released.fails(2, *words[:3], *pair[:2], *pair[4:])
