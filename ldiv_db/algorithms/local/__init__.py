"""Local recoding for any list of monotone requirements: equal values may be published differently in different classes.

Guarantee of each: every class meets every requirement. A requirement is monotone if the union of two classes that meet
it meets it; `class_checker` checks candidates by the statements that the audit uses too, many to a statement. What
is not monotone is kept by checking every class that is made, or nothing is found.

`topdown` (Algorithm 1 of the (l,alpha) paper), a round for all nodes at once:

1. Part each node along every quasi-identifier into the children of its lowest common ancestor, or halves of a range.
2. Give the fewest rows back where what stays in the node would violate a requirement.
3. Choose the split that saves most; nodes without one are tried part by part.
4. Settle the rows of nodes that cannot be split, move the others into their parts.

`mondrian` (LeFevre, DeWitt and Ramakrishnan, Mondrian Multidimensional K-Anonymity), a level for all nodes at once:

1. Choose each node's widest quasi-identifier with two good sides at its median.
2. Settle the rows of nodes that have none, split the others.

`peel` (ours):

1. List the vectors of generalisation levels in rising order of cost (`hierarchies`).
2. Peel off, by the cheapest vectors first, the rows that stand in good classes.
3. Have the rows that are left join classes that can bear them (`Absorption`).
4. Where rows are left out, check the classes against the table as it is published, and settle those that fail.
5. Exchange and move rows between classes near each other (`neighbours.trades`).

`stratified` (ours, after BUREL's ECTree), a round for all nodes at once (`stratified`):

1. Place the rows of each sensitive value along every quasi-identifier, and list the cuts to try.
2. Mix, for each cut, where rows stand with the shares of their node, and judge both sides of every mix.
3. Choose the cut that loses least; settle the rows of nodes that have none, move the others.
4. In the end put classes near each other together, and cut them anew (`SPLITS`).

`outliers`, after any of them and after `bsgi`, where the policy has a budget of rows left out: rows leave classes that
lose so much less without them that it pays.
"""
