"""External damage to a run: damaged and hostile files, and misbehaving services.

The functions here return counts and findings; the tests run a small, fixed part of them, and a longer
run calls the same functions with more files.
"""
