"""Point summaries of posterior draws: pure functions of arrays."""
