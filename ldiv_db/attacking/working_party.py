"""The three risks of the Article 29 Working Party (Opinion 05/2014, WP216): singling out, linkability, inference."""

from __future__ import annotations

from ldiv_db.attacking.disclosure import Attack
from ldiv_db.attacking.inference import inference
from ldiv_db.attacking.linkability import linkability, parts_of
from ldiv_db.attacking.singling_out import singling_out
from ldiv_db.attacking.trials import Released, Trial, people_of
from ldiv_db.database.templates import Relation


def try_attacks(released: Released, trial: Trial, histograms: dict[str, Relation]) -> list[Attack]:
    """The attacks on the people of a trial, by the histogram (class_no, value, rows) of each sensitive attribute.

    Raises PolicyError for columns that people lack, and for parts to be linked that are none.
    """
    people = people_of(released, trial, list(histograms))
    parts = parts_of(people)
    with released.engine.scope():
        attacks = singling_out(people, histograms)
        drawn = people.drawn(trial.tries, trial.tries)
        attacks += [linkability(people, drawn, parts)] if parts else []
        return attacks + inference(people, drawn, histograms)
