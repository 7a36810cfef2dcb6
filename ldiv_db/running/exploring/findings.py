"""What an exploration comes to, in sentences that the screen and the page share."""

from __future__ import annotations

from collections.abc import Iterator

from ldiv_db.running.exploring.outcomes import Exploration


def findings(found: Exploration) -> Iterator[str]:
    """What to read in the table, and what its figures hold for."""
    if found.done:
        best = f"{len(found.frontier):,} of {len(found.done):,} are on the frontier (*)"
        yield f"{best}: no other loses less without telling more"
    for name, before, after in found.costs[:1]:
        if after < before:
            yield f"without {name} the mean LM of the other columns falls most, from {before:.4f} to {after:.4f}"
    if not found.seed_is_written:
        yield "the policy has no seed: a run draws its own, and its figures differ a little"
    if found.interrupted:
        left = sum(outcome.status == "interrupted" for outcome in found.outcomes)
        yield f"interrupted: {left:,} of {len(found.outcomes):,} variants were not come to"
