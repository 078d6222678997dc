"""Trees of sparse factors: a mixture of low-rank Gaussians whose covariances share terms."""
