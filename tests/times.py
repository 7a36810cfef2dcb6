"""How many random cases older tests draw: `strategies` takes its place."""

FEW = True
TIMES = 1


def seeds(count: int, first: int = 0) -> range:
    """A third of so many seeds."""
    return range(first, first + often(count))


def often(count: int) -> int:
    """A third of so many cases, at least one."""
    return max(1, count // 3)
