"""Operations on torch tensors, on any device."""
