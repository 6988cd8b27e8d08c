#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The cell magic %%cuda. Needs NumPy and the program rung; the last test is skipped without IPython."""
# pylint: disable=missing-function-docstring
import contextlib
import io
import os
import tempfile
import unittest

import numpy as np

if "RUNG_TEST_CACHE" not in os.environ:
    _CACHE = tempfile.TemporaryDirectory(prefix="rung-cuda-test-")
    os.environ["RUNG_TEST_CACHE"] = _CACHE.name
os.environ["XDG_CACHE_HOME"] = os.environ["RUNG_TEST_CACHE"]

from rung import cuda, notebook_magic  # noqa: E402  pylint: disable=wrong-import-position

KERNELS = """
template <class T> __global__ void scaled(T* x) { x[threadIdx.x] *= 3; }
__global__ void twice(float* x)
{
  x[threadIdx.x] *= FACTOR;
}
"""
PROGRAM = r"""
#include <cstdio>
__global__ void sum(int* total) { *total += 1; }
int main(int count, char** words) {
  int* total;
  cudaMallocManaged(&total, sizeof(int));
  *total = 0;
  sum<<<1, 64>>>(total);
  cudaDeviceSynchronize();
  printf("%d word: %s\n", count - 1, words[1]);
}
"""


def run_cell(line, cell, namespace):
    text = io.StringIO()
    with contextlib.redirect_stdout(text):
        notebook_magic.cuda_cell(line, cell, namespace)
    return text.getvalue()


class Notebook(unittest.TestCase):
    """Cells with kernels, and with whole programs."""

    def test_kernels_become_functions(self):
        names = {}
        text = run_cell("-DFACTOR=2", KERNELS, names)
        self.assertIn("kernels: twice\n", text)
        self.assertIn("name_expressions=[...]): scaled", text)
        x = np.arange(32, dtype=np.float32)
        names["twice"]((1,), (32,), (x,))
        np.testing.assert_array_equal(x, 2 * np.arange(32))
        with self.assertRaisesRegex(cuda.BoundsError, "line 5, column 3 of the cell"):
            names["twice"]((1,), (33,), (x,))

    def test_program_runs_and_findings_name_the_cell(self):
        text = run_cell("-- hello", PROGRAM, {})
        self.assertIn("1 word: hello\n", text)
        self.assertIn("race (global)", text)
        self.assertIn("at cell.cu:3\n", text)
        self.assertIn("rung emulate found a bug", text)

    def test_ipython(self):
        try:
            from IPython.core.interactiveshell import InteractiveShell  # pylint: disable=import-outside-toplevel
        except ImportError:
            self.skipTest("IPython is not installed")
        shell = InteractiveShell.instance()
        shell.run_line_magic("load_ext", "rung.notebook_magic")
        with contextlib.redirect_stdout(io.StringIO()):
            shell.run_cell_magic("cuda", "-DFACTOR=2", KERNELS)
        self.assertIn("twice", shell.user_ns)


if __name__ == "__main__":
    unittest.main()
