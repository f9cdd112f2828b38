"""Operations on torch tensors, on any device; `Ops` says what they do.

Sums are taken in the order of the CPU's kernels, and products are fused with sums where theirs are: on
a plain area a hair below a whole level costs the level, so one rounding more or less would show.
"""
