"""Auto: the algorithm that suits a table and its requirements, found by trial; it makes no classes of its own.

Guarantee: what it publishes meets every requirement, as that of the algorithm which made it. A policy that one of its
candidates can meet with all rows is met with all rows.

1. List the candidates in order of promise (`candidates`); those that the counts rule out are out.
2. Run them in that order, as many as the budget of work allows, and more as long as none has published all rows.
   Of many rows a sample is tried (`sample`), and the best of that is run.
3. Measure what each would lose as it would be published, and keep what comes near the least (`trials`).
4. Split neighbouring classes of that anew where that loses less (`neighbours.resplit`), let rows flow to classes that
   cost less (`neighbours.flows`; both on small tables), exchange and move rows between them (`neighbours.moves`),
   whoever made them; take the least.

`from_counts` is the first that suits, by rule, where the source only counts its rows.
`fast` is the quickest candidate that can meet the policy, without trials.
"""
