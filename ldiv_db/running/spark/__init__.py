"""Runs on Spark: it counts and moves rows, our own code solves them in its executors, and it audits and publishes."""
