"""TP and its kin: suppress quasi-identifiers of few rows, with a worst-case guarantee.

Xiao, Yi, Tao, The Hardness and Approximation Algorithms for L-Diversity (EDBT 2010).

Guarantee: every class is l-eligible, no sensitive value being in more than 1/l of its rows (`eligibility`). To remove
the fewest rows is NP-hard for l > 2. `tp` removes the fewest if phase one ends it, at most l - 1 more if phase two
does, always for l = 2, and at most l times as many in any case; its stars are at most l d times the fewest for d
quasi-identifiers. `tp_plus` never has more stars, and those of `matching` are the fewest; `hilbert` bounds none.

Steps, as `tp` takes them; `coarsen: auto` tries several levels, each by all of them:

1. `eligible_l`: whether no value is too frequent in the whole table; `coarsen`: codes raised to their levels.
2. `Encoded.count_cells`: rows that agree on all quasi-identifiers are a QI-group, counted by sensitive value.
3. `three_phases`: rows are removed from the groups until these and the removed rows are l-eligible (`keep_cores`; then
   `list_alive`, `offer_rows`, `take_pillars`; then `list_pillars`, `choose_group`, `take_cover`).
4. `assign_rows`: what is left of a group is a class, the removed rows are class 0; `tp_plus` cuts these into classes.
5. `widen_bounds`: a class is published with a star wherever its rows differ, or with what covers them.

`hilbert` takes in place of 2 to 4 the whole table in the order of a space-filling curve, cut into classes
(`scale_codes`, `turn_cubes`, `order_points`; then `bisect` and `incorporate` of `bsgi`). `matching`, for two
sensitive values and l = 2, keeps cores and pairs the other rows off by a flow of least cost between QI-groups
(`list_surplus`, `pair_rows`).
"""
