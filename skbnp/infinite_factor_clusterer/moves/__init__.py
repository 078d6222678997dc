"""The moves of the clusterer, each a conditional draw or a Metropolis step with its scratch."""
