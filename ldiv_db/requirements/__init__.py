"""Privacy requirements: what makes a class good, and the templates that measure it.

A requirement's template returns one row a class with what it `reached` and its `margin`; the class
violates exactly if the margin is negative. Decisions are made on integers or exact decimals wherever the
definition allows. Definitions: see each class's docstring.

All that is known of a requirement is in its class, which enters itself under its name in `REQUIREMENTS`; a module with
another one is imported here.
"""

from ldiv_db.requirements.base import HARMLESS, REQUIREMENTS, Requirement
from ldiv_db.requirements.closeness import BetaLikeness, DeltaDisclosure, TCloseness
from ldiv_db.requirements.diversity import DistinctL, EntropyL, KAnonymity, PSensitiveK, RecursiveCL, UniqueDistinctL
from ldiv_db.requirements.frequency import AlphaK, FrequencyL, Threshold
from ldiv_db.requirements.guarantees import Distribution
from ldiv_db.requirements.histogram import Classes, OfPeople
from ldiv_db.requirements.nearness import Proximity, Range
from ldiv_db.requirements.parameters import plain
from ldiv_db.requirements.risk import DeltaPresence, KMap, LargestRisk
from ldiv_db.requirements.spec import RequirementSpec, parse_requirement
from ldiv_db.requirements.values import ROWS_ALONE, Attribute, Categories, make_categories
from ldiv_db.requirements.verdict import Verdict, judge, promised_by
from ldiv_db.requirements.weighted import DistinctAlpha, EntropyAlpha, RecursiveAlpha

__all__ = [
    "HARMLESS",
    "REQUIREMENTS",
    "ROWS_ALONE",
    "AlphaK",
    "Attribute",
    "BetaLikeness",
    "Categories",
    "Classes",
    "DeltaDisclosure",
    "DeltaPresence",
    "DistinctAlpha",
    "DistinctL",
    "Distribution",
    "EntropyAlpha",
    "EntropyL",
    "FrequencyL",
    "KAnonymity",
    "KMap",
    "LargestRisk",
    "OfPeople",
    "PSensitiveK",
    "Proximity",
    "Range",
    "RecursiveAlpha",
    "RecursiveCL",
    "Requirement",
    "RequirementSpec",
    "TCloseness",
    "Threshold",
    "UniqueDistinctL",
    "Verdict",
    "judge",
    "make_categories",
    "parse_requirement",
    "plain",
    "promised_by",
]
