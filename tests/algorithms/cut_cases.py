"""What tests of cuts share: tables as the oracle and as a policy have them, and the costs that searches find."""

import json
from collections import Counter
from fractions import Fraction
from unittest import mock

import cut_oracle
import oracle
import pytest
from cut_oracle import SHAPES, Numbers
from strategies import some
from tables import fill

import ldiv_db
from ldiv_db.algorithms.base import Task
from ldiv_db.algorithms.cuts import branch_and_bound as cut_sweep
from ldiv_db.algorithms.cuts import judged as cut_judged
from ldiv_db.algorithms.cuts.branch_and_bound import Sweep
from ldiv_db.algorithms.cuts.evaluation import FORBIDDEN, Best, Evaluator, descend
from ldiv_db.algorithms.cuts.problem import Cost, intervals_of, make_problem
from ldiv_db.database.engine import Engine
from ldiv_db.policy.reading import parse_policy
from ldiv_db.policy.resolve import resolve
from ldiv_db.recoding.encode import read_source

NEW = {"table": "out.released", "if_exists": "replace"}


class Case:
    """A table of leaves, a sensitive value or several, and a label, with its trees and what is required."""

    trees: list
    rows: list
    require: list
    attributes = ("s",)
    algorithm = "cuts"

    def policy(self, **algorithm):
        keys = {
            f"q{i}": {"numeric": True} if isinstance(tree, Numbers) else {"taxonomy": {"file": f"q{i}.json"}}
            for i, tree in enumerate(self.trees)
        }
        return {
            "source": "source", "target": NEW, "quasi_identifiers": keys, "sensitive": list(self.attributes),
            "algorithm": {"name": self.algorithm, **algorithm}, "keep": ["y"], "require": self.require,
            "nulls": "value", "seed": 1,
        }  # fmt: skip

    def place(self, con, folder):
        con.execute("DROP SCHEMA IF EXISTS out CASCADE")
        names = [f"q{i}" for i in range(len(self.trees))]
        numbers = [isinstance(tree, Numbers) for tree in self.trees]
        columns = {name: "INTEGER" if is_number else "VARCHAR" for name, is_number in zip(names, numbers, strict=True)}
        columns |= dict.fromkeys([*self.attributes, "y"], "VARCHAR")
        rows = [(*codes, *((own,) if isinstance(own, str) else own), label) for codes, own, label in self.rows]
        fill(con, "source", columns, rows)
        for name, tree, is_number in zip(names, self.trees, numbers, strict=True):
            if not is_number:
                (folder / f"{name}.json").write_text(json.dumps(tree))

    def run(self, con, folder, **algorithm):
        return ldiv_db.run(con, self.policy(**algorithm), folder=folder)

    def evaluator(self, con, folder, metric, scheme):
        self.place(con, folder)
        engine = Engine(con)
        resolved = resolve(engine, parse_policy(self.policy()), folder)
        wanted = resolved.required.resolved()
        required = [requirement for of_attribute in wanted.values() for requirement in of_attribute]
        task = Task(engine, read_source(engine, resolved.source).encode(), required, wanted=wanted)
        return Evaluator(make_problem(task, Cost(metric, scheme, task.encoded.kept[0] if metric == "CM" else None)))

    def cut_of(self, labels):
        """The oracle's cut that has these labels, those of chains standing for any node of theirs."""
        return [cut_with(tree, own) for tree, own in zip(self.trees, labels.values(), strict=True)]

    def released(self, con):
        """How often each combination of sensitive values stands with each combination of labels."""
        counts, place = {}, len(self.trees)
        for row in con.execute("SELECT * FROM out.released").fetchall():
            labels = tuple(None if label is None else str(label) for label in row[:place])
            counts.setdefault(labels, Counter())[row[place:-1]] += 1
        return counts


def cut_with(tree, labels):
    wanted = set(labels)
    return next(
        cut
        for cut in cut_oracle.cuts(tree)
        if {"NULL" if label is None else label for label, _ in cut.values()} == wanted
    )


def refuses_all(case, con, folder, words, **algorithm):
    """A run that no cut or no row is left for is refused, and publishes nothing."""
    with pytest.raises(ldiv_db.InfeasibleError, match=words):
        case.run(con, folder, **algorithm)
    assert not con.execute("FROM duckdb_tables() WHERE table_name = 'released'").fetchall()


def numbered(case, draw, most_values=6):
    """The case, of whose quasi-identifiers one or two are numbers without a taxonomy, perhaps with NULL."""
    several = len(case.trees) > 1 and draw.random() < 0.3
    for place in draw.sample(range(len(case.trees)), 2 if several else 1):
        values = sorted(draw.sample(range(-3, 12), draw.randint(1, 3 if several else most_values)))
        case.trees[place] = Numbers(tuple(values), draw.random() < 0.3)
    case.rows = [(tuple(draw.choice(cut_oracle.leaves(tree)) for tree in case.trees), *row[1:]) for row in case.rows]
    for place, tree in enumerate(case.trees):
        if isinstance(tree, Numbers):  # those that occur: others part nothing, and the range is theirs
            if all(codes[place] is None for codes, *_ in case.rows):  # the tables have a number at least
                codes, *rest = case.rows[0]
                case.rows[0] = ((*codes[:place], 1, *codes[place + 1 :]), *rest)
            values = {codes[place] for codes, *_ in case.rows}
            case.trees[place] = Numbers(tuple(sorted(values - {None})), None in values)
    return case


# -- thresholds, under which shares of a class may be left out -------------------------------------------

COMBINATIONS = [("LM", scheme) for scheme in ("none", "vioSA", "allSA", "vioRec", "allRec")] + [
    (metric, scheme) for metric in ("DM", "CM") for scheme in ("none", "vioRec", "allRec")
]


class Shares(Case):
    """A random table under thresholds of its values."""

    def __init__(self, draw, rows=None):
        self.trees = [draw.choice(SHAPES) for _ in range(draw.choice([1, 2, 2, 3]))]
        values = "stuvw"[: draw.randint(2, 5)]
        weights = [draw.random() + 0.1 for _ in values]
        self.rows = [
            (
                tuple(draw.choice(cut_oracle.leaves(tree)) for tree in self.trees),
                draw.choices(values, weights)[0],
                draw.choice("yn"),
            )
            for _ in range(rows or draw.randint(1, 40))
        ]
        if draw.random() < 0.5:
            l = draw.choice(["2", "3", "1.5", "2.5"])
            self.require = [{"frequency": l}]
            self.thetas = dict.fromkeys(values, 1 / Fraction(l))
        else:
            own = {value: draw.choice(["0.1", "0.3", "0.5", "0.7", "1"]) for value in values if draw.random() < 0.6}
            default = draw.choice(["0.4", "0.6", "0.9"])
            self.require = [{"threshold": {"default": default, "absent": "allow", **own}}]
            self.thetas = {value: Fraction(own.get(value, default)) for value in values}

    def costs(self, metric, scheme):
        return cut_oracle.all_costs(self.rows, self.trees, self.thetas, metric, scheme)

    def keeps(self, scheme):
        """Whether the scheme keeps rows of some class of some cut."""

        def keeps(members):
            counts = Counter(row[1] for row in members)
            kept = cut_oracle.core(counts, self.thetas)
            return kept == counts if scheme == "allRec" else any(kept.values())

        return cut_oracle.keeps_rows(self.rows, self.trees, keeps)


# -- whatever survives the union of classes, by judging each ---------------------------------------------

#: Of the first sensitive attribute, whose values are in this order, of these categories and of this taxonomy.
VALUES = "stuvw"
CATEGORIES = [["s"], ["t", "u"], ["v", "w"]]
ILLS = {"*": {"x": {"s": {}, "t": {}}, "y": {"u": {}, "z": {"v": {}, "w": {}}}}}
WEIGHING = oracle.Weighing(CATEGORIES, oracle.weights([Fraction(1)] * 2))
#: What of all that is required is of the whole table, which rows that are left out change.
OF_WHOLE = ("t_closeness", "beta_likeness", "delta_disclosure")
KINDS = {
    "k": lambda draw: {"k": draw.choice([2, 3, 5])},
    "distinct": lambda draw: {"distinct": draw.choice([2, 2, 3])},
    "entropy": lambda draw: {"entropy": draw.choice([1.5, 1.8, 2])},
    "recursive": lambda draw: {"recursive": {"c": draw.choice([1, 1.5, 2, 3]), "l": draw.choice([1, 2, 3])}},
    "alpha_k": lambda draw: {"alpha_k": {"alpha": draw.choice([0.5, 0.7]), "k": draw.choice([2, 3])}},
    "p_sensitive": lambda draw: {"p_sensitive": {"p": 2, "k": draw.choice([2, 4])}},
    "equal closeness": lambda draw: {"t_closeness": {"t": draw.choice([0.1, 0.2, 0.35]), "distance": "equal"}},
    "ordered closeness": lambda draw: {"t_closeness": {"t": draw.choice([0.1, 0.2, 0.35]), "distance": "ordered"}},
    "hierarchical closeness": lambda draw: {
        "t_closeness": {"t": draw.choice([0.1, 0.2, 0.35]), "distance": "hierarchical"}
    },
    "beta_likeness": lambda draw: {
        "beta_likeness": {"beta": draw.choice([0.5, 1, 2]), "kind": draw.choice(["basic", "enhanced"])}
    },
    "delta_disclosure": lambda draw: {"delta_disclosure": {"delta": draw.choice([1, 2.2])}},
    "distinct_alpha": lambda draw: {"distinct_alpha": {"l": 2, "alpha": draw.choice([0.5, 1, 2])}},
    "entropy_alpha": lambda draw: {"entropy_alpha": {"l": 1.5, "alpha": 0.5}},
    "recursive_alpha": lambda draw: {"recursive_alpha": {"c": 3, "l": 2, "alpha": 0.5}},
    "frequency": lambda draw: {"frequency": draw.choice([1.5, 2])},
    "threshold": lambda draw: {"threshold": {"default": 0.8, "s": draw.choice([0.3, 0.6]), "absent": "allow"}},
}
#: The first is of every pass.
EACH_KIND = some(sorted(KINDS, key=lambda kind: kind != "ordered closeness"))
#: What is told from the values of the first attribute alone.
OF_FIRST = ("distinct_alpha", "entropy_alpha", "recursive_alpha", "threshold")


class Judged(Case):
    """A random table of one sensitive attribute or two, under any requirements, of which `kind` is one."""

    def __init__(self, draw, kind, most_rows=12):
        self.trees = [draw.choice(SHAPES) for _ in range(draw.choice([1, 2]))]
        self.attributes = draw.choice([["s"], ["s"], ["s", "u"]])
        values = VALUES[: draw.randint(2, 5)], "xyz"[: draw.randint(1, 3)]
        weights = [[draw.random() + 0.1 for _ in some] for some in values]
        self.rows = [
            (
                tuple(draw.choice(cut_oracle.leaves(tree)) for tree in self.trees),
                tuple(draw.choices(some, w)[0] for some, w in zip(values, weights, strict=True))[
                    : len(self.attributes)
                ],
                draw.choice("yn"),
            )
            for _ in range(draw.randint(4, most_rows))
        ]
        chosen = [KINDS[kind], *draw.sample(list(KINDS.values()), draw.choice([0, 0, 1]))]
        self.require = [self._concerning(draw, kind(draw)) for kind in chosen]
        self.is_of_whole = any(name in entry for entry in self.require for name in OF_WHOLE)

    def _concerning(self, draw, entry):
        """The requirement, of some attribute or of all, and perhaps for those who know the others."""
        (name,) = entry
        first = name in OF_FIRST or entry[name] == "hierarchical" or "hierarchical" in str(entry)
        own = {"sensitive": "s"} if first else draw.choice([{}, {}, {"sensitive": self.attributes[-1]}])
        return entry | own | ({"others_known": True} if draw.random() < 0.2 else {})

    def good(self, members):
        """Whether rows published alike meet all that is required."""
        return all(self._meets(members, entry) for entry in self.require)

    def _meets(self, members, entry):
        (name,) = entry.keys() - {"sensitive", "others_known"}
        for place, attribute in enumerate(self.attributes):
            if entry.get("sensitive", attribute) == attribute:
                known = entry.get("others_known", False)
                parts = oracle.group(
                    ((row[1][:place] + row[1][place + 1 :]) if known else (), row[1][place]) for row in members
                )
                table = [row[1][place] for row in self.rows]
                if not all(self._is_good(part, table, name, entry[name]) for part in parts.values()):
                    return False
        return True

    def _is_good(self, values, table, name, argument):
        if name == "t_closeness":
            kind = argument["distance"]
            distance = oracle.ground(kind, table, ILLS if kind == "hierarchical" else None)
            moved = oracle.transport(oracle.shares(values), oracle.shares(table), distance)
            return moved <= Fraction(str(argument["t"]))
        if name in ("beta_likeness", "delta_disclosure"):
            return oracle.gain_is_allowed(values, table, name, argument)
        if name.endswith("_alpha"):
            return WEIGHING.is_good(values, name, argument)
        return oracle.class_is_good(values, name, argument)

    def costs(self, metric, scheme, of_tree=cut_oracle.cuts):
        return cut_oracle.all_judged_costs(self.rows, self.trees, self.good, metric, scheme, of_tree)

    def policy(self, **algorithm):
        own = {"taxonomy": {"file": "ills.json"}, "categories": CATEGORIES}
        return super().policy(**algorithm) | {"sensitive": {"s": own} | {name: {} for name in self.attributes[1:]}}

    def place(self, con, folder):
        super().place(con, folder)
        (folder / "ills.json").write_text(json.dumps(ILLS))

    @property
    def schemes(self):
        return ["none"] if self.is_of_whole else ["none", "allRec"]


def found(evaluator, top=1, several=False):
    """The costs of the best cuts, exact; of taxonomies also as if there were very many; in `several` groups if so."""
    problem, ways = evaluator.problem, [{}] if intervals_of(evaluator.problem) else [{}, {"MOST_CUTS": 1}]
    few = {"_MOST_PREFIXES": 6, "_AT_ONCE": 2} | ({"_MOST_JOINED": 20} if several else {})
    some = mock.patch.object(cut_judged, "MOST_AT_ONCE", 7 if several else cut_judged.MOST_AT_ONCE)
    every = []
    for way in ways:
        best = Best(top)
        with mock.patch.multiple(cut_sweep, **few, **way), some:
            if several:
                descend(evaluator, best)
            assert Sweep(evaluator, best).run().proved
        costs = [cost for _, cost in best.ranked() if cost < FORBIDDEN]
        assert costs == sorted(cost for cost in evaluator.costs(list(best.costs)) if cost < FORBIDDEN)
        every.append(costs)
    assert every[0] == every[-1]
    return [Fraction(cost, problem.scale) for cost in every[0]]
