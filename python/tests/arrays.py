# SPDX-License-Identifier: Apache-2.0
"""Arrays for the tests: NumPy arrays of random layouts, and classes that offer arrays as other libraries do."""
import ctypes

import numpy as np
import pytest

st = pytest.importorskip("hypothesis.strategies")  # skips the test file that imports this one

SHAPES = st.lists(st.integers(0, 5), min_size=1, max_size=4).map(tuple)


def laid_out(shape, dtype, layout, seed):
    """Returns random elements of a shape in a layout: C, Fortran, reversed, every second one, or broadcast from one
    row."""
    random = np.random.default_rng(seed)
    if layout == "broadcast" and len(shape) > 0:
        row = random.uniform(-2, 2, (1, *shape[1:])).astype(dtype)
        return np.broadcast_to(row, shape)
    if layout == "second":
        wide = random.uniform(-2, 2, (*shape[:-1], 2 * shape[-1])).astype(dtype)
        return wide[..., ::2]
    x = random.uniform(-2, 2, shape).astype(dtype)
    if layout == "fortran":
        return np.asfortranarray(x)
    if layout == "reversed":
        return x[tuple(slice(None, None, -1) for _ in shape)]
    return x


LAYOUTS = st.sampled_from(["c", "fortran", "reversed", "second", "broadcast"])


class DLDevice(ctypes.Structure):
    _fields_ = [("type", ctypes.c_int32), ("id", ctypes.c_int32)]


class DLDataType(ctypes.Structure):
    _fields_ = [("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16)]


class DLTensor(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("device", DLDevice), ("ndim", ctypes.c_int32), ("dtype", DLDataType),
                ("shape", ctypes.POINTER(ctypes.c_int64)), ("strides", ctypes.POINTER(ctypes.c_int64)),
                ("byte_offset", ctypes.c_uint64)]


class ExchangeTable(ctypes.Structure):
    _fields_ = [("major", ctypes.c_uint32), ("minor", ctypes.c_uint32), ("previous", ctypes.c_void_p),
                ("allocate", ctypes.c_void_p), ("to_managed", ctypes.c_void_p), ("from_managed", ctypes.c_void_p),
                ("describe", ctypes.c_void_p), ("current_stream", ctypes.c_void_p)]


class OfDLPack:
    """An array that offers only __dlpack__, by NumPy's; counts the calls."""

    calls = 0

    def __init__(self, array):
        self.array = array

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()

    def __dlpack__(self, **named):
        type(self).calls += 1
        return self.array.__dlpack__(**named)


class OfOldDLPack(OfDLPack):
    """OfDLPack before DLPack 1.0: without max_version."""

    def __dlpack__(self, *, stream=None):
        return self.array.__dlpack__()


class OfExchangeTable:
    """An array like PyTorch's: a table of C functions in the type, new_empty() and requires_grad."""

    described = 0
    requires_grad = False

    def __init__(self, array):
        self.array = array
        self.shape_of = (ctypes.c_int64 * array.ndim)(*array.shape)
        self.strides_of = (ctypes.c_int64 * array.ndim)(*(each // array.itemsize for each in array.strides))

    def new_empty(self, shape, dtype=None):
        return type(self)(np.empty(shape, dtype or self.array.dtype))

    def fill(self, tensor):
        tensor.data = self.array.ctypes.data
        tensor.device = DLDevice(1, 0)
        tensor.ndim = self.array.ndim
        tensor.dtype = DLDataType({"f": 2, "i": 0, "u": 1}[self.array.dtype.kind], 8 * self.array.itemsize, 1)
        tensor.shape = self.shape_of
        tensor.strides = self.strides_of
        tensor.byte_offset = 0


@ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.POINTER(DLTensor))
def describe(array, tensor):
    OfExchangeTable.described += 1
    array.fill(tensor[0])
    return 0


@ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_int32, ctypes.c_int32, ctypes.POINTER(ctypes.c_void_p))
def current_stream(_type, _device, stream):
    stream[0] = None
    return 0


TABLE = ExchangeTable(1, 3, None, None, None, None, ctypes.cast(describe, ctypes.c_void_p),
                      ctypes.cast(current_stream, ctypes.c_void_p))
_capsule = ctypes.pythonapi.PyCapsule_New
_capsule.restype = ctypes.py_object
_capsule.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
NAME = b"dlpack_exchange_api"  # name of the capsule, which holds its address
OfExchangeTable.__dlpack_c_exchange_api__ = _capsule(ctypes.addressof(TABLE), NAME, None)
# The type is recognized by its module's name, like PyTorch's.
OfExchangeTable.__module__ = "torch.of_a_test"
