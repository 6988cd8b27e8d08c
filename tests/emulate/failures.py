# SPDX-License-Identifier: Apache-2.0
"""How `rung emulate` ends failing programs: its exit code, a message that points into the source, no remaining files.
usage: failures.py RUNG [CASE ...]"""
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

KERNEL = "__global__ void kernel(int* p) {\n%s\n}\nint main() {\n  int* p = nullptr;\n%s\n}\n"
ALLOCATED = ("  cudaMalloc(&p, 64); cudaMemset(p, 0, 64);\n  kernel<<<1, 32>>>(p);\n"
             "  return cudaDeviceSynchronize() == %s ? 0 : 3;")
LAUNCHED = ("  cudaMalloc(&p, %d); cudaMemset(p, 0, 64);\n  kernel<<<%d, %d>>>(p);\n"
            "  return cudaDeviceSynchronize();")
LAUNCHED_AGAIN = ("  cudaMalloc(&p, 64); cudaMemset(p, 0, 64);\n  for (int i = 0; i < 20; ++i) kernel<<<1, 8>>>(p);\n"
                  "  return cudaDeviceSynchronize();")

ON_HOST = ("__global__ void add(const float* a, float* b) {\n  b[threadIdx.x] = a[threadIdx.x] + 1;\n}\n%s\n"
           "int main() {\n  float* b;\n  cudaMalloc(&b, 128);\n%s\n  add<<<1, 32>>>(a, b);\n"
           "  return cudaDeviceSynchronize() == cudaErrorIllegalAddress ? 0 : 3;\n}\n")
# No device array is named: the address belongs to none.
SAID_OF_HOST = ("a read of 4 bytes of memory of the host, which the GPU cannot read\n  at %s.cu:2\n"
                "  kernel add, block (0, 0, 0), thread (0, 0, 0)\n"
                "  pass memory of the device: allocate it by cudaMalloc and copy by cudaMemcpy")

STENCIL = ("__global__ void stencil(const float* in, float* out) {\n  __shared__ float tile[%s];\n"
           "  const int t = threadIdx.x, i = blockIdx.x * 64 + t, l = %s;\n  tile[l] = in[i];\n  __syncthreads();\n"
           "  float sum = 0;\n  %s\n  out[i] = sum;\n}\nint main() {\n  float *in, *out;\n  cudaMalloc(&in, 1024);\n"
           "  cudaMalloc(&out, 1024);\n  cudaMemset(in, 0, 1024);\n  stencil<<<4, 64>>>(in, out);\n"
           "  return cudaDeviceSynchronize();\n}\n")

FREED = ("#include <cstdio>\n__global__ void fill(int* p, int n) {\n"
         "  for (int i = threadIdx.x; i < n; i += 32) p[i] = i;\n}\n"
         '__global__ void hello() { printf("hello\\n"); }\nint main() {\n  int *p, *q;\n  cudaMalloc(&p, 64);\n'
         "  cudaFree(p);\n  cudaMalloc(&q, 1 << 20);\n  cudaFree(q);\n  fill<<<1, 32>>>(p, 1000);\n"
         "  fill<<<1, 32>>>(q, 1 << 18);\n  hello<<<1, 1>>>();\n"
         "  return cudaDeviceSynchronize() == cudaErrorIllegalAddress ? 0 : 3;\n}\n")

HEADERS = ("cooperative_groups.h cooperative_groups/reduce.h cublasLt.h cublas_v2.h cuda.h cuda_bf16.h "
           "cuda_fp16.h cuda_fp8.h cuda_pipeline.h curand.h curand_kernel.h mma.h cuda/atomic "
           "cuda/barrier cuda/pipeline").split()

# name: (source, options, exit code, texts in standard error)
CASES = {
    "null": (KERNEL % ("  p[threadIdx.x] = 1;", "  kernel<<<1, 1>>>(p);\n  return cudaDeviceSynchronize() == "
                       "cudaErrorIllegalAddress ? 0 : 3;"), [], 66, ["null.cu:2", "kernel", "null pointer"]),
    "wait": (KERNEL % ("  while (*(volatile int*)p == 0) {}", ALLOCATED % "cudaErrorLaunchTimeout"), [], 66,
             ["wait.cu:2", "deadlock"]),
    # So many threads spin that each round of polls takes a while.
    "wait_of_many": (KERNEL % ("  while (atomicAdd(p, 0) == 0) {}", LAUNCHED % (64, 64, 256)), ["--timeout", "100"], 66,
                     ["wait_of_many.cu:2", "deadlock"]),
    # The host waits for a kernel that waits for the host; and for one that does not.
    "unanswered": (KERNEL % ("  while (*(volatile int*)p == 0) {}",
                             "  cudaMallocHost(&p, 64); *p = 0;\n  kernel<<<2, 32>>>(p);\n"
                             "  if (cudaGetLastError() != cudaSuccess) return 4;\n"
                             "  return cudaDeviceSynchronize() == cudaErrorLaunchTimeout ? 0 : 3;"), [], 66,
                   ["unanswered.cu:2", "deadlock"]),
    "abandoned": (KERNEL % ("  while (*(volatile int*)p == 0) {}",
                            "  cudaMallocHost(&p, 64); *p = 0;\n  kernel<<<2, 32>>>(p);\n"
                            "  return cudaStreamQuery(0) == cudaErrorNotReady ? 44 : 3;"), [], 44, []),
    "overtime": (KERNEL % ("  while (*(volatile int*)p == 0) {}",
                           "  cudaMallocHost(&p, 64); *p = 0;\n  kernel<<<2, 32>>>(p);\n"
                           "  for (volatile int i = 0;; ++i) {}"), ["--timeout", "1"], 142,
                 ["overtime.cu:2", "the time is up while a kernel runs"]),
    "assertion": ("#include <cassert>\n" + KERNEL % ("  assert(threadIdx.x < 5);", ALLOCATED % "cudaErrorAssert"), [],
                  66, ["assertion.cu:3", "thread (5, 0, 0)", "threadIdx.x < 5"]),
    "barrier": (KERNEL % ("  if (threadIdx.x < 7) __syncthreads();\n  else { p[0] = 1; __syncthreads(); }",
                          ALLOCATED % "cudaSuccess"), [], 66,
                ["lanes of warp 0 wait at two calls of __syncthreads()", "barrier.cu:3", "barrier.cu:2",
                 "put one barrier behind the if of line 2"]),
    # A different reduction at the barrier cannot complete with the others.
    "barrier_mixed": (KERNEL % ("  if (threadIdx.x < 7) __syncthreads();\n  else p[0] = __syncthreads_or(1);",
                                ALLOCATED % "cudaErrorLaunchFailure"), [], 66,
                      ["barrier_mixed.cu:3", "barrier_mixed.cu:2", "another operation of barrier 0"]),
    "segfault": ("int main() {\n  volatile int* p = nullptr;\n  *p = 1;\n}\n", [], 139, ["segfault.cu:3"]),
    "exception": ("#include <stdexcept>\nint main() {\n  throw std::runtime_error(\"boom\");\n}\n", [], 134,
                  ["boom", "exception.cu:3"]),
    "refused": (KERNEL % ("  p[0] = 1;", "  cudaMalloc(&p, 64);\n  kernel<<<1, 2000>>>(p);"), [], 66,
                ["refused.cu:7", "2000x1x1"]),
    "compile": (KERNEL % ("  p[0] = undeclared;", ""), [], 2, ["compile.cu:2", "undeclared"]),
    "library": ("#include <vector>\n#include <cutlass/gemm.h>\nint main() {}\n", [], 3,
                ["library.cu:2", "cutlass/gemm.h, of CUTLASS", "is no part"]),
    # Whether or not an installed toolkit provides the header.
    "toolkit": ("#include <cuComplex.h>\n#include <cufft.h>\nint main() {}\n", [], 3,
                ["cufft.h, of cuFFT", "is no part"]),
    # The host's assertion fails because of the finding, which must still be reported.
    "host_assertion": ("#include <cassert>\n" + KERNEL % (
        "  p[0] = p[1] + 1;", "  int h = 0;\n  cudaMalloc(&p, 64);\n  kernel<<<1, 1>>>(p);\n"
        "  cudaMemcpy(&h, p, 4, cudaMemcpyDeviceToHost);\n  assert(h == 1);"), [], 66,
        ["host_assertion.cu:3", "uninitialized", "h == 1"]),
    "host_exception": ("#include <stdexcept>\n" + KERNEL % (
        "  p[0] = p[1] + 1;", "  cudaMalloc(&p, 64);\n  kernel<<<1, 1>>>(p);\n  cudaDeviceSynchronize();\n"
        "  throw std::runtime_error(\"boom\");"), [], 66, ["host_exception.cu:3", "uninitialized", "boom"]),
    "misaligned": (KERNEL % ("  const float4 v = *(const float4*)(p + 1);\n  p[8] = (int)(v.x + v.w);",
                             ALLOCATED % "cudaSuccess"), [], 66, ["misaligned.cu:2", "misaligned", "16 bytes"]),
    "instruction": (KERNEL % ('  asm volatile("frobnicate.b32 %0, 1;" : "=r"(p[0]));', ""), [], 3,
                    ["instruction.cu:2", "frobnicate.b32"]),
    # An unsupported variant of a supported instruction.
    "variant": (KERNEL % ('  asm volatile("cp.reduce.async.bulk.global.shared::cta.bulk_group.min.u32 [%0], [%1], 16;"'
                          ' :: "l"(p), "r"(0));', ""), [], 3, ["variant.cu:2", "bulk_group.min.u32"]),
    "memory": ("#include <vector>\nint main() {\n  std::vector<char> all(size_t(1) << 60);\n  return all[5];\n}\n", [],
               134, ["bad_alloc", "memory.cu:3"]),
    # A block's earlier writes are not ordered by what it later learns of another block: plain sums, then a counter.
    "late": (KERNEL % ("  p[1] += 1;\n  __threadfence();\n  atomicAdd(p, 1);", LAUNCHED % (64, 4, 1)), [], 66,
             ["late.cu:2", "race"]),
    "unlock": (KERNEL % ("  while (atomicCAS(p, 0, 1) != 0) {}\n  __threadfence();\n  p[1] += 1;\n  atomicExch(p, 0);",
                         LAUNCHED % (64, 4, 1)), [], 66, ["unlock.cu:4", "race"]),
    "unawaited": ("#include <cuda_pipeline.h>\n" + KERNEL % (
        "  __shared__ int s[32];\n  __pipeline_memcpy_async(s + threadIdx.x, p + threadIdx.x, 4);\n"
        "  __pipeline_commit();\n  __syncthreads();\n  p[threadIdx.x + 32] = s[31 - threadIdx.x];",
        LAUNCHED % (256, 1, 32)), [], 66, ["unawaited.cu:4", "race"]),
    "behind": (KERNEL % ("  __shared__ int s[32];\n  s[threadIdx.x + 1] = 1;\n  __syncthreads();\n  p[0] = s[1];",
                         LAUNCHED % (64, 1, 32)), [], 66, ["behind.cu:3", "out_of_bounds (shared)"]),
    # The value read before a compare-and-swap is a guess: no race.
    "guess": (KERNEL % ("  int seen = *p, old;\n  do {\n    old = seen;\n    seen = atomicCAS(p, old, old + 1);\n"
                        "  } while (seen != old);", LAUNCHED % (64, 4, 64)), [], 0, []),
    # Errors of ptxas.
    "shared_array": (KERNEL % ("  __shared__ int wide[13000];\n  wide[p[0]] = 1;", ""), [], 2,
                     ["shared_array.cu:2", "void kernel(int*)", "wide has more bytes", "52000"]),
    "shared_arrays": (KERNEL % ("  __shared__ int a[8000], b[8000];\n  a[p[0]] = b[p[1]] = 1;",
                                ALLOCATED % "cudaErrorInvalidValue"), [], 66,
                      ["shared_arrays.cu:8", "kernel", "64000 bytes of static shared memory: ptxas refuses more"]),
    "constants": ("__constant__ int a[9000];\nnamespace inner { __constant__ int b[9000]; }\n" + KERNEL % (
        "  p[0] = a[0] + inner::b[0];", ALLOCATED % "cudaSuccess"), [], 2,
        ["constants.cu: its __constant__ variables have 72000 bytes"]),
    "host_call": ("float half_of(float x) {\n  return x / 2;\n}\n" + KERNEL % ("  p[0] = half_of(3);", ""), [], 2,
                  ["host_call.cu:5", 'calling a __host__ function ("half_of") from a __global__ function ("kernel")']),
    "host_call_below": ("static int* after_it(int* p) { return p + 1; }\n__device__ int one(int* p) {\n"
                        "  return *after_it(p);\n}\n" + KERNEL % ("  p[0] = one(p);", ""), [], 2,
                        ["host_call_below.cu:3", '("after_it") from a __device__ function ("one")']),
    "cublas": ("#include <cublas_v2.h>\nint main() {\n  return cublasSsymm((cublasHandle_t)0, 1, 2, 3);\n}\n", [], 2,
               ["cublas.cu:3", "cublasSsymm is not part of rung's cuBLAS: docs/emulate.md lists what is"]),
    "cublas_64": ("#include <cublas_v2.h>\nint main() {\n  return cublasSsymm_64((cublasHandle_t)0, 1, 2);\n}\n", [],
                  2, ["cublas_64.cu:3", "cublasSsymm_64 is not part of rung's cuBLAS"]),
    # Only the tenth launch differs.
    "repeated": (KERNEL % ("  if (++p[threadIdx.x] == 10) p[16] = 1;", LAUNCHED_AGAIN), ["--checks", "4"], 0,
                 ["5 of 20 launches were checked, the first 4 and 1 later one; 15 that repeated them ran"]),
    "always": (KERNEL % ("  if (++p[threadIdx.x] == 10) p[16] = 1;", LAUNCHED_AGAIN), ["--checks", "always"], 66,
               ["always.cu:2", "out_of_bounds"]),
    "checks": (KERNEL % ("", ""), ["--checks", "0"], 2, ["--checks: given \"0\", accepted are repeated, always and"]),
    # A program may define macros of one letter: our headers use no such name but T, like the toolkit's.
    "letters": ("".join(f"#include <{one}>\n" for one in HEADERS) + "int main() { return A - 'A'; }\n",
                [f"-D{one}='{one}'" for one in "ABCDEFGHIJKLMNOPQRSUVWXYZ"], 0, []),
    "before": (KERNEL % ("  p[(int)threadIdx.x - 1] = 1;", ALLOCATED % "cudaSuccess"), [], 66,
               ["before.cu:2", "out_of_bounds", "p[-1]: p has 16 elements"]),
    # No condition fixes an index that is wrong for all threads alike.
    "literal": ("__global__ void kernel(int* p) { __shared__ int s[33]; s[33] = 1; __syncthreads(); p[0] = s[33]; }\n"
                + KERNEL.partition("\n}\n")[2] % (LAUNCHED % (64, 1, 1)), [], 66,
                ["index 33 of s, which has 33 elements", "\n  keep the index 33 of s between 0 and 32\n"]),
    "argument": (KERNEL.replace("int* p", "int* p, int n", 1) % (
        "  p[n] = 1;", "  cudaMalloc(&p, 64);\n  kernel<<<1, 1>>>(p, 16);"), [], 66,
        ["argument.cu:2", "\n  keep the index n of p between 0 and 15\n"]),
    # The length of a layer is a product.
    "layers": (KERNEL.replace("int* p", "int* p, int h, int w", 1) % (
        "  const int x = threadIdx.x, y = threadIdx.y, z = blockIdx.x;\n  p[(z - 1) * h * w + y * w + x] = 1;",
        "  cudaMalloc(&p, 96);\n  kernel<<<2, dim3(4, 3)>>>(p, 3, 4);"), [], 66,
        ["layers.cu:3", "\n  guard the access: if (z - 1 >= 0)\n"]),
    "host_pointer": (KERNEL % ("  p[threadIdx.x] = 1;", "  p = new int[32]();\n  kernel<<<1, 32>>>(p);\n"
                               "  return cudaDeviceSynchronize() == cudaErrorIllegalAddress ? 0 : 3;"), [], 66,
                     ["host_pointer.cu:2", "a write of 4 bytes of memory of the host"]),
    "host_stack": (ON_HOST % ("", "  float a[32] = {};"), [], 66, [SAID_OF_HOST % "host_stack"]),
    "host_malloc": (ON_HOST % ("#include <cstdlib>", "  float* a = (float*)calloc(32, 4);"), [], 66,
                    [SAID_OF_HOST % "host_malloc"]),
    # So large that malloc maps it next to the device's memory.
    "host_vector": (ON_HOST % ("#include <vector>", "  std::vector<float> v(1 << 20);\n  float* a = v.data();"), [], 66,
                    [SAID_OF_HOST % "host_vector"]),
    # A guard would omit the neighbors of a block's first and last elements.
    "halo": (STENCIL % ("64", "t", "for (int k = -2; k <= 2; ++k) sum += tile[l + k];"), [], 66,
             ["index -2 of tile, which has 64 elements", "\n  give tile a halo: the window tile[l + k] reaches "
              "elements of neighboring blocks; declare tile that much longer on both sides, and load those"]),
    "halo_of_three": (STENCIL % ("64", "t", "sum = tile[l - 1] + tile[l] + tile[l + 1];"), [], 66,
                      ["index -1 of tile", "\n  give tile a halo: the window tile[l - 1] reaches"]),
    "halo_not_loaded": (STENCIL % ("68", "t + 2", "for (int k = -2; k <= 2; ++k) sum += tile[l + k];"), [], 66,
                        ["uninitialized (shared): a read of 4 bytes that no thread has written: tile[0]",
                         "\n  let a thread of the block write it before it is read"]),
    # Freed device memory is not host memory: the launch ends, and later calls work.
    "freed": (FREED, [], 66, ["freed.cu:3", "that have been freed at ", "freed.cu:9"]),
    "freed_unwatched": (FREED, ["--no-checks"], 66, ["that have been freed at ", "freed_unwatched.cu:9"]),
    "host_read": (KERNEL % ("  p[threadIdx.x] = 1;", "  cudaMalloc(&p, 64);\n  kernel<<<1, 16>>>(p);\n"
                            "  cudaDeviceSynchronize();\n  return p[3];"), [], 66,
                  ["host_access", "host_read.cu:9", "host code reads byte 12 of 64 bytes of cudaMalloc"]),
    "host_write": (KERNEL % ("  p[threadIdx.x] = 1;", "  cudaMalloc(&p, 64);\n  p[3] = 1;"), [], 66,
                   ["host_access", "host_write.cu:7", "host code writes byte 12 of 64 bytes of cudaMalloc"]),
    # malloc aborts while it holds its lock: the findings are reported nevertheless.
    "damaged": ("#include <cstdio>\n#include <cstdlib>\n#include <cstring>\n#include <thread>\n" + KERNEL % (
        "  p[threadIdx.x + 1] = 1;",
        "  cudaMalloc(&p, 64);\n  kernel<<<1, 16>>>(p);\n  cudaDeviceSynchronize();\n"
        "  std::thread other([] {});\n  other.join();\n  volatile size_t size = 100000;\n"
        "  void* volatile last;\n"
        "  for (int i = 0; i < 4000; ++i) last = std::malloc(size);\n"
        "  std::memset(last, 0xff, size + 64);\n  last = std::malloc(size);\n  std::printf(\"%p\", last);"), [], 134,
                ["damaged.cu:6", "out_of_bounds", "Its heap is damaged"]),
    # An invalid launch: one message that points at it, and none from our headers.
    "count": (KERNEL % ("  p[0] = 1;", "  kernel<<<1, 32>>>(p, 5);"), [], 2,
              ["count.cu:6:20: error: too many arguments to function ‘void kernel(int*)’"]),
    "types": ("#include <vector>\n" + KERNEL % (
        "  p[0] = 1;", "  std::vector<int> v(8);\n  kernel<<<1, 32>>>(v);"), [], 2, [
            "types.cu:8:", "error: cannot convert ‘std::vector<int>’ to ‘int*’"]),
    "misspelt": (KERNEL % ("  p[0] = 1;", "  kernle<<<1, 32>>>(p);"), [], 2,
                 ["misspelt.cu:6:3: error: ‘kernle’ was not declared in this scope; did you mean ‘kernel’?"]),
    # Compiled twice, as by default: one line per error, and none from the second compilation.
    "both": (KERNEL % ("  p[0] = 1;", "  kernel<<<1, 32>>>(1.5);\n  kernle<<<1, 32>>>(p);"),
             ["--checks", "repeated"], 2,
             ["both.cu:6:21: error: cannot convert ‘double’ to ‘int*’\nboth.cu:7:3: error: ‘kernle’ was not declared "
              "in this scope; did you mean ‘kernel’?\nrung: both.cu: does not compile\n"]),
    "called": (KERNEL % ("  p[0] = 1;", "  cudaMalloc(&p, 64);\n  kernel(p);"), [], 66,
               ["the kernel kernel is called as a function", "called.cu:7", "kernel<<<blocks, threads>>>(...)"]),
    "extent": ("__global__ void kernel(int n) {\n  __shared__ float s[n];\n  s[threadIdx.x] = 1;\n}\nint main() {}\n",
               [], 2,
               ["extent.cu:2: error: a __shared__ array needs a constant extent, unlike float [n]",
                "extern __shared__"]),
    "untyped": ("__global__ void kernel(int* p) {\n  extern __shared__ a_s[];\n  p[0] = a_s[0];\n}\nint main() {}\n",
                [], 2, ["untyped.cu:2: error: the __shared__ variable a_s has no type",
                        "as in extern __shared__ float a_s[];"]),
    "untyped_static": ("__global__ void kernel(int* p) {\n  __shared__ s[32];\n  p[0] = s[0];\n}\nint main() {}\n",
                       [], 2, ["untyped_static.cu:2: error: the __shared__ variable s has no type"]),
    # Each block holds one lock and waits for the other's.
    "crossed": (KERNEL % (
        "  const int mine = blockIdx.x;\n  while (atomicCAS(p + mine, 0, 1) != 0) {}\n  atomicAdd(p + 2, 1);\n"
        "  while (atomicAdd(p + 2, 0) < 2) {}\n  while (atomicCAS(p + 1 - mine, 0, 1) != 0) {}\n  atomicExch(p, 0);",
        LAUNCHED % (64, 2, 1)), [], 66, ["deadlock", "crossed.cu:6"]),
    "returns": ("__global__ int kernel(int* p) { return *p; }\nint main() {}\n", [], 2,
                ["returns.cu:1: a kernel (__global__) must return void, and kernel returns int"]),
    # Columns refer to the user's line, which is shorter than the rewritten one.
    "columns": ("#define BLOCK 32\n__global__ void kernel(int* p) {\n"
                "  __shared__ int tile[BLOCK];  tile[0] = unknown;\n  p[0] = tile[0];\n}\nint main() {\n"
                "\tint* p = nullptr; kernel<<<1, BLOCK>>>(p); missing(p);\n"
                "  cudaMemcpy(p, p, 4, cudaMemcpyDeviceToHost); return wrong;\n}\n", [], 2,
                ["columns.cu:3:42: error: \u2018unknown\u2019", " " * 41 + "^~~~~~~\n", "columns.cu:7:52: error:",
                 "columns.cu:8:55: error: \u2018wrong\u2019", "| " + " " * 54 + "^~~~~\n"]),
    "columns_launch": ("__global__ void kernel(int* p) {}\nint main() {\n"
                       "  int* p = nullptr;  kernel<<<1, 32>>>(p, 3);\n}\n", [], 2,
                       ["columns_launch.cu:3:39: error: too many arguments to function"]),
    # Options: unknown ones are rejected, nvcc's are accepted.
    "option": ("int main() {}\n", ["--counterz"], 2, ["--counterz"]),
    "order": ("int main() {}\n", ["--order", "sideways"], 2,
              ["--order: given \"sideways\", accepted are forward, reverse, random, random:SEED and all"]),
    "no_folder": ("int main() {}\n", ["--json", "missing/x.json"], 2, ["no folder missing"]),
    "argument": ("int main() {}\n", ["64"], 2, ["64", "follow --: rung emulate"]),
    "switch": ("int main() {}\n", ["--counters", "--counters=json"], 2,
               ["--counters: 'json' given; accepted: --counters alone, it takes no value (--json FILE writes JSON)"]),
    "opencl": ("int main() {}\n", ["other.cl"], 2, ["other.cl is OpenCL C"]),
    "metal": ("int main() {}\n", ["other.metal"], 2, ["other.metal is Metal"]),
    "nvcc": ("#include <limits.h>\nint main() { return NUMBER + OTHER; }\n",
             "--std=c++17 -x cu -isystem . -DNUMBER=40 -D OTHER=2 -arch=sm_90 "
             "-gencode arch=compute_90,code=sm_90 -O3 -lineinfo --use_fast_math -Xcompiler -Wall,-Wextra -rdc true "
             "-lcudart".split(), 42, []),
    "named": ("int main() {}\n", ["-o", "named"], 2, ["`rung nvcc -o` writes one"]),
    "ptx": ("int main() {}\n", ["-ptx"], 2, ["an option of nvcc's", "`rung nvcc` builds"]),
    # The time limit applies to the program only: compiling takes longer.
    "limit": ("#include <thrust/sort.h>\nint main() {}\n", ["--timeout", "0.2"], 0, []),
    "own": ("int main() { return 42; }\n", [], 42, []),
    "arguments": ("int main(int n, char** a) { return n == 4 && a[1][1] == 'h' && *a[3] == '-' ? 43 : 1; }\n",
                  ["--", "-hA=7", "-I", "--"], 43, []),
}


def wrong_in_a_loop(rung, folder, environment):
    """Returns complaints if a kernel that never ends is not reported while it runs, or if the signal that ends the
    program does not report its position. Waits for the message, since a busy machine may start the kernel late."""
    path = pathlib.Path(folder, "loop.cu")
    path.write_text(KERNEL % ("  for (unsigned x = 1;; x = 3 * x + 1) p[0] = x;", ALLOCATED % "cudaSuccess"))
    with subprocess.Popen([rung, "emulate", "--no-checks", path.name], cwd=folder, env=environment,
                          stderr=subprocess.PIPE, text=True) as run:
        killer = threading.Timer(100, run.kill)
        killer.start()
        told = ""
        while "has run for" not in told and run.poll() is None:
            told += run.stderr.readline()
        run.send_signal(signal.SIGTERM)
        told += run.stderr.read()
        killer.cancel()
    texts = ("kernel kernel has run for 0.5 s, and goes on", "loop.cu:")
    if run.returncode == 143 and all(text in told for text in texts):
        return []
    return [f"loop: exit code {run.returncode}\n{told}"]


def wrong_after_a_pause(rung, folder, environment):
    """Returns complaints if a program does not report its position when the machine stood still beyond the time
    limit."""
    path = pathlib.Path(folder, "pause.cu")
    path.write_text("#include <cstdio>\n" + KERNEL % (
        "  for (unsigned x = 1;; x = 3 * x + 1) p[0] = x;",
        '  puts("begun"); fflush(stdout);\n' + ALLOCATED % "cudaSuccess"))
    with subprocess.Popen([rung, "emulate", "--timeout", "1", "--no-checks", path.name], cwd=folder, env=environment,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as run:
        begun = run.stdout.readline()
        run.send_signal(signal.SIGSTOP)
        time.sleep(4)
        run.send_signal(signal.SIGCONT)
        _, told = run.communicate(timeout=100)
    if begun == "begun\n" and run.returncode == 142 and "pause.cu:3" in told:
        return []
    return [f"pause: exit code {run.returncode}\n{begun}{told}"]


def wrong_after_a_kill(rung, folder, environment):
    """Returns complaints if a program survives rung, even if rung is killed. Removes the remaining temporary files."""
    path = pathlib.Path(folder, "killed.cu")
    path.write_text("#include <cstdio>\n#include <unistd.h>\nint main() {\n"
                    '  printf("%d\\n", getpid()); fflush(stdout);\n  sleep(60);\n}\n')
    scratch = pathlib.Path(environment["TMPDIR"])
    with subprocess.Popen([rung, "emulate", path.name], cwd=folder, env=environment, stdout=subprocess.PIPE,
                          text=True) as run:
        program = int(run.stdout.readline())
        run.kill()
        run.wait()
    for left in scratch.iterdir():
        shutil.rmtree(left)
    for _ in range(100):
        try:
            state = pathlib.Path(f"/proc/{program}/stat").read_text().split()[2]
        except FileNotFoundError:
            return []
        if state == "Z":
            return []
        time.sleep(0.1)
    os.kill(program, signal.SIGKILL)
    return ["killed: the program goes on when rung is killed"]


def wrong_paths(rung, folder, environment):
    """Returns complaints if findings and counters name files differently: both must be relative to the current
    folder."""
    path = pathlib.Path(folder, "paths.cu")
    path.write_text(KERNEL % ("  p[0] = threadIdx.x;", LAUNCHED % (64, 1, 32)))
    wrong = []
    for given in (str(path), "paths.cu", "./paths.cu"):
        subprocess.run([rung, "emulate", "--json", "paths.json", given], cwd=folder, env=environment,
                       capture_output=True, check=False)
        report = json.loads(pathlib.Path(folder, "paths.json").read_text())
        files = {one["file"] for one in report["findings"] + report["kernels"][0]["lines"]}
        wrong += [f"{given} is named {sorted(files)}"] if files != {"paths.cu"} else []
    return wrong


def main():
    rung = os.path.abspath(sys.argv[1])
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        scratch = pathlib.Path(folder, "scratch")
        scratch.mkdir()
        environment = dict(os.environ, TMPDIR=str(scratch), RUNG_EMULATE_LONG_LAUNCH="0.5")
        others = (wrong_in_a_loop, wrong_after_a_pause, wrong_paths, wrong_after_a_kill)
        for wrong in [one for other in others for one in other(rung, folder, environment)]:
            failed += 1
            print(wrong)
        chosen = sys.argv[2:] or CASES
        for name, (source, options, code, texts) in ((one, CASES[one]) for one in chosen):
            path = pathlib.Path(folder, name + ".cu")
            path.write_text(source)
            cut = options.index("--") if "--" in options else len(options)
            once = [] if "--checks" in options else ["--checks", "always"]  # compiled once, not twice
            run = subprocess.run([rung, "emulate", *once, *options[:cut], path.name, *options[cut:]], cwd=folder,
                                 capture_output=True, text=True,
                                 env=environment, timeout=100, check=False)
            wrong = [f"exit code {run.returncode}, not {code}"] if run.returncode != code else []
            wrong += [f"says nothing of {text!r}" for text in texts if text not in run.stderr]
            wrong += ["tells of our headers"] if "rung_cuda/" in run.stderr else []
            wrong += [f"left {left}" for left in os.listdir(scratch)]
            if wrong:
                failed += 1
                print(f"{name}: " + "; ".join(wrong) + "\n" + run.stdout + run.stderr)
    print(f"{len(chosen) + len(others)} cases, {failed} wrong")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
