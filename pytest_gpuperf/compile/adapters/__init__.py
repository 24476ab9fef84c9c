"""Kernels of other compilers: one function a library, from its object to ``handed.Handed``.  No library is imported."""
