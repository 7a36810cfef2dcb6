"""Publishes a case by anonypyx: python anonypyx_release.py CASE OUT k:5|distinct:3 SENSITIVE COLUMN... NUMBER=...

CASE is a folder as `tests.benchmarks.cases` writes it; NUMBER= are columns of numbers, published in any interval. Other
columns have sets, which it writes `a,b`: here they stand in braces.
"""

import sys
from pathlib import Path

import anonypyx
import pandas as pd

home, out, (name, least), sensitive, *asked = Path(sys.argv[1]), sys.argv[2], sys.argv[3].split(":"), *sys.argv[4:]
columns = [one.rstrip("=") for one in asked]
rows = pd.read_csv(home / f"{home.name}.csv", sep=";")[["ID", *columns, sensitive]]
categories = [one for one in asked if not one.endswith("=")]
for column in (*categories, sensitive):
    rows[column] = rows[column].astype(str).astype("category")
model = {"k": int(least)} if name == "k" else {"k": 1, "l": int(least)}
published = anonypyx.Anonymiser(
    rows,
    **model,
    algorithm="Mondrian",
    feature_columns=columns,
    sensitive_column=sensitive,
    generalisation_strategy="human-readable",
).anonymise()
for column in categories:
    published[column] = [f"{{{label.replace(',', ', ')}}}" if "," in label else label for label in published[column]]
published.to_csv(out, sep=";", index=False)
