"""Deep belief networks of unbounded width and depth."""
