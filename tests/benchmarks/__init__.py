"""What is timed and measured, a module a benchmark, run from a checkout: `python -m tests.benchmarks.bsgi --help`."""
