# SPDX-License-Identifier: Apache-2.0
"""Calls whose tensors share memory, for differential.py: in place if an operator allows it, otherwise rejected."""
import numpy as np
from comparison import Wrong, same_bits

INVALID_ARGUMENT = 1


def replaced(tensors, given, changes):
    """Returns tensors and options with some tensors replaced, given as pairs of an old and a new one."""
    def new(tensor):
        return next((after for before, after in changes if before is tensor), tensor)
    return [new(tensor) for tensor in tensors], {name: new(value) for name, value in given.items()}


def repeat_in_place(case, function, tensors, options, given, pairs):
    """Expects the same bits from a call with a result in an input's memory as with separate memory of the same
    layout."""
    fitting = [(result, source) for result, source in pairs
               if result is not None and source is not None and result.shape == source.shape
               and result.dtype is source.dtype and result.size and result.initial is None]
    if not fitting:
        return
    result, source = case.one_of(*fitting)
    count = case.one_of(1, 2, 3)
    apart = case.copy(result, False)
    apart.stored[...] = source.stored
    apart.region.allow_writes(False)
    both = case.copy(result, True)
    both.stored[...] = source.stored
    outputs = [t for t in (*tensors, *given.values()) if getattr(t, "written", False)]
    found = []
    for changes in ([(source, apart)], [(source, both), (result, both)]):
        for output in outputs:
            if output is not result or len(changes) == 1:
                output.prepare(0)
        exchanged, options_given = replaced(tensors, given, changes)
        case.run(count, function, exchanged, case.api.options(options, **options_given))
        found.append([(both if output is result and len(changes) == 2 else output).stored.copy() for output in outputs])
    if both.damage() is not None:
        raise Wrong(f"{function} in place writes outside of the result {result}")
    for output, one, other in zip(outputs, *found):
        same_bits(f"{function}, {output}: {result} in the memory of an input and apart from it differ", one, other,
                  output.dtype)


def span(tensor):
    """Returns the byte offset of the lowest element from the first one, and the bytes from lowest to highest."""
    steps = [step * (n - 1) for step, n in zip(tensor.stored.strides, tensor.shape)]
    low = sum(step for step in steps if step < 0)
    return low, sum(step for step in steps if step > 0) - low + tensor.dtype.itemsize


def refuse_overlap(case, function, tensors, options, given, pairs):
    """Expects an error, and unchanged memory, from a call with a result that partly overlaps another tensor's
    memory."""
    everything = [t for t in (*tensors, *given.values()) if hasattr(t, "written") and t.size]
    results = [t for t in everything if t.written]
    others = [t for t in everything]
    if not results or any(t is not None and hasattr(t, "written") and not t.size for t in (*tensors, *given.values())):
        return
    result = case.one_of(*results)
    other = case.one_of(*others)
    if other is result:
        return
    (low, byte_count), (other_low, other_bytes) = span(result), span(other)
    # The result begins within the other tensor, after its first element, or ends within it.
    step = result.dtype.itemsize
    shift = int(case.random.integers(1, max(2, other_bytes // step))) * step
    if shift >= other_bytes:
        shift = 0
        if (result, other) in pairs or result.dtype is not other.dtype:
            return
    memory = np.full(other_bytes + shift + byte_count + 16, 0x33, np.uint8)
    begin = -memory.ctypes.data % 8
    moved = np.ndarray(other.shape, other.stored.dtype, memory, begin - other_low, other.stored.strides)
    if not other.written:
        distinct = tuple(slice(0, 1) if s == 0 else slice(None) for s in moved.strides)
        moved[distinct] = other.stored[distinct]
    inside = np.ndarray(result.shape, result.stored.dtype, memory, begin + shift - low, result.stored.strides)
    before = memory.copy()
    exchanged, options_given = replaced(
        tensors, given, [(other, Described(moved, other.code)), (result, Described(inside, result.code))])
    status = case.api.status_of(case.one_of(1, 2), function, exchanged, case.api.options(options, **options_given))
    case.calls += 1
    if status != INVALID_ARGUMENT:
        raise Wrong(f"{function}: {result} that begins {shift} bytes behind the first byte of {other} is not refused, "
                    f"status {status}")
    if not np.array_equal(memory, before):
        raise Wrong(f"{function}: refused for overlapping memory, but has written to it")


class Described:
    """An array with rung's element type, as Api.tensor accepts it."""

    def __init__(self, stored, code):
        self.stored, self.code = stored, code
