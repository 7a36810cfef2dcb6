"""BSGI: classes of rows whose sensitive values all differ.

Ye et al., BSGI: An Effective Algorithm towards Stronger l-Diversity.

Guarantee: every class is unique distinct l-diverse (Definition 2), and there are as many classes as there can be
(Theorem 1); with several sensitive attributes, or several rows of an individual, their number may fall short.

Steps, as `bsgi` takes them:

1. `eligibility.check_counts`: whether counts allow it, how many classes there are, how many rows of each sensitive
   value they take.
2. `trim_codes`: where several keys count, the rows without what is too much of any value.
3. Select, in one of three ways: `bisection.split` (`refine`) splits the table where values part; `bisection.bisect`
   halves it; `selection` (`greedy`) is the paper's procedure (Figure 2), one class after the other.
4. `neighbours.exchange`, after `refine`: classes near each other change rows where that lowers the loss.
5. `repair`, where several keys count: rows that agree on one are exchanged away; then 2, 3 and 5 again for the rows
   left over, as long as that makes classes.
6. `selection.incorporate` (Figure 3): rows left over join the class that loses least by it, or are suppressed.
"""
