# SPDX-License-Identifier: Apache-2.0
"""Arguments of launches: validated against the kernel's parameters, packed; host arrays are copied."""
from typing import Any, Dict, List, NamedTuple, Optional, Sequence, Tuple

import numpy

from ._memory import DeviceAllocation, DeviceArray, DeviceMemory

_ALIGNMENT = 16  # bytes, of each packed argument
_KINDS = {"i": "int", "u": "uint", "f": "float", "b": "bool"}
_NAMES = {"int": {1: "int8", 2: "int16", 4: "int32", 8: "int64"},
          "uint": {1: "uint8", 2: "uint16", 4: "uint32", 8: "uint64"},
          "float": {2: "float16", 4: "float32", 8: "float64"}, "bool": {1: "bool_"}}


class Direction:
    """A host array that is copied to the device before a launch, from the device after it, or both."""

    copies_in = copies_out = False

    def __init__(self, array: numpy.ndarray):
        self.array = array


class In(Direction):
    """Host array that is copied to the device before the launch."""
    copies_in = True


class Out(Direction):
    """Host array that is copied from the device after the launch. Elements that the kernel does not write are
    uninitialized."""
    copies_out = True


class InOut(Direction):
    """Host array that is copied to the device before the launch, and back after it."""
    copies_in = copies_out = True


class _Range:
    """Range of host memory with one device allocation; overlapping arrays share a range."""

    def __init__(self, begin: int, end: int):
        self.begin, self.end = begin, end
        self.memory: Optional[DeviceMemory] = None
        self.arrays: List[Tuple[numpy.ndarray, bool, bool]] = []


class Packed(NamedTuple):
    """Packed arguments of a launch, and the host ranges that are copied before and after it."""
    data: bytes
    offsets: List[int]
    ranges: List[_Range]

    def copy_back(self) -> None:
        for one in self.ranges:
            outs = [array for array, _, out in one.arrays if out]
            if not outs or one.memory is None:
                continue
            bytes_ = one.memory.read()
            for array in outs:
                begin = _begin(array) - one.begin
                _bytes_of(array)[:] = bytes_[begin:begin + array.nbytes]

    def free(self) -> None:
        for one in self.ranges:
            if isinstance(one.memory, DeviceAllocation):
                one.memory.free()


def _begin(array: numpy.ndarray) -> int:
    return array.__array_interface__["data"][0]


def _bytes_of(array: numpy.ndarray) -> numpy.ndarray:
    """Returns the bytes of a contiguous array, in the order of memory, as a view."""
    flat = array.reshape(-1) if array.flags.c_contiguous else array.T.reshape(-1)
    return flat.view(numpy.uint8)


class Packer:
    """Packs the arguments of one launch, by PyCUDA's rules if `pycuda`, else by CuPy's."""

    def __init__(self, kernel: str, parameters: Sequence[Dict[str, Any]], names: Sequence[str], pycuda: bool):
        self._kernel = kernel
        self._parameters = parameters
        self._names = names
        self._pycuda = pycuda
        self._arrays: List[Tuple[int, numpy.ndarray, bool, bool]] = []

    def where(self, number: int) -> str:
        name = self._names[number] if number < len(self._names) else ""
        return f"kernel {self._kernel}, parameter {number} ({self._parameters[number]['type']}" \
               + (f" {name})" if name else ")")

    def pack(self, arguments: Sequence[Any]) -> Packed:
        if len(arguments) != len(self._parameters):
            spelled = ", ".join((one["type"] + " " + (self._names[i] if i < len(self._names) else "")).strip()
                                for i, one in enumerate(self._parameters))
            raise TypeError(f"kernel {self._kernel} has {len(self._parameters)} parameters ({spelled}), given "
                            f"{len(arguments)} arguments")
        pieces: List[bytes] = []
        for number, (parameter, argument) in enumerate(zip(self._parameters, arguments)):
            if parameter["kind"] == "pointer":
                pieces.append(self._pointer(number, parameter, argument))
            else:
                pieces.append(self._value(number, parameter, argument))
        ranges = self._allocate()
        data, offsets = bytearray(), []
        for number, piece in enumerate(pieces):
            offsets.append(len(data))
            for which, array, _, _ in self._arrays:
                if which == number:
                    begin = _begin(array)
                    one = next(r for r in ranges if r.begin <= begin < r.end or r.begin == begin)
                    assert one.memory is not None
                    piece = (one.memory.ptr + begin - one.begin).to_bytes(8, "little")
            data += piece
            data += bytes(-len(data) % _ALIGNMENT)
        return Packed(bytes(data), offsets, ranges)

    def _allocate(self) -> List[_Range]:
        ranges: List[_Range] = []
        for _, array, copies_in, copies_out in sorted(self._arrays, key=lambda one: _begin(one[1])):
            begin, end = _begin(array), _begin(array) + array.nbytes
            if ranges and (begin < ranges[-1].end or begin == ranges[-1].begin):
                ranges[-1].end = max(ranges[-1].end, end)
            else:
                ranges.append(_Range(begin, end))
            ranges[-1].arrays.append((array, copies_in, copies_out))
        for one in ranges:
            one.memory = DeviceAllocation(one.end - one.begin)
            for array, copies_in, _ in one.arrays:
                if copies_in and array.nbytes:
                    one.memory.write(_bytes_of(array), _begin(array) - one.begin)
        return ranges

    def _pointer(self, number: int, parameter: Dict[str, Any], argument: Any) -> bytes:
        to = parameter["to"]
        if isinstance(argument, Direction):
            array = argument.array
            self._use(number, to, array, argument.copies_in, argument.copies_out)
            return b""
        if isinstance(argument, DeviceArray):
            self._require_dtype(number, to, argument.dtype)
            return argument.ptr.to_bytes(8, "little")
        if isinstance(argument, DeviceMemory):
            return argument.ptr.to_bytes(8, "little")
        if isinstance(argument, numpy.ndarray):
            if self._pycuda:
                raise TypeError(f"{self.where(number)} is a pointer, given an array of the host: pass In(a), Out(a) or "
                                "InOut(a), or memory of mem_alloc")
            self._use(number, to, argument, True, not to["const"])
            return b""
        if isinstance(argument, numpy.integer) and argument.dtype.itemsize == 8:
            return int(argument).to_bytes(8, "little", signed=int(argument) < 0)
        pointer = getattr(argument, "gpudata", getattr(argument, "ptr", None))
        if pointer is not None:
            return int(pointer).to_bytes(8, "little")
        if isinstance(argument, int) and not isinstance(argument, bool) and not self._pycuda:
            return argument.to_bytes(8, "little", signed=argument < 0)
        self._refuse_python_number(number, argument)
        raise TypeError(f"{self.where(number)} is a pointer, given {_shown(argument)}")

    def _use(self, number: int, to: Dict[str, Any], array: Any, copies_in: bool, copies_out: bool) -> None:
        if not isinstance(array, numpy.ndarray):
            raise TypeError(f"{self.where(number)}: given {_shown(array)}, accepted is a NumPy array")
        if not (array.flags.c_contiguous or array.flags.f_contiguous):
            raise ValueError(f"{self.where(number)}: the array has strides {array.strides} for shape {array.shape}, "
                             "so that its bytes are not adjacent: pass numpy.ascontiguousarray(a)")
        if array.dtype.hasobject:
            raise TypeError(f"{self.where(number)}: arrays of Python objects cannot be copied to a device")
        self._require_dtype(number, to, array.dtype)
        if copies_out and not array.flags.writeable:
            if isinstance(array, numpy.ndarray) and copies_in:
                copies_out = False
            else:
                raise ValueError(f"{self.where(number)}: the array is read-only")
        self._arrays.append((number, array, copies_in, copies_out))

    def _require_dtype(self, number: int, to: Dict[str, Any], dtype: numpy.dtype) -> None:
        """Rejects an array whose element type differs from the pointer's: CUDA would reinterpret its bytes."""
        kind = _KINDS.get(dtype.kind)
        if to["kind"] in ("any", "pointer") or kind is None or to["bytes"] <= 1 or dtype.itemsize == 1:
            return
        integers = ("int", "uint")
        same = kind == to["kind"] or (kind in integers and to["kind"] in integers)
        if same and dtype.itemsize == to["bytes"]:
            return
        wanted = _NAMES[to["kind"]].get(to["bytes"], "")
        raise TypeError(f"{self.where(number)}: the array has elements of {dtype}, the kernel reads {wanted}: pass "
                        f"a.astype(numpy.{wanted})")

    def _value(self, number: int, parameter: Dict[str, Any], argument: Any) -> bytes:
        kind, size = parameter["kind"], parameter["bytes"]
        if isinstance(argument, (numpy.ndarray, numpy.void)) and kind == "any":
            data = argument.tobytes()
            if len(data) != size:
                raise TypeError(f"{self.where(number)} has {size} bytes, the value {len(data)}: numpy.dtype(fields, "
                                "align=True) lays a structure out as C++ does")
            return data
        if isinstance(argument, bytes) and kind == "any" and len(argument) == size:
            return argument
        if isinstance(argument, numpy.generic):
            return self._numpy_value(number, kind, size, argument)
        self._refuse_python_number(number, argument)
        if isinstance(argument, bool) and kind == "bool":
            return bytes([argument])
        if isinstance(argument, int) and kind in ("int", "uint"):
            return self._integer(number, kind, size, int(argument))
        if isinstance(argument, float) and kind == "float" and size == 8:
            return numpy.float64(argument).tobytes()
        if isinstance(argument, complex) and kind == "any" and size == 16:
            return numpy.complex128(argument).tobytes()
        wanted = _NAMES.get(kind, {}).get(size)
        advice = f": pass numpy.{wanted}(x)" if wanted else f", accepted is a NumPy value of {size} bytes"
        raise TypeError(f"{self.where(number)}: given {_shown(argument)}{advice}")

    def _refuse_python_number(self, number: int, argument: Any) -> None:
        if self._pycuda and isinstance(argument, (int, float, complex)) and not isinstance(argument, numpy.generic):
            raise TypeError(f"invalid type on parameter #{number} (0-based): {self.where(number)} is given a Python "
                            f"{type(argument).__name__}, whose size is not known: pass a NumPy value, as "
                            "numpy.int32(n)")

    def _integer(self, number: int, kind: str, size: int, value: int) -> bytes:
        low, high = (-(1 << (8 * size - 1)), 1 << (8 * size)) if kind == "int" else (0, 1 << (8 * size))
        if not low <= value < high or (kind == "int" and value >= 1 << (8 * size - 1)):
            raise OverflowError(f"{self.where(number)}: {value} does not fit {8 * size} bits")
        return value.to_bytes(size, "little", signed=value < 0)

    def _numpy_value(self, number: int, kind: str, size: int, argument: numpy.generic) -> bytes:
        given, data = _KINDS.get(argument.dtype.kind), argument.tobytes()
        if kind == "any":
            if len(data) == size:
                return data
        elif given in ("int", "uint") and kind in ("int", "uint"):
            # CuPy passes 8 bytes, of which the kernel reads the low ones; in PyCUDA the next parameter would be
            # misplaced.
            if len(data) == size:
                return data
            if len(data) > size and not self._pycuda:
                return self._integer(number, kind, size, int(argument))
        elif given == kind and len(data) == size:
            return data
        wanted = _NAMES.get(kind, {}).get(size)
        advice = f": pass numpy.{wanted}(x)" if wanted else f", accepted is a NumPy value of {size} bytes"
        raise TypeError(f"{self.where(number)}: given {_shown(argument)}{advice}")


def _shown(argument: Any) -> str:
    if isinstance(argument, numpy.ndarray):
        return f"an array of {argument.dtype}, {argument.shape}"
    if isinstance(argument, numpy.generic):
        return f"numpy.{argument.dtype}({argument})"
    text = repr(argument)
    return f"{type(argument).__name__} {text if len(text) < 60 else text[:57] + '...'}"
