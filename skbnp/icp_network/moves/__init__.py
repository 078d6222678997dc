"""The moves of a chain of networks, one class each, with the scratch that only they need."""
