# SPDX-License-Identifier: Apache-2.0
"""Building blocks of differential.py's calls: random arrays between inaccessible pages and canaries, and calls on
contexts of several numbers of threads, whose results must be bitwise equal."""
import ctypes
import math
import zlib

import numpy as np
from aliasing import refuse_overlap, repeat_in_place
from comparison import Wrong, first_place, same_bits
from guarded_memory import RegionPool
from rung_types import I32, I64

CANARY = 0xA5
POISONS = (0xFF, 0x5A)  # contents of results before a call: NaN or -1, and another value before the next call
THREADS = (1, 2, 3, 7, 16)
MIDDLE_SHARE = 1 / 40
POOL = RegionPool()

SPECIAL_VALUES = {"nan": math.nan, "infinity": math.inf, "-infinity": -math.inf, "zero": 0.0, "-zero": -0.0,
                  "subnormal": "subnormal", "largest": "largest", "-largest": "-largest", "smallest": "normal"}


class Tensor:
    """An array in guarded memory, with rung's element type. `written`: a result; if the call also reads it, `initial`
    has its initial values."""

    def __init__(self, region, stored, dtype, written):
        self.region, self.stored, self.dtype, self.written = region, stored, dtype, written
        self.code, self.initial = dtype.code, None
        self.shape, self.size = stored.shape, stored.size

    def __repr__(self):
        steps = tuple(step // self.dtype.itemsize for step in self.stored.strides)
        return f"{'result' if self.written else 'input'} {self.dtype} {self.shape} strides {steps}"

    def wide(self):
        """Returns the values in double precision; integers unchanged."""
        return self.dtype.wide(self.stored)

    def exact(self):
        """Returns the values in a type with more digits and range: long double for f64."""
        return self.stored.astype(np.longdouble) if self.dtype.name == "f64" else self.wide()

    def offset(self):
        return self.stored.__array_interface__["data"][0] - self.region.address

    def view_of(self, memory):
        """Returns the same elements in a copy of the region."""
        return np.ndarray(self.shape, self.stored.dtype, memory, self.offset() if self.size else 0, self.stored.strides)

    def prepare(self, turn):
        """Sets a result to its contents before a call."""
        if self.size == 0:
            return
        poison = np.frombuffer(bytes([POISONS[turn % 2]]) * self.dtype.itemsize, self.dtype.bits)[0]
        target = self.stored.view(self.dtype.bits)
        target[...] = poison if self.initial is None else self.initial.view(self.dtype.bits)

    def start_with(self, values):
        """Makes the tensor a result that the call also reads."""
        self.initial = np.broadcast_to(self.dtype.stored(values), self.shape).copy()
        self.prepare(0)

    def damage(self):
        """Returns the position of a changed byte that belongs to no element of the result; None if there is none."""
        now = self.region.bytes.copy()
        if self.size:
            filler = np.frombuffer(bytes([CANARY]) * self.dtype.itemsize, self.stored.dtype)[0]
            self.view_of(now).view(self.dtype.bits)[...] = filler.view(self.dtype.bits)
        changed = now != CANARY
        return first_place(changed)[0] - self.offset() if changed.any() else None


class Case:
    """One random case of an operator: draws random values, and keeps the tensors and calls that it makes."""

    def __init__(self, api, operator, seed, number):
        self.api, self.operator = api, operator
        self.random = np.random.default_rng([seed, zlib.crc32(operator.encode()), number])
        self.middle = self.flag(MIDDLE_SHARE)
        self.tensors, self.calls, self.description = [], 0, ""

    def one_of(self, *values):
        return values[self.random.integers(len(values))]

    def weighted(self, **weights):
        """Returns one of the names, with probabilities proportional to the weights."""
        total = np.cumsum(list(weights.values()))
        return list(weights)[int(np.searchsorted(total, self.random.random() * total[-1], side="right"))]

    def flag(self, probability=0.5):
        return bool(self.random.random() < probability)

    def extent(self, largest=300):
        """Returns an extent: small, large, or next to a power of two."""
        kind = self.random.integers(4)
        if kind == 0:
            return int(self.random.integers(0, min(5, largest + 1)))
        if kind == 1:
            return int(np.clip(2 ** self.random.integers(0, 10) + self.random.integers(-1, 2), 0, largest))
        return int(np.exp(self.random.uniform(0, math.log(largest))))

    def shape(self, rank=None, elements=20000, middle=1 << 20):
        """Returns a shape of up to `elements`; in a medium-sized case of up to `middle`, also with long axes."""
        rank = int(self.random.integers(1, 5)) if rank is None else rank
        if self.middle:
            size = math.exp(self.random.uniform(math.log(elements), math.log(middle)))
            shares = self.random.dirichlet([0.7] * rank)
            return tuple(max(1, int(size**share) - int(self.random.integers(0, 2))) for share in shares)
        while True:
            shape = tuple(self.extent() for _ in range(rank))
            if math.prod(shape) <= elements:
                return shape

    def array(self, dtype, shape, written, broadcast=False):
        """Returns an uninitialized array between canaries and inaccessible pages: axes in any memory order, reversed,
        with gaps, unaligned to vectors; inputs may be broadcast along an axis. Often the first or last byte touches a
        page."""
        shape = tuple(shape)
        rank, random = len(shape), self.random
        plain = self.flag(0.5)
        order = random.permutation(rank) if not plain and self.flag(0.6) else range(rank)
        strides, step = [0] * rank, 1
        for axis in reversed(list(order)):
            if broadcast and not plain and self.flag(0.2):
                continue
            strides[axis] = step * (int(random.integers(1, 4)) if not plain and self.flag(0.3) else 1)
            gap = int(random.integers(0, 4)) if not plain and self.flag(0.4) else 0
            step = strides[axis] * max(shape[axis], 1) + gap
        signs = [-1 if not plain and self.flag(0.15) else 1 for _ in range(rank)]
        empty = math.prod(shape) == 0
        span = 1 if empty else 1 + sum(s * (n - 1) for s, n in zip(strides, shape))
        byte_count = span * dtype.itemsize
        slack = 64 + int(random.integers(0, 16)) * dtype.itemsize  # of 64 bytes, a multiple of every element size
        region = POOL.take(byte_count + 64 + slack)
        region.bytes[...] = CANARY
        place = self.weighted(end=5, begin=2, between=3)
        begin = {"end": region.size - byte_count, "begin": 0, "between": slack}[place]
        first = 0 if empty else sum(s * (n - 1) for s, n, sign in zip(strides, shape, signs) if sign < 0)
        stored = np.ndarray(shape, dtype.storage, region.bytes, begin + first * dtype.itemsize,
                            [s * sign * dtype.itemsize for s, sign in zip(strides, signs)])
        self.tensors.append(Tensor(region, stored, dtype, written))
        return self.tensors[-1]

    def copy(self, tensor, written):
        """Returns a tensor of the same layout, alignment and values in another region."""
        region = POOL.take(tensor.region.size)
        region.bytes[...] = CANARY
        copied = Tensor(region, tensor.view_of(region.bytes), tensor.dtype, written)
        if tensor.size:
            copied.stored.view(tensor.dtype.bits)[...] = tensor.stored.view(tensor.dtype.bits)
        self.tensors.append(copied)
        return copied

    def values(self, dtype, shape, scale=1.0, kind="ordinary"):
        """Returns random values: ordinary ones (or integers), `offset` (a mean that is large relative to the
        deviation), `special` (NaN, infinities, zeros, subnormal and largest numbers among ordinary ones), `huge`
        (squares overflow), `tiny` (subnormal)."""
        random = self.random
        if not dtype.floating:
            info = np.iinfo(dtype.storage)
            low, high = (info.min, info.max) if self.flag(0.3) else (max(info.min, -9), 9)
            return random.integers(low, high, shape, dtype=dtype.storage, endpoint=True)
        drawn = random.standard_normal(shape)
        if kind == "offset":
            mean = self.one_of(1e6, -1e6, 3e4) if dtype.itemsize > 2 else self.one_of(300.0, -1000.0)
            return drawn + mean
        if kind == "huge":
            root = math.sqrt(dtype.arithmetic_largest) if dtype.name != "f16" else 3e4
            return np.clip(drawn * self.one_of(root, root / 16, min(dtype.largest / 8, root * 1e6)), -dtype.largest,
                           dtype.largest)
        if kind == "tiny":
            return drawn * dtype.normal
        drawn *= scale
        if self.flag(0.2):
            drawn = np.round(drawn)
        if kind == "special":
            names = [self.one_of(*SPECIAL_VALUES) for _ in range(random.integers(1, 4))]
            known = [SPECIAL_VALUES[name] for name in names]
            known = [{"subnormal": dtype.subnormal * 5, "largest": dtype.largest, "-largest": -dtype.largest,
                      "normal": dtype.normal}.get(value, value) for value in known]
            taken = random.random(shape) < self.one_of(0.005, 0.05, 0.5, 1.0)
            drawn = np.where(taken, random.choice(known, shape), drawn)
        return drawn

    def input(self, dtype, shape, scale=1.0, kind="ordinary", values=None, broadcast=True):
        tensor = self.array(dtype, shape, False, broadcast and values is None)
        if tensor.size:
            # Along a broadcast axis all elements have one value.
            distinct = [1 if s == 0 else n for s, n in zip(tensor.stored.strides, tensor.shape)]
            drawn = self.values(dtype, distinct, scale, kind) if values is None else values
            tensor.stored[...] = dtype.stored(drawn)
        return tensor

    def output(self, dtype, shape):
        return self.array(dtype, shape, True)

    def index_type(self):
        return self.one_of(I32, I64)

    def thread_counts(self):
        """Returns two numbers of threads in most cases, all of them in others."""
        if self.flag(0.4 if self.middle else 0.08):
            return list(THREADS)
        return [1, self.one_of(*THREADS[1:])] if self.flag(0.8) else [self.one_of(*THREADS)] * 2

    def call(self, function, *tensors, options, given=None, in_place=(), repeats=True):
        """Makes a call on contexts of several numbers of threads, with inputs that cannot be written; asserts that
        results are bitwise equal (if `repeats`) and that nothing else has changed. `given` are the options; `in_place`
        are pairs of a result and an input that may share memory: the results must then be bitwise equal, too. Other
        overlapping memory must be rejected."""
        given = given or {}
        everything = [t for t in (*tensors, *given.values()) if isinstance(t, Tensor)]
        self.api.announce(f"{self.description}\n  tensors: {'; '.join(map(repr, everything))}")
        written = [t for t in everything if t.written]
        for tensor in everything:
            tensor.region.allow_writes(tensor.written)
        built = self.api.options(options, **given)
        first = None
        counts = self.thread_counts()
        for turn, count in enumerate(counts):
            for tensor in written:
                tensor.prepare(turn)
            self.run(count, function, tensors, built)
            for tensor in written:
                place = tensor.damage()
                if place is not None:
                    raise Wrong(f"{function}: byte {place}, counted from the first element of {tensor}, has changed: "
                                "it is outside of the result")
            results = [tensor.stored.copy() for tensor in written]
            if first is None:
                first = results
            elif repeats:
                for tensor, one, other in zip(written, first, results):
                    same_bits(f"{function}, {tensor}: {counts[0]} threads and {count} threads differ", one, other,
                              tensor.dtype)
        if in_place and self.flag(0.15):
            repeat_in_place(self, function, tensors, options, given, in_place)
        if self.flag(0.05):
            refuse_overlap(self, function, tensors, options, given, in_place)
        for tensor, result in zip(written, first):
            if tensor.size:
                tensor.stored.view(tensor.dtype.bits)[...] = result.view(tensor.dtype.bits)

    def run(self, thread_count, function, tensors, built_options):
        """Makes one call; raises Wrong if it fails."""
        self.calls += 1
        try:
            self.api.call_on(thread_count, function, tensors, built_options)
        except RuntimeError as error:
            raise Wrong(f"{function} on {thread_count} threads: {error}") from error

    def release(self):
        for tensor in self.tensors:
            tensor.stored = None
            POOL.give_back(tensor.region)
        self.tensors = []


def make_contexts(api):
    """Creates a context for each number of threads."""
    contexts = {}
    for count in THREADS:
        contexts[count] = ctypes.c_void_p()
        api.check(api.library.rung_context_create(0, count, None, ctypes.byref(contexts[count])))
    return contexts
