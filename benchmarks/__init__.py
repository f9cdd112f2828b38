"""Benchmarks of the package as users call it: `python -m benchmarks` lists them."""
