# SPDX-License-Identifier: Apache-2.0
"""Memory between inaccessible pages, for differential.py: an access beyond either end is a segmentation fault, and so
is a store to protected memory."""
import ctypes
import mmap

import numpy as np

PAGE = mmap.PAGESIZE
LARGEST_KEPT = 1 << 22
NO_ACCESS, READ, READ_AND_WRITE = 0, 1, 3
FAILED = ctypes.c_void_p(-1).value

LIBC = ctypes.CDLL(None, use_errno=True)
LIBC.mmap.restype = ctypes.c_void_p
LIBC.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_int64]
LIBC.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
LIBC.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]


class Region:
    """Whole pages between two inaccessible pages. `bytes` is an array over them."""

    def __init__(self, size):
        self.size = size
        self.mapping = LIBC.mmap(None, size + 2 * PAGE, NO_ACCESS, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, -1, 0)
        if self.mapping == FAILED:
            raise MemoryError(f"mmap of {size} bytes failed")
        self.address = self.mapping + PAGE
        self.writable = False
        self.allow_writes(True)
        self.bytes = np.frombuffer((ctypes.c_uint8 * size).from_address(self.address), np.uint8)

    def allow_writes(self, allowed):
        if allowed == self.writable:
            return
        if LIBC.mprotect(self.address, self.size, READ_AND_WRITE if allowed else READ) != 0:
            raise MemoryError(f"mprotect of {self.size} bytes failed")
        self.writable = allowed

    def unmap(self):
        self.bytes = None
        LIBC.munmap(self.mapping, self.size + 2 * PAGE)


class RegionPool:
    """Reuses regions: sizes are powers of two, so that a few of each size serve every case."""

    def __init__(self):
        self.free = {}

    def take(self, byte_count):
        size = max(PAGE, 1 << max(byte_count - 1, 0).bit_length())
        kept = self.free.setdefault(size, [])
        return kept.pop() if kept else Region(size)

    def give_back(self, region):
        region.allow_writes(True)
        if region.size > LARGEST_KEPT:
            region.unmap()
        else:
            self.free[region.size].append(region)
