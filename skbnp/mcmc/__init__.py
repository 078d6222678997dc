"""Run chains of any sampler and keep their draws. Arrays in, arrays out."""
