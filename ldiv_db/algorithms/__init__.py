"""Algorithms: a folder a family, each saying what it does and promises, its steps, and the paper it is from.

`base` is what an algorithm is given and gives back, `registry` finds one by its name. `feasibility` and `costs` are
for all families; `neighbours` improves classes that some of them have made.
"""
