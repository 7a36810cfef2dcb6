"""What `ldiv bench` measures, a module a benchmark, each case in a process of its own."""
