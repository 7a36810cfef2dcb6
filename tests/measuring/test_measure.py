"""`measure`: the losses of tables that nobody here made, with every kind of published value, against the oracle."""

import datetime
import hashlib
import json
import math
import statistics
import tempfile
from fractions import Fraction
from pathlib import Path

import duckdb
import oracle
import pytest
from strategies import draws, search
from tables import TREES, fill
from test_sets import NASTY

import ldiv_db

MIDNIGHT = datetime.datetime(2000, 1, 1)
SECRETS = ["flu", "HIV", "it's", "", "ü", "x;--"]


# -- columns: what they hold, and ways to publish a value ------------------------------------------------------


class Column:
    """A quasi-identifier: `base` are its base values in order (None last, if it holds NULL)."""

    nodes = None
    bounds = False

    def place(self, value):
        return self.base.index(self.leaf(value))

    def leaf(self, value):
        return value

    @property
    def null(self):
        return self.base[-1] is None

    def everything(self):
        return oracle.Cell(frozenset(range(len(self.base))), (Fraction(1), Fraction(1)))

    def nothing(self):
        """NULL: its own value where the source has it, else everything."""
        return oracle.Cell(frozenset({len(self.base) - 1})) if self.null else self.everything()


class TreeColumn(Column):
    """A column with a tree of labels, some of which look like what they are not."""

    type = "VARCHAR"

    def __init__(self, draw, name, rows, folder):
        tree = draw.choice([*TREES, nasty_tree(draw)])
        (folder / f"{name}.json").write_text(json.dumps(tree, ensure_ascii=False), encoding="utf-8")
        self.spans, leaves = {}, []
        walk(tree, self.spans, leaves)
        params = draw.choice([0, 0, 0.3])
        self.rows = [None if draw.random() < params else draw.choice(leaves) for _ in range(rows)]
        self.base = leaves + [None] * (None in self.rows)
        if None in self.rows:
            root = next(iter(tree))
            above = {"*": (0, len(leaves))}
            self.spans = {**self.spans, **above} if root == "*" and tree[root] else {**above, **self.spans}
        self.nodes = list(self.spans.values()) + [(len(leaves), len(leaves))] * self.null
        self.entry = {"taxonomy": {"file": f"{name}.json"}}
        self.sets = draw.random() < 0.5
        if self.sets:
            self.entry["recode"] = "set"

    def publish(self, draw, value):
        way = draw.random()
        if way < 0.15:
            return "*", self.everything() if len(self.base) > 1 else oracle.Cell(frozenset({0}))
        if way < 0.2 or value is None:
            return None, self.nothing() if len(self.base) > 1 else oracle.Cell(frozenset({0}))
        some = [self._label(draw, value if way < 0.95 else draw.choice(self.base[:-1] or self.base))]
        if way > 0.6:
            some += [self._label(draw, draw.choice(self.base)) for _ in range(draw.randint(0, 3))]
            draw.shuffle(some)
            members = [label for label in some if label != "*"]  # * is not a member that we write
            if members:
                covers = set().union(*(self._covers(label) for label in members))
                return written(members, draw), oracle.tree_cell(covers, len(self.base))
        (label,) = some[:1]
        if label is None:
            return None, self.nothing()
        text = written([label], draw) if label.startswith("{") and self.sets else label
        return text, oracle.tree_cell(self._covers(label), len(self.base))

    def _label(self, draw, value):
        """The label of a leaf or of a node above it; None is NULL."""
        if value is None:
            return None
        place = self.base.index(value)
        above = [label for label, (low, high) in self.spans.items() if low <= place <= high]
        return draw.choice([value, *above])

    def _covers(self, label):
        low, high = (len(self.base) - 1,) * 2 if label is None else self.spans[label]
        return range(low, high + 1)


def nasty_tree(draw):
    """A tree of labels that a careless way of reading would confuse; a label is one thing alone."""
    labels = draw.sample([label for label in NASTY if label != "*"], 12)
    inner, leaves = labels[:3], labels[3:]
    return {"*": {label: {leaf: {} for leaf in leaves[i * 3 : i * 3 + 3]} for i, label in enumerate(inner)}}


def walk(tree, spans, leaves):
    for label, below in tree.items():
        first = len(leaves)
        spans[label] = None  # in the order of the tree
        if below:
            walk(below, spans, leaves)
        else:
            leaves.append(label)
        spans[label] = (first, len(leaves) - 1)


def written(members, draw):
    """A set as the README has it."""
    texts = []
    for label in members:
        plain = (
            label not in ("", "NULL")
            and label is not None
            and label.strip(" ") == label
            and not set(label) & set(',"{}')
        )
        texts.append("NULL" if label is None else label if plain else '"' + label.replace('"', '""') + '"')
    return "{" + draw.choice([", ", ", ", ","]).join(texts) + "}"


class NumberColumn(Column):
    """Numbers or times without a tree."""

    def __init__(self, draw, name, rows, folder):
        kinds = {
            "integer": ("INTEGER", lambda: draw.randint(-5, 9)),
            "wide": ("BIGINT", lambda: draw.choice([-(10**12), 3, 10**15, 10**15 + 1])),
            "double": ("DOUBLE", lambda: draw.choice([-1.5, 0.0, 1e-7, 0.25, 2.0, 1e20])),
            "float": ("FLOAT", lambda: draw.choice([-1.5, 0.5, 8.25, 3.0])),
            "constant": ("DECIMAL(8, 2)", lambda: 7),
            "date": ("DATE", lambda: datetime.date(1999, 12, 20) + datetime.timedelta(days=draw.randint(0, 25))),
            "timestamp": ("TIMESTAMP", lambda: MIDNIGHT + draw.randint(0, 9) * datetime.timedelta(hours=7)),
        }  # fmt: skip
        self.kind = draw.choice(list(kinds))
        self.type, self.make = kinds[self.kind]
        params = draw.choice([0, 0, 0.3])
        self.rows = [None if draw.random() < params else self.make() for _ in range(rows)]
        if all(value is None for value in self.rows):
            self.rows[0] = self.make()
        self.base = sorted({value for value in self.rows if value is not None}) + [None] * (None in self.rows)
        self.numbers = [self.number(value) for value in self.base if value is not None]
        self.entry = {"numeric": True}
        self.bounds = draw.random() < 0.25

    def number(self, value):
        if isinstance(value, datetime.datetime):
            return Fraction((value - datetime.datetime(1970, 1, 1)) // datetime.timedelta(microseconds=1))
        if isinstance(value, datetime.date):
            return Fraction(value.toordinal())
        return Fraction(value)

    def publish(self, draw, value):
        if self.bounds:
            return self._as_bounds(draw, value)
        way = draw.random()
        if way < 0.15:
            return "*", self.everything()
        if value is None or way < 0.2:
            return None, self.nothing()
        if way < 0.35:
            return self._set(draw, value)
        return self._range(draw, value)

    def _pair(self, draw, value):
        other = draw.choice([value, self.make()])
        return min(value, other), max(value, other)

    def _as_bounds(self, draw, value):
        if value is None or draw.random() < 0.2:
            return (None, None), self.everything()
        low, high = self._pair(draw, value)
        return (low, high), self._covering([(low, high, True, True)])

    def _range(self, draw, value):
        low, high = self._pair(draw, value)
        if low == high and draw.random() < 0.7:
            return text_of(low), self._covering([(low, low, True, True)])
        opens, closes = draw.choice(["[", "[", "("]), draw.choice(["]", "]", ")", "["])
        if opens == "[" and closes == "]" and draw.random() < 0.2:
            return f"{text_of(low)}{draw.choice(BETWEEN)}{text_of(high)}", self._covering([(low, high, True, True)])
        text = f"{opens}{text_of(low)}{draw.choice([*BETWEEN, ', '])}{text_of(high)}{closes}"
        return text, self._covering([(low, high, opens == "[", closes == "]")])

    def _set(self, draw, value):
        pieces = [self._pair(draw, value)] + [(number, number) for number in [self.make()] * draw.randint(0, 1)]
        null = self.null and draw.random() < 0.3
        between = draw.choice(BETWEEN)
        texts = [text_of(low) if low == high else range_of(low, high, between) for low, high in pieces]
        cell = self._covering([(low, high, True, True) for low, high in pieces])
        if null:
            cell = oracle.Cell(cell.covers | {len(self.base) - 1}, (Fraction(1), Fraction(1)))
        return "{" + ", ".join(texts + ["NULL"] * null) + "}", cell

    def _covering(self, spans):
        """The cell of ranges (low, high, closed below, closed above)."""
        covers = {
            i for i, value in enumerate(self.base) for low, high, from_low, to_high in spans
            if value is not None and (low < value or (low == value and from_low))
            and (value < high or (value == high and to_high))
        }  # fmt: skip
        lows, highs = [self.number(span[0]) for span in spans], [self.number(span[1]) for span in spans]
        return oracle.number_cell(min(lows), max(highs), self.numbers, covers)


def text_of(value):
    return str(value)


#: What stands between the ends of a range, and what did in older releases.
BETWEEN = (" .. ", "-")


def range_of(low, high, between):
    return f"[{low}{between}{high}]"


class RangesColumn(Column):
    """Whole numbers with nested ranges as their tree; ranges of any bounds are read as the leaves that they touch."""

    type = "INTEGER"

    def __init__(self, draw, name, rows, folder):
        self.rows = [draw.randint(-10, 17) for _ in range(rows)]
        self.base = list(range(min(self.rows) // 5, max(self.rows) // 5 + 1))
        self.entry = {"taxonomy": {"ranges": [5, 10]}}
        pairs = {}
        for place, leaf in enumerate(self.base):
            low, high = pairs.get(leaf // 2, (place, place))
            pairs[leaf // 2] = (min(low, place), max(high, place))
        self.nodes = [(0, len(self.base) - 1), *pairs.values(), *((i, i) for i in range(len(self.base)))]

    def leaf(self, value):
        return value // 5

    def publish(self, draw, value):
        low, high = sorted([value, draw.choice([value, draw.randint(-12, 20)])])
        way, between = draw.random(), draw.choice(BETWEEN)
        if way < 0.1:
            return "*", oracle.tree_cell(range(len(self.base)), len(self.base))
        if way < 0.3:
            return str(value), oracle.tree_cell([self.place(value)], len(self.base))
        if way < 0.5:
            first = value // 5 * 5
            return range_of(first, first + 4, between), oracle.tree_cell([self.place(value)], len(self.base))
        covers = [i for i, leaf in enumerate(self.base) if leaf * 5 <= high and leaf * 5 + 5 > low]
        if (low, high) in [(leaf * 10, leaf * 10 + 9) for leaf in range(-3, 4)]:
            covers = [i for i, leaf in enumerate(self.base) if leaf // 2 == low // 10]
        return range_of(low, high, between), oracle.tree_cell(covers, len(self.base))


# -- tables ------------------------------------------------------------------------------------------------------


class Case:
    """A source, and a table published by someone, with what the oracle knows of every cell."""

    def __init__(self, draw, con, folder):
        rows = draw.randint(2, 14)
        kinds = [TreeColumn, NumberColumn, NumberColumn, RangesColumn]
        self.columns = [draw.choice(kinds)(draw, f"q{i}", rows, folder) for i in range(draw.randint(1, 3))]
        params = draw.choice([0, 0, 0.2])
        self.seed = draw.randint(0, 9)
        secrets = [None if draw.random() < params else draw.choice(SECRETS) for _ in range(rows)]
        self.base = self._in_seeded_order(secrets)
        self.source = [(*(column.place(column.rows[i]) for column in self.columns), self.base.index(secrets[i]))
                       for i in range(rows)]  # fmt: skip
        fill(con, "source", {f"q{i}": column.type for i, column in enumerate(self.columns)} | {"secret": "VARCHAR"},
             list(zip(*(column.rows for column in self.columns), secrets, strict=True)))  # fmt: skip
        self._publish(draw, con, rows, secrets)
        self.weights = [draw.choice([1, 1, 0.5, 0]) for _ in self.columns]
        self.qi = {f"q{i}": {**column.entry, "weight": weight}
                   for i, (column, weight) in enumerate(zip(self.columns, self.weights, strict=True))}  # fmt: skip

    def _in_seeded_order(self, secrets):
        """Sensitive values in the order of md5 of seed and value (of NULL, of nothing)."""
        key = lambda value: hashlib.md5(f"{self.seed}:{value or ''}".encode()).hexdigest()  # noqa: E731
        return sorted(set(secrets), key=lambda value: (key(value), value is None, value or ""))

    def _secret(self, draw, value):
        """What is published for a sensitive value: most often itself."""
        way = draw.random()
        everything = oracle.Cell(frozenset(range(len(self.base))))
        if way < 0.08:
            return "*", everything
        if way < 0.16 and None not in self.base:
            return None, everything
        if way < 0.2:
            return "unheard of", oracle.Cell(frozenset())
        return value, oracle.Cell(frozenset({self.base.index(value)}))

    def _publish(self, draw, con, rows, secrets):
        self.texts, self.cells, self.labels = [], [], []
        for _ in range(draw.randint(0, rows + 1)):
            i = draw.randrange(rows)
            if self.texts and draw.random() < 0.5:
                again = draw.randrange(len(self.texts))
                texts, cells = self.texts[again][:-1], self.cells[again][:-1]
            else:
                pairs = [column.publish(draw, column.rows[i]) for column in self.columns]
                texts, cells = [text for text, _ in pairs], [cell for _, cell in pairs]
            secret, cell = self._secret(draw, secrets[i])
            self.texts.append([*texts, secret])
            self.cells.append([*cells, cell])
            self.labels.append(draw.choice(["yes", "no", None]))
        types, values = {}, [[] for _ in self.texts]
        for i, column in enumerate(self.columns):
            types |= {f"q{i}_min": column.type, f"q{i}_max": column.type} if column.bounds else {f"q{i}": "VARCHAR"}
            for line, texts in zip(values, self.texts, strict=True):
                line.extend(texts[i] if column.bounds else [texts[i]])
        lines = [(*line, texts[-1], label) for line, texts, label in zip(values, self.texts, self.labels, strict=True)]
        fill(con, "published", {**types, "secret": "VARCHAR", "label": "VARCHAR"}, draw.sample(lines, len(lines)))

    def classes(self):
        """The places of the rows of each class."""
        found = {}
        for place, texts in enumerate(self.texts):
            found.setdefault(tuple(map(str, texts[:-1])), []).append(place)
        return list(found.values())

    @property
    def domains(self):
        found = [(column.nodes, len(column.base), column.null) for column in self.columns]
        return [*found, (None, len(self.base), False)]


def near(found, expected):
    return found == pytest.approx(float(expected), rel=1e-6, abs=1e-6)


def verify(case, con, folder):
    found = ldiv_db.measure(
        con, "published", source="source", qi=case.qi, sensitive="secret", folder=folder, l=2,
        class_label="label", queries=12, seed=case.seed,
    )  # fmt: skip
    rows, classes = len(case.source), case.classes()
    keys = [cells[:-1] for cells in case.cells]
    expected = oracle.published_loss(keys, case.weights, rows, [len(places) for places in classes])
    for measure, value in expected.items():
        assert near(getattr(found.loss, measure), value), measure
    assert found.loss.dm == expected["dm"] and found.loss.stars == expected["stars"]
    assert (found.rows_in, found.loss.rows_published) == (rows, len(case.texts))
    assert found.loss.rows_suppressed == max(0, rows - len(case.texts))
    assert found.rows_added == max(0, len(case.texts) - rows)
    assert found.loss.classes == len(classes)
    if classes:
        assert near(found.loss.cavg(2), oracle.average_class_size(list(map(len, classes)), 2))
    for place, told in enumerate(found.loss.precision):
        expected = oracle.precision([row[place] for row in keys], rows)
        found_ = (told.exact, told.told, told.half, told.nine_tenths)
        assert all(map(near, found_, expected)), (found_, expected)
    labels = [[case.labels[place] for place in places] for places in classes]
    assert found.cm == oracle.classification(labels, found.loss.rows_suppressed)
    everything = [texts[-1] in (None, "*") and texts[-1] not in case.base for texts in case.texts]
    assert found.loss.cells_suppressed == sum(everything)
    sizes = [size for _, size, _ in case.domains]
    kl = oracle.divergence(case.source, case.cells, sizes)
    assert (found.loss.kl is None) == (kl is None) and (kl is None or near(found.loss.kl, kl))
    distinct = [row for row in case.source if not any(oracle.covers(cells, row) for cells in case.cells)]
    assert found.rows_uncovered == len(distinct)
    assert found.rows_unmatched == sum(not any(oracle.covers(c, row) for row in case.source) for c in case.cells)
    errors = oracle.query_errors(case.source, case.cells, case.domains, len(case.columns), 12, case.seed)
    assert near(found.queries.mean_relative_error, statistics.mean(errors))
    assert near(found.queries.median_relative_error, statistics.median(errors))
    assert near(found.queries.nine_tenths_relative_error, sorted(errors)[10])  # the 11th of 12
    keys, of_two = len(case.columns), []
    for place in range(keys):
        pair = [[(row[place], row[-1]) for row in table] for table in (case.source, case.cells, [case.domains])]
        of_two += oracle.query_errors(*pair[:2], pair[2][0], 1, -(-100 // keys), case.seed + place)
    counts = found.loss.counts
    assert counts.queries == len(of_two) >= 100 and near(counts.median, statistics.median(of_two))
    assert near(counts.nine_tenths, sorted(of_two)[math.ceil(0.9 * len(of_two)) - 1])


@search(3, draw=draws)
def test_every_kind_of_published_value_agrees_with_the_oracle(draw):
    with duckdb.connect(config={"threads": 1}) as con, tempfile.TemporaryDirectory() as folder:
        verify(Case(draw, con, Path(folder)), con, Path(folder))


@pytest.mark.slow
def test_of_many_columns_counts_ask_about_some(con):
    names = [f"c{number}" for number in range(30)]
    listed = ", ".join(f"i * {number + 3} % 7 AS {name}" for number, name in enumerate(names))
    con.execute(f"CREATE TABLE wide AS SELECT {listed}, i % 3 AS s FROM range(24) AS t(i)")
    policy = {
        "source": "wide", "target": "released", "quasi_identifiers": {name: {"numeric": True} for name in names},
        "sensitive": ["s"], "require": [{"k": 4}], "algorithm": "mondrian", "seed": 1,
    }  # fmt: skip
    published = ldiv_db.run(con, policy).loss.counts
    assert published.queries == 15 * 7  # every other one is asked about, at least a hundred times in all
    assert ldiv_db.measure(con, "released", policy=policy).loss.counts == published
