"""Programs that mypy reads and nobody runs: what is taken and what is refused."""
