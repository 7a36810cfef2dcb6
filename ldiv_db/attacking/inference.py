"""Inference: the sensitive value of somebody whose quasi-identifiers are known is guessed.

The guess is the most frequent value among the rows of all classes that cover the person; whom no class covers gets
the most frequent value of the release. It is right if it is the person's own value (Anonymeter's inference attack
takes the value of the nearest row in its place, and of numbers one that differs by 5 % for right). The random guess
is the value of a row of the release drawn at random.

Nothing is promised, not even where the shares of values in classes are bounded: people of one class may fit other
classes as well, each other ones, and all be guessed right. And what succeeds on a control as often as on targets
tells what the release says of people, not of those in it.
"""

from __future__ import annotations

from ldiv_db.attacking.disclosure import Attack
from ldiv_db.attacking.estimates import Tried, tried_attack
from ldiv_db.attacking.matching import matched
from ldiv_db.attacking.trials import People, Secret, drawn_rows, tried_on
from ldiv_db.database.templates import Relation


def inference(people: People, drawn: Relation, histograms: dict[str, Relation]) -> list[Attack]:
    """The attack on each sensitive attribute, by its histogram (class_no, value, rows), on `drawn` people."""
    engine, classes = people.released.engine, people.released.classes
    attacks = []
    with matched(engine, classes, people.axes, drawn, people.released.budget) as matches, engine.scope():
        placed = people.placed(drawn, matches.cells, people.axes)
        tried = engine.count(placed), engine.count(drawn)
        for secret in people.secrets:
            histogram = histograms[secret.name]
            guesses = engine.materialise(
                "guesses",
                "attacking/inference/guess_values",
                cells=matches.cells,
                matches=matches.pairs,
                histogram=histogram,
            )
            holes = {"people": placed, "secret": secret.alias}
            pair = tried_on(engine.rows("attacking/inference/count_right", guesses=guesses, **holes))
            measure = "share of guesses right"
            attack = tried_attack(
                "inference",
                secret.name,
                measure,
                pair[0],
                _guessed(people, placed, histogram, secret),
                None if people.control is None else pair,
            )
            attacks.append(attack.with_untried("people", *tried))
    return attacks


def _guessed(people: People, placed: Relation, histogram: Relation, secret: Secret) -> Tried:
    """What random guesses get right."""
    engine, tries = people.released.engine, min(people.trial.tries, people.targets)
    with drawn_rows(people.released, people.trial, tries) as draws:
        holes = {"people": placed, "draws": draws, "histogram": histogram, "secret": secret.alias}
        return Tried(**engine.record("attacking/inference/count_random", **holes))
