"""What two models share of p(X | state): conjugate families."""
