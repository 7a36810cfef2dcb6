"""Baselines: the best-known global recodings of others, which the algorithms of this package are measured by.

Guarantee of each: one cut, or one level, of a taxonomy for all rows, and every class meets every requirement.
`incognito` and `tds` take monotone requirements, and judge classes by the statements that the audit uses too
(`monotone_recoding`: `count_classes`, `list_failed`); `annealing` takes the requirements, costs and schemes of `cuts`.

`incognito` (LeFevre, DeWitt and Ramakrishnan, Incognito: Efficient Full-Domain K-Anonymity, SIGMOD 2005), the vector of
levels of least cost, exactly:

1. Count cells, combinations of leaves with their sensitive values (`Encoded.count_cells`).
2. For each subset of the quasi-identifiers, the small ones first, take the vectors that hold on all smaller subsets.
3. Judge those of the middle height (`place_codes`, `count_classes`); each answer settles all vectors
   above it or below it, until all are settled.
4. Cost the lowest vectors that hold (`sum_costs`), and publish the cheapest.

`tds` (Fung, Wang and Yu, Top-Down Specialization for Information and Privacy Preservation, ICDE 2005), a cut that
cannot be specialised on any one value:

1. Count cells as above; begin with the roots of all taxonomies.
2. Judge all values that may be specialised together (`group_cells`, `count_classes`, `find_smallest`); those that fail
   are given up.
3. Specialise the value of the best gain to the loss of anonymity; then 2 again, until none is left.

`annealing` (Kirkpatrick, Gelatt and Vecchi, Optimization by Simulated Annealing, 1983), a cheap cut without a proof:

1. Begin with the most general cut; the first neighbours' differences in cost give the temperature.
2. Draw steps ahead and work out their costs together (`cuts.evaluation`).
3. Take the first that costs less, or that chance allows at the temperature, which falls; then 2 again.
4. Publish the cheapest cut seen (`cuts.classes`).
"""
