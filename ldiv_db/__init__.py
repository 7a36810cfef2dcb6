"""ldiv_db: an in-database anonymizer for l-diversity on DuckDB."""

from ldiv_db.api import attack, check, measure, profile
from ldiv_db.attacking.attacks import Attacks
from ldiv_db.audit import Audit
from ldiv_db.errors import AuditError, DatabaseError, InfeasibleError, LdivError, PolicyError
from ldiv_db.measuring.measure import Measurement
from ldiv_db.policy import Policy, parse_policy, read_policy
from ldiv_db.profile import Profile
from ldiv_db.releasing.publish import Released, publish_release
from ldiv_db.report import Result
from ldiv_db.run import Listener, plan, run

__all__ = [
    "Attacks",
    "Audit",
    "AuditError",
    "DatabaseError",
    "InfeasibleError",
    "LdivError",
    "Listener",
    "Measurement",
    "Policy",
    "PolicyError",
    "Profile",
    "Released",
    "Result",
    "attack",
    "check",
    "measure",
    "parse_policy",
    "plan",
    "profile",
    "publish_release",
    "read_policy",
    "run",
]
