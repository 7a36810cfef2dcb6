"""`python -m tests.benchmarks.learned FOLDER`: how well a classifier learns from what others, and we, publish.

FOLDER is a checkout of github.com/fhstp/k-AnonML: Adult and Californian houses, trees, and in `paper_results` the
accuracy of XGBoost on what its Mondrian publishes under each k. Features are made as its
`baseline_with_repetitions.py` makes them: a range of numbers is its middle, `*` of numbers what is written there,
a category has a column a label, and all are scaled to 0..1 before 30 % of the rows are set apart to test on. So the
classifier is trained and tested on published rows, and their parameters are its own. The number of trees is the one
that errs least on those, as there. It needs pandas, scikit-learn and xgboost 0.90, which is theirs. `--published FILE`
learns from a table of theirs, in their form: so what they publish can be held against their figure.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import typer

from ldiv_db.database.connections import Settings, open_database
from ldiv_db.running.run import run
from ldiv_db.solving.improve import Name
from tests.benchmarks.command import AsJson, Columns, Threads, command_of, refuse_unknown, show

#: The k of the lines that are shown.
SIZES = (2, 10, 50, 100)
#: A range as they write it, and as we do.
_RANGE = re.compile(r"\[(\S+) \.\. (\S+)\]|(\d[\d.]*)[-~](\d[\d.]*)")


@dataclass(frozen=True)
class Learned:
    """A table of theirs: what is learned, and the columns that identify; numbers with what stands for `*` of them."""

    target: str
    columns: tuple[str, ...]
    numbers: Mapping[str, float]
    objective: Mapping[str, Any] = field(default_factory=dict)
    #: What XGBoost's test error is called.
    error: str = "error"


TABLES = {
    "adult": Learned(
        "salary-class",
        ("sex", "age", "race", "marital-status", "education", "native-country", "workclass", "occupation"),
        {"age": 50.5},
    ),
    "cahousing": Learned(
        "ocean_proximity",
        ("longitude", "latitude", "housing_median_age", "median_income", "median_house_value"),
        {
            "latitude": 119.33,  # these two are exchanged in their program
            "longitude": 37.245,
            "housing_median_age": 32.5,
            "median_house_value": 257500,
            "median_income": 5.2035,
        },
        {"objective": "multi:softmax", "num_class": 3},
        "merror",
    ),
}
#: Their parameters.
GROWN = {
    "learning_rate": 0.1,
    "colsample_bylevel": 0.9,
    "colsample_bytree": 0.9,
    "subsample": 0.9,
    "reg_lambda": 1.5,
    "max_depth": 5,
    "n_estimators": 100,
    "seed": 10,
}


def accuracy(table: Learned, published: Any) -> float:
    """The percentage of test rows that a classifier trained on a published frame of theirs gets right."""
    split = importlib.import_module("sklearn.model_selection").train_test_split
    scaler = importlib.import_module("sklearn.preprocessing").MinMaxScaler()
    rows = published.sort_values(by=["ID"])
    target = rows[table.target].astype("category").cat.codes
    scaled = scaler.fit_transform(features(table, rows.drop(columns=["ID", table.target])))
    train, test, train_target, test_target = split(scaled, target, test_size=0.3, random_state=42)
    model = importlib.import_module("xgboost").XGBClassifier(**GROWN, **table.objective)
    told = {"eval_set": [(test, test_target)], "eval_metric": [table.error], "early_stopping_rounds": 40}
    model.fit(train, train_target, **told, verbose=False)
    return float((model.predict(test) == test_target).mean() * 100)


def features(table: Learned, rows: Any) -> Any:
    """A column a number, then one a label of each category but its first."""
    pandas = importlib.import_module("pandas")
    numbers = {name: [_middle(str(label), star) for label in rows[name]] for name, star in table.numbers.items()}
    categories = [name for name in table.columns if name not in numbers]
    return pandas.get_dummies(rows.assign(**numbers), columns=categories, drop_first=True)


def _middle(label: str, star: float) -> float:
    ends = _RANGE.fullmatch(label)
    if ends is None:
        return star if label == "*" else float(label)
    low, high = (float(end) for end in ends.groups() if end is not None)
    return (low + high) / 2


def measure_learned(folder: Path, name: str, effort: Name = "quick", threads: int = 2) -> Iterator[dict[str, Any]]:
    """One result a k: the accuracy that they have for Mondrian, and that on ours."""
    table, theirs = TABLES[name], folder / "paper_results" / name / "mondrian" / f"{name}_mondrian_xgb_k_100.csv"
    lines = theirs.read_text(encoding="utf-8").splitlines()[1:]  # k from 2 on
    with open_database(":memory:", create=True, settings=Settings(threads)) as connection:
        data = str(folder / "datasets" / name / f"{name}.csv")
        connection.execute("CREATE TABLE original AS FROM read_csv($path, delim = ';')", {"path": data})
        headings = [one[0] for one in connection.execute("DESCRIBE original").fetchall()]
        yield {"table": name, "k": 1, "theirs": None, "ours": accuracy(table, connection.table("original").df())}
        for k in SIZES:
            document = policy_of(name, headings, k, effort)
            run(connection, document, folder / "generalization" / "hierarchies" / name)
            columns = ", ".join(f'"{name}"' for name in headings)  # theirs come in this order
            ours = accuracy(table, connection.execute(f"SELECT {columns} FROM published").df())
            yield {"table": name, "k": k, "theirs": float(lines[k - 2].split(",")[0]), "ours": ours}


def policy_of(name: str, headings: Sequence[str], k: int, effort: Name) -> dict[str, Any]:
    """The policy on their columns and trees; numbers in any interval."""
    table = TABLES[name]
    trees = {one: {"taxonomy": {"file": f"{name}_hierarchy_{one}.csv"}} for one in table.columns}
    told = {table.target, *table.columns}
    return {
        "source": "original",
        "quasi_identifiers": trees | {one: {"numeric": True} for one in table.numbers},
        "sensitive": [table.target],
        "keep": [one for one in headings if one not in told],
        "require": [{"k": k}],
        "target": {"table": "published", "if_exists": "replace"},
        "algorithm": {"name": "auto", "effort": effort},
        "seed": 1,
    }


_TABLE: Columns = {
    "table": "{table}",
    "k": "{k}",
    "theirs": lambda one: "" if one["theirs"] is None else f"{one['theirs']:.1f}",
    "ours": "{ours:.1f}",
}


def learned(
    folder: Annotated[Path, typer.Argument(help="A checkout of github.com/fhstp/k-AnonML.")],
    table: Annotated[list[str] | None, typer.Option(help=f"Of {', '.join(TABLES)}; may be repeated.")] = None,
    effort: Annotated[Name, typer.Option(help="Of auto.")] = "quick",
    published: Annotated[Path | None, typer.Option(help="Also learn from a table that others publish.")] = None,
    threads: Threads = 2,
    json: AsJson = False,
) -> None:
    """Measure how well XGBoost learns from published rows, beside the accuracy that others published."""
    refuse_unknown("--table", table or (), list(TABLES))
    if not (folder / "paper_results").is_dir():
        raise typer.BadParameter("has no folder paper_results", param_hint="FOLDER")
    if published:
        frame = importlib.import_module("pandas").read_csv(published, sep=";")
        typer.echo(f"{accuracy(TABLES[(table or ['adult'])[0]], frame):.4f}")
        return
    found = [one for name in table or TABLES for one in measure_learned(folder, name, effort, threads)]
    show("Accuracy of XGBoost, in percent", json, found, _TABLE)


app = command_of(learned)

if __name__ == "__main__":
    app(prog_name="python -m tests.benchmarks.learned")
