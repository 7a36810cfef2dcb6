"""Neighbours: classes near each other change rows, to lose less or to differ where they must.

Guarantee: what the classes met before they meet afterwards, and no step raises the cost that it looks at.

- `exchange`: classes of exactly l different values exchange a row for a row where that lowers the cost (after `bsgi`).
- `trades`: classes of any size exchange rows, or one gives a row to the other, where both stay good (after
  `local.peel`, and what `auto` takes); before that, on small tables, rows flow to classes that cost less and stay as
  they are with them.
- `regroup`: two near classes become one, which is parted around one of its rows where that costs less (what `auto`
  takes, on small tables).
- `resplit`: two classes become one, which is split by its own rows (after `local.stratified`).
- `repair`: rows of a class that agree on a key change places with rows of other classes; what is left in conflict is
  given up (within `bsgi`, where several keys count).

A round of each: sort the classes so that neighbours are near; pair them, or take windows of them; try all changes
within; carry out the best that touch different classes. `passes` has the state of classes that a round works on, how
trades are judged and chosen, the orders, and when to stop.
"""
