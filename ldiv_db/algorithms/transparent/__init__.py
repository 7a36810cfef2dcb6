"""Transparent: classes that tell no more to who knows how they were made.

Xiao, Tao and Koudas, Transparent Anonymization: Thwarting Adversaries Who Know the Algorithm (TODS 2010); the layout,
and classes by splits and exchanges, are ours. For families whose classes have rows of different values (`bsgi`).

Guarantee: who knows everybody's quasi-identifiers, the policy, this program and the release, but not the seed, and
holds all ways to give the values to the people for equally likely, has no value of anybody for more certain than 1/l.

Steps, as `construction.build` takes them:

1. `layout.lay_out`: columns, one a class, of l different values or one more; from the counts of the values alone.
   Columns of the same values make a bucket: `columns` of them take as many rows of each value.
2. `draw_coins`, `seat_rows`: the rows of a value go to its buckets in an order of coins; another order of coins numbers
   all rows, and decides every tie from here on.
3. `splitting.split`: each bucket splits, level by level, into classes with a row of each of its values. Of each value
   the first rows along a quasi-identifier go left, as many as of any other. Where to split follows from codes and from
   the least and the greatest count that any value has there. Of few classes each takes the next row of each value.
4. `neighbours.exchange`: classes of one bucket exchange rows of equal value, where that lowers the loss.

Proof. A world gives the values, each with what is published beside it (`keep`), to the people; a run is a world and
its coins. Seats and ties are drawn without a look at the world, so all runs are equally likely. Take a bucket of b
values and k columns, and a cyclic shift s of its values. It sends a run to another: in each class of the bucket, who
had value v gets what the class has of value s(v), and of the bucket's seats for s(v) the one that he had of those for
v. The new world gives the same values as often, since a class has each of the b values once; the rows of each value
are still seated one by one; and the shift back undoes it: runs are sent to runs, one to one. Steps 3 and 4 treat the
two runs alike. They see people's codes, their numbers, their bucket, and who shares a value, which are the same in
both; they compare rows of one value with each other, and take the least, the greatest or the sum over values,
whatever those are called. So classes have the same people in both runs, and show the same values. Labels follow from
the people's codes, the order and the numbers of what is published from itself, columns and buckets from counts, which
the release shows. So both runs publish the same table. Over the b shifts everybody in the bucket has each of its
values equally often: given the release, and even who is in which class, each has the probability 1/b, and b is l or
more. Rows beyond l in a class are of such a bucket too.

What this takes: the seed is as secret as the source, and too long to be tried; nobody's sensitive value is known; one
row
a person; one sensitive attribute; one release; all rows published. What a policy says against that is refused
(`policy/rules.py`).
"""
