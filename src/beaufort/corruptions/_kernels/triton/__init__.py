"""Operations on tensors of a CUDA GPU, compiled by Triton."""
