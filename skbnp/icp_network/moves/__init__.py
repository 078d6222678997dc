"""The moves of a chain, one class each, with the scratch that only they need."""
