"""bsgi."""
