# SPDX-License-Identifier: Apache-2.0
"""PyCUDA's module names on the simulated GPU of rung.

A script for PyCUDA changes its import lines alone:

    import rung.pycuda.autoinit
    import rung.pycuda.driver as cuda
    from rung.pycuda.compiler import SourceModule

Kernels are checked: rung.cuda documents how findings are raised and collected.
"""
VERSION = (2026, 1)
VERSION_TEXT = "2026.1 (rung)"
