"""Operations on NumPy arrays, compiled by Numba."""
