# SPDX-License-Identifier: Apache-2.0
"""add.py LIBRARY WRONG: adds arrays by a library of kernels."""
import ctypes
import sys

library = ctypes.CDLL(sys.argv[1])
N = 100
Array = ctypes.c_float * N
a, b, c = Array(*range(N)), Array(*([1.0] * N)), Array()
calls = [library.add(a, b, c, N, int(sys.argv[2])) for _ in range(2)]
print(calls, c[0], c[99])
