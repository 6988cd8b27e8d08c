# SPDX-License-Identifier: Apache-2.0
"""Tests of differential.py itself: it detects each violation, in a library of Python functions with one violation each.
usage: differential_test.py SOURCE"""
import ctypes
import os
import signal
import sys
import unittest

import numpy as np
from comparison import Wrong, close, same_bits
from random_case import Case
from rung_types import BF16, F16, F32


class Library:
    """Calls `function(thread count, tensors)` like an operator; rejects overlap if `refuses`."""

    def __init__(self, function, refuses=True):
        self.function, self.refuses = function, refuses

    def announce(self, text):
        pass

    def options(self, operator, **given):
        return given

    def call_on(self, thread_count, name, tensors, options):
        self.function(thread_count, tensors)

    def status_of(self, thread_count, name, tensors, options):
        return 1 if self.refuses else 0


def calls(function, refuses=True, rounds=60):
    """Makes random calls of y = function(x); returns the complaint, or an empty text."""
    for number in range(rounds):
        case = Case(Library(function, refuses), "test", 7, number)
        try:
            x, y = case.input(F32, (5, 6)), case.output(F32, (5, 6))
            case.call("test", x, y, options="test", in_place=[(y, x)])
        except Wrong as error:
            return str(error)
        finally:
            case.release()
    return ""


def doubled(thread_count, tensors):
    tensors[1].stored[...] = tensors[0].stored * 2


def ends_by(action):
    """Runs an action in a child process; returns the signal that ends it, or 0."""
    child = os.fork()
    if child == 0:
        action()
        os._exit(0)
    _, status = os.waitpid(child, 0)
    return os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0


class ReportsBrokenPromises(unittest.TestCase):
    def test_accepts_a_correct_function(self):
        self.assertEqual(calls(doubled), "")

    def test_rejects_results_that_depend_on_the_number_of_threads(self):
        def function(thread_count, tensors):
            tensors[1].stored[...] = tensors[0].stored * np.float32(2 if thread_count < 3 else 2.0000002)
        self.assertIn("threads differ", calls(function))

    def test_rejects_zeros_of_another_sign(self):
        def function(thread_count, tensors):
            tensors[1].stored[...] = -0.0 if thread_count == 1 else 0.0
        self.assertIn("threads differ", calls(function))

    def test_rejects_elements_that_are_left_out(self):
        def function(thread_count, tensors):
            tensors[1].stored[1:] = tensors[0].stored[1:]
        self.assertIn("differ", calls(function))

    def test_rejects_a_write_beside_the_result(self):
        def function(thread_count, tensors):
            doubled(thread_count, tensors)
            region = getattr(tensors[1], "region", None)
            if region is not None and region.size >= 256:
                region.bytes[0 if tensors[1].offset() > 128 else -1] ^= 1
        self.assertIn("outside of the result", calls(function))

    def test_rejects_other_results_in_place(self):
        def function(thread_count, tensors):
            same = np.shares_memory(tensors[0].stored, tensors[1].stored)
            tensors[1].stored[...] = tensors[0].stored * (3 if same else 2)
        self.assertIn("apart from it differ", calls(function))

    def test_rejects_overlap_that_is_accepted(self):
        self.assertIn("is not refused", calls(doubled, refuses=False))


class GuardsMemory(unittest.TestCase):
    def setUp(self):
        self.case = Case(None, "test", 1, 1)

    def tearDown(self):
        self.case.release()

    def test_a_store_to_an_input_is_a_segmentation_fault(self):
        x = self.case.input(F32, (8,))
        x.region.allow_writes(False)
        self.assertEqual(ends_by(lambda: ctypes.memset(x.region.address, 0, 1)), signal.SIGSEGV)
        self.assertEqual(ends_by(lambda: ctypes.string_at(x.region.address, 1)), 0)

    def test_a_load_beyond_either_end_is_a_segmentation_fault(self):
        region = self.case.output(F32, (8,)).region
        for address in (region.address - 1, region.address + region.size):
            self.assertEqual(ends_by(lambda at=address: ctypes.string_at(at, 1)), signal.SIGSEGV)

    def test_arrays_touch_both_ends(self):
        begins = ends = 0
        for number in range(100):
            case = Case(None, "test", 2, number)
            x = case.array(F32, (8,), True)
            low = min(x.offset(), x.offset() + 7 * x.stored.strides[0])
            begins += low == 0
            ends += low + 7 * abs(x.stored.strides[0]) + 4 == x.region.size
            case.release()
        self.assertGreater(begins, 5)
        self.assertGreater(ends, 20)


class Compares(unittest.TestCase):
    def test_a_bound_is_not_exceeded(self):
        close("", np.array([1.0 + 1e-6]), np.array([1.0]), 1e-6, F32)
        with self.assertRaises(Wrong):
            close("", np.array([1.0 + 2e-6]), np.array([1.0]), 1e-6, F32)

    def test_nan_is_wanted_or_wrong(self):
        close("", np.array([np.nan]), np.array([np.nan]), 0, F32)
        for got, wanted in ((np.nan, 1.0), (1.0, np.nan), (np.inf, 1.0), (1.0, np.inf)):
            with self.assertRaises(Wrong):
                close("", np.array([got]), np.array([wanted]), 1.0, F32)

    def test_infinity_is_what_too_large_numbers_round_to(self):
        close("", np.array([np.inf]), np.array([65520.0]), 0, F16)
        with self.assertRaises(Wrong):
            close("", np.array([np.inf]), np.array([65500.0]), 0, F16)

    def test_bits_tell_zeros_apart_but_not_nan(self):
        same_bits("", np.array([np.nan], "f4"), -np.array([np.nan], "f4"), F32)
        with self.assertRaises(Wrong):
            same_bits("", np.array([0.0], "f4"), np.array([-0.0], "f4"), F32)

    def test_bf16_rounds_to_nearest_ties_to_even(self):
        for value, wanted in ((1 + 2.0**-8, 1.0), (1 + 3 * 2.0**-8, 1 + 2.0**-6), (1 + 2.0**-7, 1 + 2.0**-7),
                              (3.4e38, np.inf), (-0.0, 0.0), (2.0**-133, 2.0**-133)):
            self.assertEqual(BF16.rounded(np.float64(value)), wanted)
        self.assertTrue(np.isnan(BF16.rounded(np.float64("nan"))))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
