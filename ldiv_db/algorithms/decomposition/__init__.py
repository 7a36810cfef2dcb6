"""Decomposition: quasi-identifiers and sensitive values in tables of their own, joined by groups, over releases.

Ye et al., Decomposition: Privacy Preservation for Multiple Sensitive Attributes (DASFAA 2009); Das and Bhattacharyya,
Decomposition+ (2012); Xiao and Tao, Anatomy (VLDB 2006), for one sensitive attribute.

Guarantee: of no attribute does a value stand in more than 1/l_i of a group's rows, so each has l_i values at least; and
how groups were formed tells nothing more (`grouping` has the proof, and what it does not cover).

Steps, as `make_groups` (`steps`) takes them on the rows that `encode` has numbered:

1. `steps.with_links`: which values of each attribute occur with which primary value.
2. `grouping.deal`: rows that have no group come in an order of coins, without what people are known by (`deal_rows`).
3. `grouping.seat_rows`: each group takes a row from each of l buckets of primary values (largest-l).
4. `grouping.exchange`: rows of equal primary value change groups as long as that lowers the diversity penalty
   (`list_crowded`, `rank_exchanges`, `regroup_rows`).
5. `steps.release_refused`: groups for which there is not noise enough are given up (`list_refused`).
6. `steps.place_starved`: rows that have waited too long join groups of this release (`list_openings`, `regroup_rows`);
   in `decomposition` and `anatomy`, which keep no row back for that, all rows left over do.
7. `steps.add_noise`: values that stand too often in a group become others (`list_surplus`, `list_linkable`,
   `choose_noise`), and `apply_noise` gives the codes that are published.
"""
