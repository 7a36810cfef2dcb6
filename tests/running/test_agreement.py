"""What is planned passes its audit, and run, measure and audit say the same of what is published.

Random tables through every algorithm, requirement, residue, setting of NULLs and of suppressed rows. A policy that is
accepted may not fail its audit after all the work.
"""

import random
from collections import Counter

import duckdb
import pytest
import tables
import yaml
from strategies import search, seeds, some

import ldiv_db

TREE = {"Any": {"L": {"a": {}, "b": {}}, "R": {"c": {}, "M": {"d": {}, "e": {}}}}}
DISEASES = {"ill": {"lungs": {"flu": {}, "cold": {}}, "HIV": {}, "other": {"ulcer": {}, "gout": {}, "rash": {}}}}
SCHEMES = ("none", "vioRec", "allRec", "vioSA", "allSA")
ALGORITHMS = {
    "bsgi": {"select": ("refine", "bisect", "greedy"), "residue": ("incorporate", "suppress")},
    "topdown": {},
    "mondrian": {"split": ("strict", "relaxed")},
    "peel": {"residue": ("incorporate", "suppress", "suppress")},
    "stratified": {},
    "auto": {"residue": ("incorporate", "suppress"), "effort": ("quick", "normal", "thorough")},
    "fast": {},
    "cuts": {"metric": ("LM", "DM"), "scheme": ("none", *SCHEMES, "allRec")},
    "annealing": {"scheme": SCHEMES, "steps": (20,)},
    "incognito": {"metric": ("LM", "DM")},
    "tds": {},
    "tp": {"form": ("stars", "ranges")},
    "tp_plus": {"form": ("stars", "ranges"), "coarsen": ({}, {"q1": 1})},
    "hilbert": {},
    "matching": {},
}
TAXONOMIES_ALONE = ("cuts", "annealing", "incognito", "tds")
OF_DIFFERENT_VALUES = ("bsgi", "auto", "fast")
SEVERAL = ("bsgi", "auto", "fast", "topdown", "mondrian", "peel", "stratified", "cuts")


def shares(draw, values):
    """Requirements that bound the shares of values."""
    own = {value: draw.choice([0.5, 0.7]) for value in draw.sample(values, draw.randint(0, 2))}
    return [
        {"frequency": draw.choice([1.5, 2, 2, 3])},
        {"threshold": {"default": draw.choice([0.5, 0.75]), **own, "absent": "allow"}},
        {"threshold": {"base": draw.choice([0.2, 0.3, 0.37])}},
    ]


def requirements(draw, name, values, is_text):
    found = shares(draw, values)
    if name == "annealing" or (name == "cuts" and draw.random() < 0.4):
        return draw.sample(found, draw.choice([1, 1, 2]))
    found += [
        {"k": draw.randint(2, 4)},
        {"distinct": draw.choice([2, 2, 3])},
        {"entropy": draw.choice([1.5, 2])},
        {"recursive": {"c": draw.choice([1, 2, 3]), "l": 2}},
        {"alpha_k": {"alpha": draw.choice([0.5, 0.7]), "k": 2}},
        {"p_sensitive": {"p": 2, "k": draw.randint(2, 4)}},
    ]
    if name not in ("tp", "tp_plus", "hilbert", "matching"):
        found += [
            {"distinct_alpha": {"l": 2, "alpha": draw.choice([0.5, 1])}},
            {"entropy_alpha": {"l": 1.5, "alpha": 0.5}},
            {"recursive_alpha": {"c": 3, "l": 2, "alpha": 0.5}},
        ]
        distance = draw.choice(["equal", "hierarchical"] if is_text else ["equal", "ordered"])
        if name != "bsgi":
            t = {"t_closeness": {"t": draw.choice([0.1, 0.2, 0.3]), "distance": distance}}
            found += [t] * (12 if name == "peel" else 4)
    if name in OF_DIFFERENT_VALUES:
        found += [{"unique_distinct": draw.choice([2, 3])}, {"distinct": "auto"}]
    chosen = draw.sample(found, draw.choice([1, 1, 2]))
    if name in SEVERAL and draw.random() < 0.15:
        chosen = [{**one, "others_known": True} for one in chosen]
    return chosen


def sensitive_column(draw, n, values, params):
    pool = values[: draw.randint(2, len(values))]
    weights = [draw.choice([1, 1, 2, 4]) for _ in pool]
    if len(values) == 2:  # as many rows of the one as of the other, for who can do without NULL
        return draw.sample([*values, None] * n, n) if params == 0.3 else draw.sample(values * (n // 2), n)
    column = [None if draw.random() < params else draw.choices(pool, weights)[0] for _ in range(n)]
    return column if any(value is not None for value in column) else [pool[0]] * n


def draw_case(draw, name):
    """A table with its policy: not all of them can be met."""
    n, is_text = draw.randint(8, 40), draw.random() < 0.7
    values = ["flu", "cold", "HIV", "ulcer", "gout", "rash"] if is_text else [1, 2, 3, 5, 8, 13]
    n, values = (n // 2 * 2, values[:2]) if name == "matching" else (n, values)
    params, gaps = draw.choice([0, 0.1, 0.3]), draw.choice([0, 0, 0.2])
    numeric = {"numeric": True}
    if name in TAXONOMIES_ALONE or draw.random() < 0.4:
        numeric = {"taxonomy": {"ranges": [5, 20]}}
    columns = {"q1": "INTEGER", "q2": "VARCHAR", "s1": "VARCHAR" if is_text else "INTEGER"}

    def made(make):
        return [None if draw.random() < gaps else make() for _ in range(n)]

    rows = [made(lambda: draw.randint(0, 19)), made(lambda: draw.choice("abcde"))]
    rows.append(sensitive_column(draw, n, values, params))
    own = {"categories": [values[:2], values[2:]]} if len(values) > 2 else {}
    sensitive = {"s1": own | ({"taxonomy": {"file": "diseases.yml"}} if is_text else {})}
    if name in SEVERAL and draw.random() < 0.25:
        columns["s2"] = "VARCHAR"
        rows.append(sensitive_column(draw, n, list("uvwxyz"), draw.choice([0, 0.2])))
        sensitive["s2"] = {}
    columns["rid"] = "INTEGER"
    rows.append(list(range(n)))
    wanted = requirements(draw, name, values, is_text)
    weighed = [one for one in wanted if any(key.endswith("_alpha") or key == "t_closeness" for key in one)]
    wanted = [{**one, "sensitive": "s1"} if one in weighed and "s2" in columns else one for one in wanted]
    options = {key: draw.choice(choices) for key, choices in ALGORITHMS[name].items()}
    may_be_sets = name not in TAXONOMIES_ALONE and not name.startswith(("tp", "hilbert", "matching"))
    policy = {
        "source": "source", "target": "released", "sensitive": sensitive, "keep": ["rid"], "require": wanted,
        "quasi_identifiers": {"q1": numeric, "q2": {"taxonomy": {"file": "tree.yml"}}},
        "algorithm": {"name": name, **options}, "seed": draw.randint(0, 99),
        "nulls": draw.choice(["value", "value", "suppress"]),
        "nulls_sensitive": draw.choice(["value", "value", "suppress"]),
        "suppressed": draw.choice(["judge", "ignore", "ignore"]),
        "recode": draw.choice(["tree", "set"]) if may_be_sets else "tree",
        "output": {"bounds": draw.random() < 0.3},
    }  # fmt: skip
    if draw.random() < 0.3:
        policy["output"]["class_id"] = True
    return columns, list(zip(*rows, strict=True)), policy


def release(con, folder, columns, rows, policy):
    """The result of a run; None if the policy is refused. An audit that fails after all the work is an error."""
    tables.fill(con, "source", columns, rows)
    try:
        return ldiv_db.run(con, policy, folder)
    except (ldiv_db.PolicyError, ldiv_db.InfeasibleError):
        return None


def labels_of(con, sensitive):
    """The published rows as (what tells classes apart, sensitive value)."""
    cursor = con.execute("SELECT * FROM released")
    names = [column[0] for column in cursor.description]
    aside = [place for place, name in enumerate(names) if name not in ("s1", "s2", "rid")]
    secret = names.index(sensitive)
    return [(tuple(row[place] for place in aside), row[secret]) for row in cursor.fetchall()]


def verify(con, folder, policy, result):
    """Assert that all three say what stands in the published table."""
    published = labels_of(con, "s1")
    sizes = Counter(key for key, _ in published).values()
    loss, found = result.loss, ldiv_db.measure(con, "released", policy, folder=folder, kl=False)
    assert loss.classes == len(sizes) <= loss.classes_made
    assert loss.dm == sum(size**2 for size in sizes) + loss.rows_suppressed * len_source(con)
    assert (loss.smallest_class, loss.largest_class) == (min(sizes, default=0), max(sizes, default=0))
    for figure in ("classes", "dm", "smallest_class", "largest_class", "rows_published", "rows_suppressed"):
        assert getattr(loss, figure) == getattr(found.loss, figure), figure
    assert result.as_dict()["loss"]["cavg"] == found.as_dict()["loss"]["cavg"]
    assert result.as_dict()["avg_class_size"] == found.as_dict()["avg_class_size"]
    assert (loss.lm, loss.stars) == (pytest.approx(found.loss.lm), found.loss.stars)
    for audit in result.audits:
        judged = labels_of(con, audit.sensitive)
        if policy["suppressed"] == "ignore" and "SA" not in policy["algorithm"].get("scheme", ""):
            judged = [(key, value) for key, value in judged if value is not None and not is_suppressed(key, policy)]
        assert audit.classes == len({key for key, _ in judged}) and audit.rows == len(judged)
    (recorded,) = con.execute("SELECT classes FROM ldiv.run WHERE run_id = ?", [result.run_id]).fetchone()
    assert recorded == loss.classes


def is_suppressed(key, policy):
    """Whether a row's quasi-identifiers are all stars or NULL; the class id stands before them."""
    labels = key[1:] if policy["output"].get("class_id") or needs_ids(policy) else key
    return all(label in (None, "*") for label in labels)


def needs_ids(policy):
    return any("unique_distinct" in one for one in policy["require"])


def len_source(con):
    return con.execute("SELECT count(*) FROM source").fetchone()[0]


UNJUDGED = ("bsgi", "topdown", "mondrian", "peel", "stratified", "incognito", "tds", "tp", "tp_plus", "hilbert")


@pytest.mark.parametrize("name", some(UNJUDGED, 1))
def test_rows_that_are_not_judged_make_no_class_good(name, con):
    """A value beside NULL is one value where NULL is not judged: such rows need a third."""
    values = ["x", None, "y", None, "z", "x", None, "y", "z", "x", "y", "z"]
    tables.fill(con, "source", {"q": "INTEGER", "s": "VARCHAR"}, [(i // 2, s) for i, s in enumerate(values)])
    policy = {
        "source": "source", "target": "released", "quasi_identifiers": {"q": {"taxonomy": {"ranges": [1, 2, 6]}}},
        "sensitive": ["s"], "require": [{"frequency": 2}], "nulls_sensitive": "value", "suppressed": "ignore",
        "algorithm": {"name": name, "form": "ranges"} if name in ("tp", "tp_plus", "hilbert") else name,
    }  # fmt: skip
    result = ldiv_db.run(con, policy)
    assert result.loss.rows_published == 12 and result.loss.classes >= 1
    (audit,) = result.audits
    assert audit.holds and (audit.rows, audit.ignored_rows) == (9, 3)
    (again,) = ldiv_db.check(con, "released", ["q"], "s", [{"frequency": 2}], suppressed="ignore")
    assert again.holds and again.rows == 9


def test_cuts_says_before_any_work_that_it_judges_all_rows(con):
    tables.fill(
        con, "source", {"q": "INTEGER", "s": "VARCHAR"}, [(i // 2, "xyz"[i % 3]) for i in range(8)] + [(1, None)]
    )
    policy = {"source": "source", "target": "released", "quasi_identifiers": {"q": {"taxonomy": {"ranges": [1, 8]}}},
              "sensitive": ["s"], "require": [{"frequency": 2}], "nulls_sensitive": "value", "suppressed": "ignore",
              "algorithm": "cuts"}  # fmt: skip
    with pytest.raises(ldiv_db.PolicyError, match="suppressed: ignore leaves rows with NULL unjudged"):
        ldiv_db.plan(con, policy)


def test_what_cannot_be_judged_where_values_are_unknown_is_refused_before_any_work(con):
    tables.fill(con, "source", {"q": "INTEGER", "s": "VARCHAR"}, [(i, "xyz"[i % 3]) for i in range(9)])
    policy = {"source": "source", "target": "released", "quasi_identifiers": {"q": {"numeric": True}},
              "sensitive": ["s"], "require": [{"distinct": 2}], "suppressed": "unknown"}  # fmt: skip
    with pytest.raises(ldiv_db.PolicyError, match="unknown values leave open"):
        ldiv_db.plan(con, policy)


@pytest.mark.parametrize("seed", some([5, 11, 18]))
def test_shares_are_compared_with_those_of_the_table_as_it_is_published(seed, con):
    """Rows left out of a release by `peel` are not in the table that t-closeness compares classes with."""
    draw = random.Random(seed)
    n = draw.choice([24, 30, 40])
    rows = [(draw.randint(0, 40), draw.choice("abcde"), draw.choice("xxxyyz")) for _ in range(n)]
    tables.fill(con, "source", {"age": "INTEGER", "town": "VARCHAR", "s": "VARCHAR"}, rows)
    require = [{"t_closeness": {"t": draw.choice([0.1, 0.2, 0.15]), "distance": "equal"}}, {"k": 2}]
    policy = {
        "source": "source", "target": "released", "sensitive": ["s"], "require": require,
        "quasi_identifiers": {"age": {"numeric": True}, "town": {"taxonomy": {"prefix": [1]}}},
        "algorithm": {"name": "peel", "residue": "suppress"},
    }  # fmt: skip
    result = ldiv_db.run(con, policy)
    assert result.loss.rows_suppressed and result.search["resettled"]
    assert ldiv_db.check(con, "released", ["age", "town"], "s", require)[0].holds


def test_tds_compares_shares_with_those_of_the_whole_table(con):
    """Also where what may be specialised yet has other shares: of 8 to 15 nothing may be, and half of the rest is x."""
    values = {0: "xxxyyyyy", 2: "xxxxxyyy", 4: "xxxxyyyy", 8: "xxxxxxxx", 12: "xxxxyyyy"}
    rows = [(q, value) for q, some in values.items() for value in some]
    tables.fill(con, "source", {"q": "INTEGER", "s": "VARCHAR"}, rows)
    policy = {
        "source": "source", "target": "released", "sensitive": ["s"], "algorithm": "tds",
        "quasi_identifiers": {"q": {"taxonomy": {"ranges": [2, 4, 8, 16]}}},
        "require": [{"t_closeness": {"t": 0.16, "distance": "equal"}}],
    }  # fmt: skip
    assert ldiv_db.run(con, policy).loss.classes == 3


@pytest.mark.parametrize("name", some(["topdown", *ALGORITHMS]))
@search(1, seed=seeds)
def test_what_is_planned_passes_its_audit_and_all_say_the_same_of_it(name, tmp_path, seed):
    """Of the first policy that is accepted of some that are drawn."""
    draw = random.Random(f"{name} {seed}")
    (tmp_path / "tree.yml").write_text(yaml.safe_dump(TREE))
    (tmp_path / "diseases.yml").write_text(yaml.safe_dump(DISEASES))
    for _ in range(60):
        columns, rows, policy = draw_case(draw, name)
        with duckdb.connect(config={"threads": 1}) as con:
            result = release(con, tmp_path, columns, rows, policy)
            if result is not None:
                verify(con, tmp_path, policy, result)
                return
    pytest.fail("too few policies are accepted for the test to say anything")
