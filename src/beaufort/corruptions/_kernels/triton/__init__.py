"""Operations on tensors of a CUDA GPU, compiled by Triton.

Kernels are compiled without fused products but where `tl.fma` asks for them, which is where the CPU's
compiler fuses: roundings are those of the CPU.
"""
