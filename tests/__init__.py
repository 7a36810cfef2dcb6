"""The tests, and the benchmarks beside them."""
