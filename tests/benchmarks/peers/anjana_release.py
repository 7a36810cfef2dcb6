"""Publishes a case by ANJANA: python anjana_release.py CASE OUT k:5|distinct:3 SENSITIVE COLUMN...

CASE is a folder as `tests.benchmarks.cases` writes it. ANJANA recodes whole columns level by level, and may leave out a
tenth of the rows.
"""

import sys
from pathlib import Path

import pandas as pd
from anjana.anonymity import k_anonymity, l_diversity

home, out, (name, least), sensitive, *columns = (
    Path(sys.argv[1]),
    sys.argv[2],
    sys.argv[3].split(":"),
    *sys.argv[4:],
)
rows = pd.read_csv(home / f"{home.name}.csv", sep=";", dtype=str)
trees = {
    column: dict(
        pd.read_csv(home / "hierarchies" / f"{home.name}_hierarchy_{column}.csv", sep=";", header=None, dtype=str)
    )
    for column in columns
}
if name == "k":
    published = k_anonymity(rows, [], columns, int(least), 10, trees)
else:
    published = l_diversity(rows, [], columns, sensitive, 1, int(least), 10, trees)
published.to_csv(out, sep=";", index=False)
