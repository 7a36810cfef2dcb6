"""Division: a table beyond one machine's memory, or worth several cores, in parts that are solved by themselves.

1. `division` splits nodes by counts until no part has more than `part_rows` rows; each part keeps what makes it
   solvable.
2. Each part is a task of its own (`parts`), compared with the whole table where requirements ask for that.
3. `workers` solves the parts, in this process or by several; their classes together are the plan.

The division depends on rows and `part_rows` alone, never on how many workers there are.
"""
