#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""rung.cuda and rung.pycuda on the simulated GPU. Needs NumPy and the program rung ($RUNG_PROGRAM, or the PATH)."""
# pylint: disable=missing-function-docstring
import os
import pickle
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest
from pathlib import Path

import numpy as np

if "RUNG_TEST_CACHE" not in os.environ:
    _CACHE = tempfile.TemporaryDirectory(prefix="rung-cuda-test-")
    os.environ["RUNG_TEST_CACHE"] = _CACHE.name
os.environ["XDG_CACHE_HOME"] = os.environ["RUNG_TEST_CACHE"]

import rung.pycuda.autoinit  # noqa: E402  pylint: disable=wrong-import-position,unused-import
import rung.pycuda.driver as drv  # noqa: E402  pylint: disable=wrong-import-position
from rung import cuda  # noqa: E402  pylint: disable=wrong-import-position
from rung.pycuda import gpuarray  # noqa: E402  pylint: disable=wrong-import-position
from rung.pycuda.compiler import SourceModule  # noqa: E402  pylint: disable=wrong-import-position

TILED = """
#define BLOCK_SIZE %(BLOCK_SIZE)s

__global__ void MatrixMulKernel(float *A, float *B, float *C)
{
  const int wA = %(MATRIX_SIZE)s;
  const int bx = blockIdx.x, by = blockIdx.y, tx = threadIdx.x, ty = threadIdx.y;
  float sum = 0.0f;
  for (int step = 0; step < wA / BLOCK_SIZE; ++step) {
    __shared__ float As[BLOCK_SIZE][BLOCK_SIZE];
    __shared__ float Bs[BLOCK_SIZE][BLOCK_SIZE];
    As[ty][tx] = A[wA * (by * BLOCK_SIZE + ty) + step * BLOCK_SIZE + tx];
    Bs[ty][tx] = B[wA * (step * BLOCK_SIZE + ty) + bx * BLOCK_SIZE + tx];
    __syncthreads();
    for (int k = 0; k < BLOCK_SIZE; ++k)
      sum += As[ty][k] * Bs[k][tx];
    %(SECOND_BARRIER)s
  }
  C[wA * (by * BLOCK_SIZE + ty) + bx * BLOCK_SIZE + tx] = sum;
}
"""

MIXED = r"""
#include <stdio.h>
struct Params { int n; double scale; char tag; };
__constant__ float table[4];
__device__ int counter = 7;
template <class T> __global__ void scaled(T* x, T factor) { x[threadIdx.x] *= factor; }
extern "C" {
__global__ void saxpy(int n, float a, const float* x, float* y) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = a * x[i] + y[i];
}
__global__ void lookup(float* out) { out[threadIdx.x] = table[threadIdx.x % 4]; }
__global__ void count(int* out) { atomicAdd(&counter, 1); if (threadIdx.x == 0) out[0] = blockDim.x; }
__global__ void reversed(float* x) {
  extern __shared__ float tile[];
  tile[threadIdx.x] = x[threadIdx.x];
  __syncthreads();
  x[threadIdx.x] = tile[blockDim.x - 1 - threadIdx.x];
}
__global__ void apply(Params p, double* out) { if (threadIdx.x < p.n) out[threadIdx.x] = p.scale + p.tag; }
__global__ void past_end(float* x, int n) {
  int i = threadIdx.x;
  if (i <= n) x[i] = 1;
}
__global__ void reads_fresh(const float* x, float* y) { y[threadIdx.x] = x[threadIdx.x] + 1; }
__global__ void far_away(float* x) { x[1 << 28] = 1; }
__global__ void waits_for_ever(volatile int* flag) { while (*flag == 0) {} }
__global__ void spins(float* x) { for (float v = 1; v > 0; ) { v = v * 0.5f + 1; x[0] = v; } }
__global__ void says(int n) { printf("n = %d\n", n); }
__global__ void last_wins(int* x) { x[0] = threadIdx.x; }
__global__ void shift(float* to, const float* from, int n) {
  if (threadIdx.x < n) to[threadIdx.x] = from[threadIdx.x];
}
}
"""


class Mixed(unittest.TestCase):
    """RawModule on one source, which is compiled once."""

    @classmethod
    def setUpClass(cls):
        cls.module = cuda.RawModule(code=MIXED, name_expressions=["scaled<double>", "scaled<int>"])

    def kernel(self, name):
        return self.module.get_function(name)

    def test_saxpy_writes_numpy_arrays_in_place(self):
        x, y = np.arange(1000, dtype=np.float32), np.ones(1000, np.float32)
        self.assertIsNone(self.kernel("saxpy")((4,), (256,), (1000, np.float32(2), x, y)))
        np.testing.assert_array_equal(y, 2 * np.arange(1000, dtype=np.float32) + 1)
        np.testing.assert_array_equal(x, np.arange(1000, dtype=np.float32))

    def test_name_expressions_instantiate_templates(self):
        x, n = np.arange(8.0), np.arange(8, dtype=np.int32)
        self.kernel("scaled<double>")((1,), (8,), (x, 3.0))
        self.kernel("scaled<int>")((1,), (8,), (n, 5))
        np.testing.assert_array_equal(x, 3 * np.arange(8.0))
        np.testing.assert_array_equal(n, 5 * np.arange(8))
        with self.assertRaisesRegex(cuda.CudaError, "scaled is a template.*name_expressions"):
            self.kernel("scaled")

    def test_constant_and_device_variables(self):
        table = self.module.get_global("table")
        self.assertEqual(table.nbytes, 16)
        table.write(np.array([1, 2, 4, 8], np.float32))
        out = np.zeros(8, np.float32)
        self.kernel("lookup")((1,), (8,), (out,))
        np.testing.assert_array_equal(out, [1, 2, 4, 8, 1, 2, 4, 8])
        counter = self.module.get_global("counter")
        before = counter.read(np.int32)[0]
        self.kernel("count")((2,), (32,), (np.zeros(1, np.int32),))
        self.assertEqual(counter.read(np.int32)[0], before + 64)
        with self.assertRaisesRegex(cuda.CudaError, "no variable nothing; it has table, counter"):
            self.module.get_global("nothing")

    def test_dynamic_shared_memory(self):
        x = np.arange(64, dtype=np.float32)
        self.kernel("reversed")((1,), (64,), (x,), shared_mem=256)
        np.testing.assert_array_equal(x, np.arange(64)[::-1])
        with self.assertRaises(cuda.BoundsError) as caught:
            self.kernel("reversed")((1,), (64,), (x,), shared_mem=128)
        self.assertIn("tile", str(caught.exception))

    def test_structures_by_value(self):
        layout = np.dtype([("n", np.int32), ("scale", np.float64), ("tag", np.int8)], align=True)
        out = np.zeros(8)
        self.kernel("apply")((1,), (8,), (np.array((5, 0.5, 2), layout)[()], out))
        np.testing.assert_array_equal(out, [2.5] * 5 + [0] * 3)
        packed = np.dtype([("n", np.int32), ("scale", np.float64), ("tag", np.int8)])
        with self.assertRaisesRegex(TypeError, "Params p.*has 24 bytes, the value 13.*align=True"):
            self.kernel("apply")((1,), (8,), (np.array((5, 0.5, 2), packed)[()], out))

    def test_out_of_bounds_names_the_line_of_the_string(self):
        x = np.zeros(16, np.float32)
        with self.assertRaises(cuda.BoundsError) as caught:
            self.kernel("past_end")((1,), (32,), (x, 16))
        found = caught.exception
        self.assertEqual(found.source_line.strip(), "if (i <= n) x[i] = 1;")
        self.assertEqual(found.line, 1 + MIXED.split("\n").index("  if (i <= n) x[i] = 1;"))
        self.assertEqual(found.column, 15)
        self.assertIn("x[16]: x has 16 elements", found.message)
        self.assertIn("<", found.advice)
        script = found.place.script
        self.assertEqual(Path(script[0]).name, "test_cuda_strings.py")
        line = Path(__file__).read_text(encoding="utf-8").split("\n")[script[1] - 1]
        self.assertEqual(line, "  if (i <= n) x[i] = 1;")

    def test_the_same_bug_is_found_again(self):
        x = np.zeros(16, np.float32)
        for _ in range(3):
            self.assertRaises(cuda.BoundsError, self.kernel("past_end"), (1,), (32,), (x, 16))
        y = np.zeros(16, np.float32)
        self.kernel("saxpy")((1,), (16,), (16, np.float32(1), np.ones(16, np.float32), y))
        np.testing.assert_array_equal(y, np.ones(16))

    def test_uninitialized_read(self):
        fresh, out = cuda.DeviceArray(8), np.zeros(8, np.float32)
        self.kernel("saxpy")((1,), (8,), (8, np.float32(0), np.ones(8, np.float32), out))  # stays uninitialized
        with self.assertRaises(cuda.UninitializedError) as caught:
            self.kernel("reads_fresh")((1,), (8,), (fresh, out))
        self.assertIn("x[threadIdx.x] + 1", caught.exception.source_line)
        fresh.set(np.arange(8, dtype=np.float32))
        self.kernel("reads_fresh")((1,), (8,), (fresh, out))
        np.testing.assert_array_equal(out, 1 + np.arange(8))

    def test_a_crash_raises_and_memory_stays(self):
        kept = cuda.to_device(np.arange(4, dtype=np.float32))
        with self.assertRaises(cuda.BoundsError):
            self.kernel("far_away")((1,), (1,), (np.zeros(4, np.float32),))
        np.testing.assert_array_equal(kept.get(), np.arange(4))
        self.kernel("shift")((1,), (32,), (kept, np.ones(4, np.float32), 4))
        np.testing.assert_array_equal(kept.get(), np.ones(4))

    def test_deadlock(self):
        with self.assertRaises(cuda.DeadlockError):
            self.kernel("waits_for_ever")((1,), (1,), (np.zeros(1, np.int32),))

    def test_timeout_names_the_line_and_the_next_launch_works(self):
        lost = cuda.to_device(np.zeros(4, np.float32))
        begin = time.monotonic()
        with cuda.checked(timeout=1.0, counters=False):
            with self.assertRaisesRegex(cuda.TimeoutError, "within 1 s"):
                self.kernel("spins")((1,), (1,), (np.zeros(1, np.float32),))
        self.assertLess(time.monotonic() - begin, 20)
        with self.assertRaisesRegex(cuda.WorkerError, "memory is lost"):
            lost.get()
        y = np.zeros(4, np.float32)
        self.kernel("shift")((1,), (32,), (y, np.ones(4, np.float32), 4))
        np.testing.assert_array_equal(y, np.ones(4))

    def test_printf_goes_to_sys_stdout(self):
        import contextlib  # pylint: disable=import-outside-toplevel
        import io  # pylint: disable=import-outside-toplevel
        text = io.StringIO()
        with contextlib.redirect_stdout(text):
            self.kernel("says")((1,), (1,), (5,))
        self.assertEqual(text.getvalue(), "n = 5\n")

    def test_overlapping_views_share_memory(self):
        x = np.arange(9, dtype=np.float32)
        with cuda.checked(action="collect"):
            self.kernel("shift")((1,), (1,), (x[1:], x[:-1], 8))
        self.assertEqual(x[1], 0)
        with self.assertRaisesRegex(ValueError, "strides"):
            self.kernel("shift")((1,), (1,), (x[::2], x, 1))

    def test_arguments_are_checked_by_name(self):
        x, saxpy = np.zeros(4, np.float32), self.kernel("saxpy")
        for arguments, message in (
                ((4, 2.0, x, x), r"parameter 1 \(float a\): given float 2.0: pass numpy.float32"),
                ((4, np.float32(2), x.astype(np.float64), x), r"parameter 2 \(float const\* x\).*float64.*float32"),
                ((4, np.float32(2), x), r"has 4 parameters \(int n, float a, float const\* x, float\* y\), given 3"),
                ((np.float32(4), np.float32(2), x, x), r"parameter 0 \(int n\)"),
                ((4, np.float32(2), [1.0], x), r"parameter 2 .* is a pointer, given list")):
            with self.assertRaisesRegex(TypeError, message):
                saxpy((1,), (4,), arguments)
        self.assertRaises(OverflowError, saxpy, (1,), (4,), (1 << 40, np.float32(2), x, x))
        saxpy((1,), (4,), (np.int64(4), np.float32(2), x, x))

    def test_refused_launch(self):
        with self.assertRaises(cuda.CudaError) as caught:
            self.kernel("says")((1,), (2048,), (5,))
        self.assertIn("2048", str(caught.exception))

    def test_collects_findings_and_counters(self):
        x, y = np.zeros(1024, np.float32), np.zeros(16, np.float32)
        with cuda.checked(action="collect") as report:
            self.kernel("saxpy")((4,), (256,), (1024, np.float32(1), x, x.copy()))
            self.kernel("past_end")((1,), (32,), (y, 16))
        self.assertEqual([one.kind for one in report.findings], ["out_of_bounds"])
        self.assertEqual(report.counters["saxpy"]["threads"], 1024)
        self.assertEqual(report.counters["saxpy"]["global_load_sectors"], 256)
        lines = report.counters.lines("saxpy")
        self.assertIn("y[i] = a * x[i] + y[i]", " ".join(line["source"] for line in lines))
        self.assertIn("<table>", report._repr_html_())  # pylint: disable=protected-access
        self.assertIn("global_load_sectors", str(report))

    def test_warns(self):
        with cuda.checked(action="warn"), self.assertWarnsRegex(RuntimeWarning, "out_of_bounds"):
            self.kernel("past_end")((1,), (32,), (np.zeros(16, np.float32), 16))

    def test_all_orders_leave_the_results_of_one(self):
        counter, x = self.module.get_global("counter"), np.zeros(1, np.int32)
        before = counter.read(np.int32)[0]
        with cuda.checked(action="collect", orders="all", counters=False) as report:
            self.kernel("count")((1,), (32,), (x,))
            self.kernel("last_wins")((1,), (64,), (x,))
        self.assertEqual(counter.read(np.int32)[0], before + 32)
        self.assertEqual([one.kind for one in report.findings], ["race"])
        self.assertEqual(x[0], 63)

    def test_findings_pickle(self):
        with self.assertRaises(cuda.BoundsError) as caught:
            self.kernel("past_end")((1,), (32,), (np.zeros(16, np.float32), 16))
        again = pickle.loads(pickle.dumps(caught.exception))
        self.assertIsInstance(again, cuda.BoundsError)
        self.assertEqual(str(again), str(caught.exception))
        for error in (cuda.CompileError("a", "b", ["c"]), cuda.TimeoutError("d"), cuda.WorkerError("e")):
            self.assertEqual(str(pickle.loads(pickle.dumps(error))), str(error))

    def test_threads_take_turns(self):
        results = [None] * 7

        def run(number):
            y = np.zeros(100, np.float32)
            for _ in range(3):
                self.kernel("saxpy")((1,), (128,), (100, np.float32(number), np.ones(100, np.float32), y))
            results[number] = y
        threads = [threading.Thread(target=run, args=(i,)) for i in range(7)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for number, y in enumerate(results):
            np.testing.assert_array_equal(y, np.full(100, 3 * number))

    def test_fork(self):
        kept = cuda.to_device(np.arange(4, dtype=np.float32))
        child = os.fork()
        if child == 0:
            code = 1
            try:
                try:
                    kept.get()
                except cuda.WorkerError:
                    y = np.zeros(4, np.float32)
                    self.kernel("shift")((1,), (32,), (y, np.ones(4, np.float32), 4))
                    code = 0 if (y == 1).all() else 2
            finally:
                os._exit(code)
        self.assertEqual(os.waitpid(child, 0)[1], 0)
        np.testing.assert_array_equal(kept.get(), np.arange(4))


class PyCuda(unittest.TestCase):
    """Scripts of PyCUDA's tutorial, with only their import lines changed."""

    def multiply(self, second_barrier):
        size = 32
        module = SourceModule(TILED % {"BLOCK_SIZE": 16, "MATRIX_SIZE": size, "SECOND_BARRIER": second_barrier})
        a_cpu = np.random.default_rng(1).standard_normal((size, size)).astype(np.float32)
        b_cpu = np.random.default_rng(2).standard_normal((size, size)).astype(np.float32)
        a_gpu, b_gpu = gpuarray.to_gpu(a_cpu), gpuarray.to_gpu(b_cpu)
        c_gpu = gpuarray.empty((size, size), np.float32)
        module.get_function("MatrixMulKernel")(a_gpu, b_gpu, c_gpu, grid=(2, 2), block=(16, 16, 1))
        np.testing.assert_allclose(c_gpu.get(), a_cpu @ b_cpu, atol=1e-4)

    def test_tiled_multiply(self):
        self.multiply("__syncthreads();")

    def test_a_missing_barrier_is_a_race_that_names_both_lines(self):
        with self.assertRaises(cuda.RaceError) as caught:
            self.multiply("")
        found = caught.exception
        lines = {found.source_line.strip(), found.other.text.strip()}
        self.assertIn("sum += As[ty][k] * Bs[k][tx];", lines)
        self.assertTrue(any(line.startswith(("As[ty][tx] =", "Bs[ty][tx] =")) for line in lines), lines)
        self.assertIn("__syncthreads()", found.advice)
        text = str(found)
        self.assertIn(f"line {found.line}", text)
        self.assertIn(f"line {found.other_line}", text)
        self.assertIn("test_cuda_strings.py:", text)
        self.assertNotIn("kernel.cu", text)

    def test_vector_add(self):
        module = SourceModule("""
        #include <math.h>
        __constant__ float bias[1];
        __global__ void multiply_them(float *dest, float *a, float *b)
        {
          const int i = threadIdx.x;
          dest[i] = a[i] * b[i] + bias[0];
        }
        """)
        multiply_them = module.get_function("multiply_them")
        a = np.random.default_rng(1).standard_normal(400).astype(np.float32)
        b, dest = np.ones_like(a), np.zeros_like(a)
        bias, size = module.get_global("bias")
        self.assertEqual(size, 4)
        drv.memcpy_htod(bias, np.array([1], np.float32))
        multiply_them(drv.Out(dest), drv.In(a), drv.In(b), block=(400, 1, 1), grid=(1, 1))
        np.testing.assert_array_equal(dest, a + 1)
        a_gpu, d_gpu = drv.mem_alloc(a.nbytes), drv.mem_alloc(a.nbytes)
        drv.memcpy_htod(a_gpu, a)
        self.assertGreaterEqual(multiply_them(d_gpu, a_gpu, drv.In(b), block=(400, 1, 1), time_kernel=True), 0)
        drv.memcpy_dtoh(dest, d_gpu)
        np.testing.assert_array_equal(dest, a + 1)
        dest[:] = 0
        multiply_them.prepare("PPP")
        multiply_them.prepared_call((1, 1), (400, 1, 1), d_gpu, a_gpu, int(a_gpu))
        np.testing.assert_allclose(drv.from_device_like(d_gpu, dest), a * a + 1, rtol=1e-5)
        with self.assertRaisesRegex(ValueError, "^must specify block size$"):
            multiply_them(drv.Out(dest), drv.In(a), drv.In(b))
        with self.assertRaisesRegex(ValueError, "extra keyword arguments: blocks"):
            multiply_them(drv.Out(dest), drv.In(a), drv.In(b), blocks=(1, 1, 1))
        with self.assertRaisesRegex(TypeError, r"invalid type on parameter #2 \(0-based\)"):
            multiply_them(drv.Out(dest), drv.In(a), 5, block=(400, 1, 1))
        with self.assertRaisesRegex(TypeError, "parameter 1.*float64"):
            multiply_them(drv.Out(dest), drv.In(a.astype(float)), drv.In(b), block=(400, 1, 1))
        other = SourceModule("__global__ void twice(float* x) { x[threadIdx.x] *= 2; }")
        other.get_function("twice")(a_gpu, block=(400, 1, 1))  # memory of one module in another
        drv.memcpy_dtoh(dest, a_gpu)
        np.testing.assert_array_equal(dest, 2 * a)
        start, end = drv.Event(), drv.Event()
        start.record(drv.Stream())
        drv.Context.synchronize()
        self.assertGreaterEqual(start.time_till(end.record().synchronize()), 0)

    def test_modules_of_one_kernel_name_do_not_mix(self):
        for count in (8, 4, 16):
            module = SourceModule("""
            __global__ void __launch_bounds__(%(N)d) turn(float* x) {
              __shared__ float tile[%(N)d];
              tile[threadIdx.x] = x[threadIdx.x];
              __syncthreads();
              x[threadIdx.x] = tile[%(N)d - 1 - threadIdx.x];
            }""" % {"N": count})
            turn = module.get_function("turn")
            self.assertEqual(turn.shared_size_bytes, 4 * count)
            self.assertEqual(turn.max_threads_per_block, count)
            x = np.arange(count, dtype=np.float32)
            turn(drv.InOut(x), block=(count, 1, 1))
            np.testing.assert_array_equal(x, np.arange(count)[::-1])

    def test_device_attributes(self):
        device = drv.Device(0)
        self.assertEqual(device.compute_capability(), (9, 0))
        self.assertEqual(device.get_attribute(drv.device_attribute.WARP_SIZE), 32)
        self.assertEqual(device.max_threads_per_block, 1024)
        self.assertGreater(drv.mem_get_info()[1], 1 << 30)


class Compiling(unittest.TestCase):
    """Errors of the compiler, and the cache."""

    def test_errors_have_lines_of_the_string(self):
        with self.assertRaises(cuda.CompileError) as caught:
            SourceModule("\n__global__ void f(float* a) {\n  a[nothing] = 1;\n}\n")
        self.assertIn("the kernel string:3:5: error: 'nothing' was not declared".replace("'", ""),
                      caught.exception.stderr.replace("‘", "").replace("’", ""))
        self.assertNotIn("kernel.cu", str(caught.exception))

    def test_source_is_compiled_once(self):
        source = "extern \"C\" __global__ void once(int* x) { x[0] = 1; }"
        cuda.RawModule(code=source).compile()
        begin = time.monotonic()
        cuda.RawModule(code=source).compile()
        self.assertLess(time.monotonic() - begin, 0.1)

    def test_headers_beside_the_script_are_watched(self):
        with tempfile.TemporaryDirectory() as folder:
            header = Path(folder) / "value.h"
            for value in (1, 2):
                header.write_text(f"#define VALUE {value}\n", encoding="utf-8")
                os.utime(header, ns=(value, value))
                source = '#include "value.h"\nextern "C" __global__ void f(int* x) { x[0] = VALUE; }'
                kernel = cuda.RawKernel(source, "f", ("-I", folder))
                x = np.zeros(1, np.int32)
                kernel((1,), (1,), (x,))
                self.assertEqual(x[0], value)

    def test_kernel_declared_extern_c_alone(self):
        kernel = cuda.RawKernel("""
extern "C" __global__ void turn(float* x, int n) {
  __shared__ float tile[64];
  tile[threadIdx.x] = x[threadIdx.x];
  if (threadIdx.x <= n) x[threadIdx.x] = tile[63 - threadIdx.x];
}""", "turn")
        x = np.zeros(32, np.float32)
        with cuda.checked(action="collect", counters=False) as report:
            kernel((1,), (64,), (x[:32], 32))
        found = {one.kind: one for one in report.findings}
        self.assertEqual({found["race"].line, found["race"].other_line}, {4, 5})
        self.assertIn("__syncthreads()", found["race"].advice)
        self.assertIn("x[32]: x has 32 elements", found["out_of_bounds"].message)

    def test_a_former_kernel_of_that_name_does_not_count(self):
        """A kernel edited in a notebook keeps its name, but loses its tile and its launch bounds."""
        before = SourceModule("""
__global__ void __launch_bounds__(16) edited(int* x) {
  __shared__ int tile[64];
  tile[threadIdx.x] = x[threadIdx.x];
  x[threadIdx.x] = tile[threadIdx.x];
}""").get_function("edited")
        after = SourceModule("__global__ void edited(int* x) { x[threadIdx.x] += 1; }").get_function("edited")
        x = np.zeros(32, np.int32)
        before(drv.InOut(x), block=(16, 1, 1))
        after(drv.InOut(x), block=(32, 1, 1))
        np.testing.assert_array_equal(x, 1)
        self.assertEqual((before.shared_size_bytes, after.shared_size_bytes), (256, 0))
        self.assertEqual(after.max_threads_per_block, 1024)

    def test_no_compiler(self):
        program = ("from rung import cuda\n"
                   "try: cuda.RawModule(code='extern \"C\" __global__ void f() {}').compile()\n"
                   "except cuda.CudaError as error: print(error)\n")
        from rung.cuda import _compile  # pylint: disable=import-outside-toplevel
        done = subprocess.run([sys.executable, "-c", program],
                              env={**os.environ, "CXX": "g++-none", "RUNG_PROGRAM": _compile.rung_program()}, text=True,
                              capture_output=True, check=True)
        self.assertEqual(done.stdout.count("\n"), 1)
        self.assertIn("apt install g++", done.stdout)

    def test_the_worker_ends_with_python(self):
        program = ("import os, signal, threading, numpy\n"
                   "from rung import cuda\n"
                   "from rung.cuda import _worker\n"
                   "source = '__global__ void spins(volatile float* x) { for (float v = 1; v > 0;) x[0] = v + 1; }'\n"
                   "kernel = cuda.RawModule(code=source, name_expressions=['spins']).get_function('spins')\n"
                   "print(_worker.current()._process.pid, flush=True)\n"
                   "threading.Timer(1, lambda: os.kill(os.getpid(), signal.SIGKILL)).start()\n"
                   "kernel((1,), (1,), (numpy.zeros(1, numpy.float32),))\n")
        done = subprocess.run([sys.executable, "-c", program], text=True,
                              capture_output=True, check=False)
        self.assertEqual(done.returncode, -signal.SIGKILL, done.stderr)
        worker = int(done.stdout)
        for _ in range(50):
            if not Path(f"/proc/{worker}").exists() or "Z" in Path(f"/proc/{worker}/stat").read_text().split()[2]:
                return
            time.sleep(0.1)
        self.fail("the worker still runs")


if __name__ == "__main__":
    unittest.main()
