"""Which algorithm a call uses when the caller leaves it open."""
