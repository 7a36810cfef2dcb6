"""Cuts: the provably best full-subtree generalisation under any requirements that survive the union of classes.

Liu and Wang, On Optimal Anonymization for l+-Diversity (ICDE 2010; the paper's l+-Optimize), for thresholds on the
shares of sensitive values.

A solution is one cut through each quasi-identifier's taxonomy; every value is published as its ancestor in the cut.
Numbers without a taxonomy have all partitions of their values into intervals as cuts (`intervals`). The rows that are
published alike are a partition, of which no sensitive value s may have more than theta_s, or which must meet what else
is required. What a violating partition loses is the scheme's: nothing, for it is not allowed (`none`), or all rows
(`allRec`); of thresholds also the violating values (`vioSA`), all its sensitive values (`allSA`), or the fewest rows
(`vioRec`).

Guarantee: every class that is published meets what is required; and of all cuts it is one of the `top` that cost least
by the metric (LM, DM, CM), with a proof, as the search has covered all the others by bounds. A search that is stopped
publishes the best cut so far, with the gap to the bound, only if the policy says so.

Steps, as `cuts` takes them:

1. `problem`: thresholds by code, or whose counts are judged (`judged`), and the table of cells, combinations of leaves
   with their counts (`Encoded.count_cells`, `spread_cells`), several counts to a column.
2. The most general cut is offered, so that there is one whenever the search is stopped, or a good one that `descend`
   finds (`evaluation`).
3. `boxes`: what every partition costs that any cut may have (`key_cells`, `generalise_boxes`, `cost_boxes`, or, where
   requirements judge equal counts once, `list_alike`, `spread_counts`, `cost_judged`). A sample tells whether they are
   too many (`sample_keys`, `count_sample`). Numbers have their intervals as boxes (`count_spans`, `span_boxes`).
4. `branch_and_bound`: whole cuts, some quasi-identifiers at a time, the others being recoded locally for a bound
   (`sum_cuts`, `gather_boxes`, `raise_boxes`), of numbers by the best division (`start_division`, `divide_boxes`,
   `end_division`).
5. `search`: where boxes are too many, neighbouring numbers are put together, and what that may lose is bounded; of
   taxonomies the cut found before is all there is.
6. `Evaluator.publish`: the partitions of the cut chosen as classes, less what the scheme suppresses (`number_parts`,
   `assign_rows`, `bound_classes`, `list_blanked`).
"""
