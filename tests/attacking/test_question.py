"""What an attack is asked: every argument that is wrong is named, before anything is made."""

import duckdb
import pytest
from tables import fill

import ldiv_db
from ldiv_db import Replay
from ldiv_db.database.errors import PolicyError
from tests.attacking.test_attacks import hospital

#: What is said of columns without a policy, and a policy that says what labels stand for.
PLAIN = {"qi": ["age"], "sensitive": "s"}
KEYS = {"age": {"numeric": True}, "zip": {"taxonomy": {"prefix": [3, 2]}}}
POLICY = {"source": "x", "target": "y", "quasi_identifiers": KEYS, "sensitive": ["s"], "require": [{"k": 1}]}
P = {"policy": POLICY}
ALSO = P | {"known": "whole", "also": "t"}
PAIR = {"sensitive": "s", "sensitive_table": "t", "group": "day"}


#: What a call that is refused must not have made.
MADE = "SELECT database_name, table_name, temporary FROM duckdb_tables() ORDER BY ALL"


@pytest.fixture(scope="module")
def tables():
    """A connection with the tables that are named."""
    with duckdb.connect(config={"threads": 1}) as con:
        hospital(con)
        fill(con, "whole", {"age": "INTEGER", "zip": "VARCHAR", "s": "VARCHAR"}, [(25, "123", "Flu")])
        con.execute("CREATE TABLE few AS SELECT age FROM whole")
        con.execute("CREATE TABLE others AS SELECT DATE '2020-01-01' AS age, zip, s FROM whole")
        con.execute("CREATE TABLE sexes AS SELECT age, zip, 'f' AS sex FROM whole")
        yield con


def other(**changes):
    """The policy of another release."""
    return {"also_policies": [POLICY | changes]}


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (PLAIN | {"table": "tt"}, "no table or view tt"),
        (PLAIN | {"qi": ["ages"]}, "(?s)qi: the table has no column 'ages'.*did you mean 'age'"),
        (PLAIN | {"qi": []}, "qi: is missing"),
        (PLAIN | {"sensitive": [], "require": ["distinct:2"]}, "sensitive: is missing"),
        (PLAIN | {"sensitive": "x", "class_column": "y"}, "(?s)class.*'y'.*sensitive.*'x'"),
        (PLAIN | {"require": ["distict:2", "k:auto"]}, "(?s)distinct.*auto needs"),
        (PLAIN | {"require": []}, "require: is empty"),
        (PLAIN | {"require": ["entropy_alpha:l=2,alpha=1"]}, "needs the categories"),
        (PLAIN | {"require": ["z=k:2"]}, "'z' is not sensitive"),
        (PLAIN | {"m": -1, "threshold": 2}, "(?s)m: takes.*threshold: takes"),
        (PLAIN | {"threshold": "high"}, "threshold: takes a number"),
        (PLAIN | {"threshold": float("nan")}, "threshold: takes a number"),
        (PLAIN | {"sensitive": {"s": {"categories": ["HIV", "Flu"]}}}, r"s\.categories: list 3 values, and not 1"),
        (PLAIN | {"sensitive": {"s": {"categories": [["HIV", "Flu", "Cold"]]}}}, "two lists"),
        (PLAIN | {"sensitive": {"s": {"taxonomy": "nothing"}}}, "the catalog has no taxonomy 'nothing'"),
        (PLAIN | {"policy": {}}, "source: is required"),
        (PLAIN | P, "leave this out"),
        # People, and what is known of them.
        *((PLAIN | {key: "t"}, f"{key}: needs a policy") for key in ("known", "population", "targets", "definetti")),
        (PLAIN | {"also": "t"}, "also: needs a policy"),
        (PLAIN | {"downcoding": True}, "downcoding: needs a policy"),
        (PLAIN | {"refine": True}, "refine: needs a policy"),
        (P | {"known": "nobody.csv"}, "known: no file"),
        (P | {"targets": "nobody"}, "no table or view nobody"),
        (P | {"targets": "few"}, "targets: the table has no column 's'"),
        (P | {"counting": True}, "counting: needs everybody's quasi-identifiers"),
        (P | {"control": "whole"}, "control: needs targets"),
        (P | {"targets": "whole", "control": "few"}, "(?s)control: the .* no column 'zip'.*control: .* no column 's'"),
        (P | {"targets": "whole", "control": "others"}, "control: age is of another type"),
        (P | {"link_columns": (["age"], ["zip"])}, "link_columns: needs targets"),
        (P | {"targets": "whole", "link_columns": (["age", "zip"], ["zip", "s"])}, "(?s)s is not a quasi-.*twice"),
        (P | {"targets": "whole", "link_columns": (["age"], [])}, "takes two lists"),
        (P | {"targets": "whole", "tries": 0, "seed": -1}, "(?s)tries: takes.*seed: takes"),
        (P | {"targets": "whole", "tries": 100_001}, "tries: takes a whole number from 1 to 100,000"),
        (P | {"definetti": "t"}, "definetti: age takes numbers or times"),
        (P | {"definetti": "few"}, "definetti: the table of people has no column 's'"),
        # Other releases, and a pair of tables.
        (P | {"also": "t"}, "also: needs people who are in all releases"),
        (ALSO | {"also": "nothing"}, "also: no table or view nothing"),
        (ALSO | {"also": "few"}, "sensitive.s: the published table has no column s"),
        (ALSO | other(sensitive=["sex"]) | {"also": "sexes"}, "also: the other release has no column 's'"),
        (ALSO | {"also_policies": [POLICY] * 2}, "2 policies for 1 other"),
        (ALSO | other(quasi_identifiers={"b": {"numeric": True}}), "the published table has neither b"),
        (PLAIN | {"sensitive_table": "t"}, "goes with --group"),
        (P | {"sensitive_table": "t", "group": "day"}, "leave this out"),
        (PAIR | {"qi": "z", "group": "g"}, "(?s)no column 'z'.*no column 'g'"),
        (PAIR | {"definetti": "whole"}, "nothing to learn"),
        (PAIR | {"qi": "age", "class_column": "day"}, "class: does not go with --group"),
        # Replays.
        (PLAIN | {"replay": Replay()}, "replay: needs the policy"),
        (P | {"replay": Replay(seed=2**127)}, "replay_seed: takes a whole number"),
        (P | {"replay": Replay(seed=-1)}, "replay_seed: takes a whole number"),
        (P | {"replay": Replay(limit=1)}, "replay_limit: takes a whole number"),
        (P | {"replay": Replay(tries=-1)}, "replay_tries: takes a whole number"),
    ],
)
def test_bad_arguments_are_named(words, says, tables):
    before = tables.execute(MADE).fetchall()
    with pytest.raises(PolicyError, match=says):
        ldiv_db.attack(tables, **({"table": "t"} | words))
    assert tables.execute(MADE).fetchall() == before
