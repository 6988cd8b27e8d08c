# SPDX-License-Identifier: Apache-2.0
"""Parallel kernels of rung for NumPy, PyTorch, CuPy and JAX."""
