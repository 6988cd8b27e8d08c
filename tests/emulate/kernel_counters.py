# SPDX-License-Identifier: Apache-2.0
"""Counters of whole kernels by `rung emulate`: reuse, occupancy and its limit, bytes at each level, textures, every
launch. usage: kernel_counters.py RUNG"""
import json
import pathlib
import subprocess
import sys
import tempfile

# The convolution has a 9x9 mask in tiles of 16x16: published figures are 576 threads per block, 3 blocks per SM of 2048
# threads with 6912 bytes of shared memory, each loaded word used 36 times.
SOURCE = """
#include <mma.h>
__constant__ float mask[81];
__global__ void convolve(const float* in, float* out) {
  __shared__ float tile[24][24];
  const int x = threadIdx.x, y = threadIdx.y;
  tile[y][x] = in[24 * y + x];
  __syncthreads();
  if (x >= 16 || y >= 16) return;
  float sum = 0;
  for (int j = 0; j < 9; ++j) for (int i = 0; i < 9; ++i) sum += mask[9 * j + i] * tile[y + j][x + i];
  out[16 * y + x] = sum;
}
__global__ void fetch(cudaTextureObject_t texture, float* out) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  out[i] = tex1Dfetch<float>(texture, i) + tex1Dfetch<float>(texture, i + 1);
}
__global__ void count(int* bins) {
  __shared__ int own[32];
  own[threadIdx.x] = 0;
  __syncthreads();
  atomicAdd(&own[threadIdx.x / 2], 1);
  atomicAdd(&bins[8 * threadIdx.x], 1);
}
// Rows 5 to 7 of published exercises on divergence, with arithmetic or a nested condition alone on one side.
__global__ void below(float* image, int rows, int columns) {
  const int row = blockIdx.y * blockDim.y + threadIdx.y, column = blockIdx.x * blockDim.x + threadIdx.x;
  if (row < rows && column < columns) {
    if (row > column) image[row * columns + column] += 1;
  }
}
__global__ void scale(float* image, int rows, int columns) {
  const int row = blockIdx.y * blockDim.y + threadIdx.y, column = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows || column >= columns) return;
  float value = image[row * columns + column];
  if (row > column) value = 2 * value + 1;
  image[row * columns + column] = value;
}
__global__ void inner(const float* in, float* out) {
  const int x = threadIdx.x, y = threadIdx.y;
  if (x > 0 && x < 31 &&
      y > 0 && y < 31) out[32 * y + x] = in[32 * y + x - 1] + in[32 * y + x + 1];
}
__global__ void product(const half* in, float* out) {
  using namespace nvcuda::wmma;
  fragment<matrix_a, 16, 16, 16, half, row_major> a;
  fragment<matrix_b, 16, 16, 16, half, row_major> b;
  fragment<accumulator, 16, 16, 16, float> sum;
  fill_fragment(sum, 0.0f);
  for (int i = 0; i < 3; ++i) {
    load_matrix_sync(a, in, 16);
    load_matrix_sync(b, in, 16);
    mma_sync(sum, a, b, sum);
  }
  store_matrix_sync(out, sum, 16, mem_row_major);
}
__global__ void nobody(float* out, int control) {
  if (control * (int)threadIdx.x < 0) out[threadIdx.x] = 0; else out[threadIdx.x] = 1;
}
__global__ void twice(const float* in, float* out) {
  extern __shared__ float room[];
  room[threadIdx.x] = in[threadIdx.x];
  __syncthreads();
  out[threadIdx.x] = in[63 - threadIdx.x] + room[63 - threadIdx.x];
}
__global__ void pieces(const float* in, float* out, int bytes) {
  memcpy(out + 4 * threadIdx.x, in + 4 * threadIdx.x, bytes);
  memset(out + 128 + 6 * threadIdx.x, 0, 24);
}
__global__ void constants(float* out) { out[threadIdx.x] = mask[threadIdx.x] + mask[threadIdx.x / 8]; }
__global__ void again(float* out) { out[threadIdx.x] = 1; }
int main() {
  float *in, *out;
  cudaMalloc(&in, 16384);
  cudaMalloc(&out, 4 * 176 * 174);
  cudaMemset(in, 0, 16384);
  cudaMemset(out, 0, 4 * 176 * 174);
  const float ones[81] = {};
  cudaMemcpyToSymbol(mask, ones, sizeof ones);
  convolve<<<1, dim3(24, 24)>>>(in, out);
  cudaResourceDesc resource = {};
  resource.resType = cudaResourceTypeLinear;
  resource.res.linear.devPtr = in;
  resource.res.linear.desc = cudaCreateChannelDesc<float>();
  resource.res.linear.sizeInBytes = 16384;
  cudaTextureDesc description = {};
  cudaTextureObject_t texture = 0;
  cudaCreateTextureObject(&texture, &resource, &description, nullptr);
  fetch<<<1, 32>>>(texture, out);
  fetch<<<2, 64>>>(texture, out);
  count<<<1, 32>>>((int*)out);
  below<<<dim3(11, 11), dim3(16, 16)>>>(out, 176, 174);
  scale<<<dim3(11, 11), dim3(16, 16)>>>(out, 176, 174);
  inner<<<1, dim3(32, 32)>>>(in, out);
  nobody<<<1, 256>>>(out, 3);
  product<<<1, 64>>>((half*)in, out);
  cudaFuncSetAttribute(twice, cudaFuncAttributeMaxDynamicSharedMemorySize, 100000);
  twice<<<1, 64, 100000>>>(in, out);
  pieces<<<1, 32>>>(in, out, 16);
  constants<<<1, 32>>>(out);
  for (int i = 0; i < 20; ++i) again<<<1, 32>>>(out);
  cudaDestroyTextureObject(texture);
  return cudaDeviceSynchronize();
}
"""
# By kernel: path in the JSON, and expected value.
EXPECTED = {
    "convolve": {"reuse": 36, "block_threads": 576, "shared_bytes": 2304, "occupancy.blocks": 3, "occupancy.warps": 54,
                 "occupancy.occupancy": 54 / 64, "occupancy.limited_by": ["warps"], "occupancy.blocks_by.warps": 3,
                 "bytes.shared": 4 * (576 + 81 * 256), "bytes.global_asked": 4 * (576 + 256),
                 "bytes.global_distinct_loaded": 4 * 576, "bytes.global_distinct_stored": 4 * 256,
                 "bytes.constant": 4 * 81 * 256, "totals.constant_bytes": 4 * 81 * 256,
                 "constant_rounds_per_request": 1, "operations.multiplications": 81 * 256,
                 "operations.additions": 81 * 256, "operations.total": 2 * 81 * 256, "operations.exact": True,
                 "roofline.gpu": "NVIDIA H200", "roofline.operations": 2 * 81 * 256,
                 "roofline.bytes": 4 * (576 + 256), "roofline.limiter": "memory",
                 "roofline.bound_seconds": 4 * (576 + 256) / 4.8e12, "waves": 1 / (3 * 132)},
    "fetch": {"reuse": None, "totals.texture_requests": 2 * 5, "launches": 2, "active_lanes": 32,
              "occupancy.limited_by": ["warps", "blocks"], "occupancy.occupancy": 1,
              "each_launch.0.totals.texture_requests": 2, "each_launch.0.grid": [1, 1, 1],
              "each_launch.0.warps": 1, "each_launch.0.bytes.global_asked": 128,
              "each_launch.1.totals.texture_requests": 8, "each_launch.1.block": [64, 1, 1],
              "each_launch.1.totals.global_store_requests": 4, "totals.global_store_requests": 5},
    # Each word is in a sector of its own: 4 bytes requested, 32 moved.
    "count": {"totals.atomic_bytes": 128, "totals.atomic_sectors": 32, "bytes.global_moved": 1024,
              "bytes.global_distinct": 1024, "totals.shared_atomic_bytes": 128, "shared_bytes": 128,
              "occupancy.limited_by": ["blocks"], "shared_atomic_rounds_per_request": 2,
              "atomic_rounds_per_request": 1},
    # 15399 pixels are below the diagonal: rows 0 to 173 have as many as their index, two more have 174.
    "below": {"warps": 968, "divergent_warps": 168, "operations.total": 15399},
    "scale": {"warps": 968, "divergent_warps": 168, "operations.total": 2 * 15399},
    "inner": {"warps": 32, "divergent_warps": 30},
    "product": {"totals.matrix_products": 2 * 3, "totals.matrix_operations": 2 * 3 * 2 * 16**3},
    # All 8 warps stay converged.
    "nobody": {"divergent_warps": 0, "branch_efficiency": None, "thread_inst_executed_per_inst_executed": 32},
    # Two loads of the same 256 bytes: memory moves them once.
    "twice": {"global_load_sectors_per_request": 4, "bytes.global_asked": 3 * 256, "bytes.global_moved": 3 * 256,
              "bytes.global_distinct_loaded": 256, "bytes.global_distinct_stored": 256, "reuse": 0.5,
              "shared_bytes": 100000, "occupancy.blocks": 2, "occupancy.limited_by": ["shared memory"],
              "occupancy.blocks_by.shared memory": 2, "operations.additions": 64,
              # The second load of each sector hits in L1, of which two blocks' shared memory leaves 28 KiB.
              "caches.l1_bytes": 28 << 10, "totals.l1_load_hits": 8, "caches.dram_read_bytes": 256,
              "caches.dirty_bytes": 256, "caches.l1tex__t_sector_pipe_lsu_mem_global_op_ld_hit_rate.pct": 50,
              "global_load_efficiency": 1, "balance.block_longest_over_mean": 1},
    # Words of 16 bytes per lane: 512 bytes in four requests that use all bytes of their sectors.
    "pieces": {"totals.global_load_bytes": 512, "totals.global_load_requests": 4, "totals.global_load_sectors": 64,
               "totals.global_store_bytes": 512 + 768, "totals.global_store_requests": 4 + 6},
    # 32 different addresses, and 4.
    "constants": {"totals.constant_requests": 2, "totals.constant_rounds": 36, "constant_rounds_per_request": 18},
    # Only of the first four and the sixteenth launch.
    "again": {"launches": 20, "recorded_launches": 5, "warps": 5, "totals.global_store_requests": 5},
}


def at(value, path):
    if path.startswith("caches."):  # metrics of caches contain dots
        return value["caches"][path.partition(".")[2]]
    for name in path.split("."):
        value = value[int(name)] if isinstance(value, list) else value[name]
    return value


def main():
    with tempfile.TemporaryDirectory() as folder:
        source, report = pathlib.Path(folder, "kernels.cu"), pathlib.Path(folder, "report.json")
        source.write_text(SOURCE)
        options = ["--counters", "--checks", "4", "--json", str(report)]
        run = subprocess.run([sys.argv[1], "emulate", *options, str(source)], capture_output=True, text=True,
                             check=False)
        if run.returncode != 0:
            sys.exit(run.stdout + run.stderr)
        kernels = {one["name"]: one for one in json.loads(report.read_text())["kernels"]}
    wrong = [f"{name}: {path} is {at(kernels[name], path)}, expected {value}"
             for name, paths in EXPECTED.items() for path, value in paths.items() if at(kernels[name], path) != value]
    for text in ("convolve\n  1 launch, 1 block of 576 threads at most", "reuse 36\n",
                 "all but the first figure are of the 5 launches recorded",
                 "global memory: 2,304 bytes loaded, 4 sectors", "82,944 bytes loaded, 0 bank conflicts\n",
                 "tensor cores: 6 products, 49,152 operations\n", "operations of all threads: 41,472 floating\n",
                 "caches, modeled: L1 hits ", "constant memory: 1 round per request",
                 "atomics on shared memory: 2 rounds per request", "roofline, NVIDIA H200: bound by memory: ",
                 "occupancy 84.4 %: 3 blocks, 54 warps; limited by warps"):
        wrong += [] if text in run.stdout else [f"not printed: {text}"]
    wrong += [f"too wide: {line}" for line in run.stdout.splitlines() if len(line) > 100]
    unknown = subprocess.run([sys.argv[1], "emulate", "--gpu", "h300", "none.cu"], capture_output=True, text=True,
                             check=False)
    if unknown.returncode != 2 or 'given "h300", accepted are h200, ' not in unknown.stderr:
        wrong.append(f"--gpu h300: {unknown.returncode}, {unknown.stderr}")
    if wrong:
        sys.exit("\n".join(wrong) + "\n" + run.stdout)


if __name__ == "__main__":
    main()
