"""`python -m tests.benchmarks.counts`: noise does what closed forms say, and counts lie within their bounds."""

from __future__ import annotations

import math
from statistics import NormalDist
from typing import Any

import pytest

from tests.benchmarks.counts import LABELS, noises, quantile


@pytest.mark.parametrize("share", [0.5, 0.9])
def test_noise_is_off_as_its_distribution_says(share: float) -> None:
    each, together, pac = noises(1000).values()
    assert quantile([40], each, share) == pytest.approx(-math.log(1 - share) / 40)
    assert quantile([40], together, share) == pytest.approx(-math.log(1 - share) * 1000 / 40)
    # Half of 40 people, doubled, have a variance of 40, and the noise has 64 times that.
    assert quantile([40], pac, share) == pytest.approx(NormalDist(0, math.sqrt(65 * 40)).inv_cdf((1 + share) / 2) / 40)
    mixed = quantile([10, 1000], each, share)
    assert (each(mixed * 10, 10) + each(mixed * 1000, 1000)) / 2 == pytest.approx(share)


@pytest.mark.slow
def test_answers_lie_within_their_bounds(bench: Any) -> None:
    found = bench("counts", "--questions", 3, "--rows", 300, "--json").json["results"]
    assert [one["answers"] for one in found] == [*LABELS, *noises(3)]
    assert all(one["outside"] == 0 and one["lm_mean"] > 0 for one in found[: len(LABELS)])
    assert all(0 <= one["half"] <= one["nine_in_ten"] for one in found)
