"""Operations on NumPy arrays, compiled by Numba; `Ops` says what they do."""
