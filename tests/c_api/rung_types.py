# SPDX-License-Identifier: Apache-2.0
"""rung's element types for differential.py: their storage in NumPy, and rounding to them. NumPy has no bf16 and no
8-bit floats; arrays of these types hold their bits."""
import numpy as np


class DType:
    """An element type. `unit` is the unit roundoff of the arithmetic in which calls of this type compute, `own_unit`
    that of the type itself."""

    def __init__(self, name, storage, floating=True, own_unit=0.0, largest=0.0, subnormal=0.0, normal=0.0):
        self.name, self.code, self.storage = name, f"RUNG_{name.upper()}", np.dtype(storage)
        self.floating, self.own_unit = floating, own_unit
        self.largest, self.subnormal, self.normal = largest, subnormal, normal
        self.itemsize = self.storage.itemsize
        self.bits = np.dtype(f"u{self.itemsize}")
        self.has_small_range = floating and self.itemsize < 4
        self.unit = 2.0**-53 if name == "f64" else 2.0**-24
        self.arithmetic_normal = 2.0**-1022 if name == "f64" else 2.0**-126
        self.arithmetic_largest = float(np.finfo("f8" if name == "f64" else "f4").max)

    def __repr__(self):
        return self.name

    def wide(self, stored):
        """Returns the values in double precision; integers unchanged."""
        if self.name == "bf16":
            bits = np.atleast_1d(stored).astype(np.uint32) << 16  # NumPy before 2 cannot view an array without axes
            return bits.view(np.float32).astype(np.float64).reshape(np.shape(stored))
        if self.name in TABLES:
            return TABLES[self.name][stored]
        return stored.astype(np.float64) if self.floating else stored

    def stored(self, values):
        """Rounds values to the type."""
        with np.errstate(all="ignore"):
            if self.name == "bf16":
                return bf16_bits(np.asarray(values).astype(np.float32))
            if self.name in TABLES:
                return nearest_code(self.name, np.asarray(values, np.float64))
            return np.asarray(values).astype(self.storage)

    def rounded(self, values):
        """Returns values after rounding to the type, in double precision."""
        return self.wide(self.stored(values))

    def rounding(self, values):
        """Returns the maximum change by one rounding to the type, including subnormal results."""
        return np.abs(values) * self.own_unit + np.longdouble(self.subnormal) / 2 if self.floating else 0


def bf16_bits(values):
    """Rounds f32 to nearest, ties to even."""
    bits = np.ascontiguousarray(values).view(np.uint32).reshape(np.shape(values))
    rounded = (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16
    return np.where(np.isnan(values), 0x7FC0 | (bits >> 16), rounded).astype(np.uint16)


def e4m3_values():
    codes = np.arange(256)
    exponent, mantissa = (codes >> 3) & 15, codes & 7
    size = np.where(exponent == 0, mantissa * 2.0**-9, (8 + mantissa) * 2.0**(exponent - 10.0))
    size[(codes & 127) == 127] = np.nan
    return np.where(codes >= 128, -size, size)


def e5m2_values():
    return (np.arange(256).astype(np.uint16) << 8).view(np.float16).astype(np.float64)


TABLES = {"e4m3": e4m3_values(), "e5m2": e5m2_values()}


def nearest_code(name, values):
    """Returns a code of the nearest finite value: sufficient for inputs."""
    finite = np.flatnonzero(np.isfinite(TABLES[name]))
    order = finite[np.argsort(TABLES[name][finite], kind="stable")]
    known = TABLES[name][order]
    middles = (known[1:] + known[:-1]) / 2
    return order[np.searchsorted(middles, np.nan_to_num(values))].astype(np.uint8)


F32 = DType("f32", "f4", own_unit=2.0**-24, largest=float(np.finfo("f4").max), subnormal=2.0**-149, normal=2.0**-126)
F64 = DType("f64", "f8", own_unit=2.0**-53, largest=float(np.finfo("f8").max), subnormal=2.0**-1074, normal=2.0**-1022)
F16 = DType("f16", "f2", own_unit=2.0**-11, largest=65504.0, subnormal=2.0**-24, normal=2.0**-14)
BF16 = DType("bf16", "u2", own_unit=2.0**-8, largest=2.0**127 * (2 - 2.0**-7), subnormal=2.0**-133, normal=2.0**-126)
E4M3 = DType("e4m3", "u1", own_unit=2.0**-4, largest=448.0, subnormal=2.0**-9, normal=2.0**-6)
E5M2 = DType("e5m2", "u1", own_unit=2.0**-3, largest=57344.0, subnormal=2.0**-16, normal=2.0**-14)
I8, U8, U16, I32, I64 = (DType(name, storage, floating=False) for name, storage in
                         (("i8", "i1"), ("u8", "u1"), ("u16", "u2"), ("i32", "i4"), ("i64", "i8")))
FLOATS = (F32, F64, F16, BF16)
INTEGERS = (I8, U8, U16, I32, I64)


def arithmetic(dtype):
    """Returns the accumulation type: f64 for f64, else f32."""
    return F64 if dtype is F64 else F32
