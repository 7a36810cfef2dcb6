"""What is known of a kind of requirement, whatever its parameters are."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from ldiv_db.requirements.histogram import OnPeople


class RequirementTraits:
    """The traits of a kind of requirement, each true of few; what follows from them is asked of these alone."""

    #: The requirement whose template measures it, if it has none of its own.
    measured_as: ClassVar[str] = ""
    #: What figure a class reaches; of several conditions that of one, while the margin is that of the worst.
    reaches: ClassVar[str]
    #: True if the class that reaches the most is the worst: shares, ratios and distances.
    most_is_worst: ClassVar[bool] = False

    #: True if the union of two good classes is good: then the whole table as one class is the best there can be.
    monotone: ClassVar[bool] = True
    #: True if a good class with any more rows is good.
    more_is_better: ClassVar[bool] = False
    #: True if classes of equal counts are alike, whatever the values are.
    counts_only: ClassVar[bool] = False
    #: True if the rows, the number of values and the rows of the most frequent one are all that it asks of a class.
    tallies_only: ClassVar[bool] = False
    #: True if nothing but the number of rows is asked for.
    rows_only: ClassVar[bool] = False
    #: True if it bounds the share of every value that is not harmless, as its promise says.
    bounds_shares: ClassVar[bool] = False
    #: True if its promise of shares is all of it; then it can be judged where some values are unknown.
    shares_only: ClassVar[bool] = False
    #: True if classes are compared with the whole table, so that rows that are left out change what is good.
    compares_with_table: ClassVar[bool] = False
    #: True if it says nothing of a person whom several classes cover.
    parts_people: ClassVar[bool] = False
    #: True if rows that are not judged count too, so that it may fail although it holds without them.
    counts_unjudged_rows: ClassVar[bool] = False
    #: True if it asks how far apart values are, so that near ones do not count as many.
    uses_distances: ClassVar[bool] = False
    #: True if it asks where values stand: numbers and times have an order and distances, texts have none.
    places_values: ClassVar[bool] = False
    #: True if l-eligible classes meet it from some l on: the one that classes of l different values do.
    met_by_eligible: ClassVar[bool] = False

    #: True if a recoding as one SELECT keeps it on rows that come later.
    kept_by_select: ClassVar[bool] = False
    #: The parameters that bound the `rows` and the `values` of a class from below.
    bounds_below: ClassVar[Mapping[str, str]] = {}

    #: True if it has a meaning where nothing is promised of some values.
    supports_harmless: ClassVar[bool] = False
    #: What it reads where people are counted in place of rows: how many of them have a value, or shares in which each
    #: weighs one. None if its definition does not carry over.
    on_people: ClassVar[OnPeople] = None
