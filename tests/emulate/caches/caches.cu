// SPDX-License-Identifier: Apache-2.0
// Kernels whose cache hit rates are held against a chip's: `nvcc caches.cu` makes the program for
// Nsight Compute, `rung emulate --json` that for the simulated GPU (tools/compare_caches.py runs
// both). Each is launched once. The last three probe one rule of the model each.
#include <cuda_runtime.h>

#include <cstdio>
#include <cstdlib>

constexpr int N = 512;      // of the matrices that are multiplied
constexpr int SIDE = 2048;  // of the matrix that is transposed, and of the image
constexpr int CUBE = 128;   // of the stencil's grid
constexpr int ROWS = 4096, WIDTH = 1024;
constexpr int COUNT = SIDE * SIDE;
constexpr int FAR = 20 << 20;  // floats, 80 MiB: more than L2 holds

__global__ void gemm_coalesced(const float* a, const float* b, float* c) {
  const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  float sum = 0;
#pragma unroll 1
  for (int k = 0; k < N; ++k) sum += a[y * N + k] * b[k * N + x];
  c[y * N + x] = sum;
}

__global__ void gemm_uncoalesced(const float* a, const float* b, float* c) {
  const int y = blockIdx.x * blockDim.x + threadIdx.x, x = blockIdx.y * blockDim.y + threadIdx.y;
  float sum = 0;
#pragma unroll 1
  for (int k = 0; k < N; ++k) sum += a[y * N + k] * b[k * N + x];
  c[y * N + x] = sum;
}

__global__ void gemm_tiled(const float* a, const float* b, float* c) {
  __shared__ float a_tile[32][32], b_tile[32][32];
  const int tx = threadIdx.x, ty = threadIdx.y;
  const int x = blockIdx.x * 32 + tx, y = blockIdx.y * 32 + ty;
  float sum = 0;
  for (int first = 0; first < N; first += 32) {
    a_tile[ty][tx] = a[y * N + first + tx];
    b_tile[ty][tx] = b[(first + ty) * N + x];
    __syncthreads();
    for (int k = 0; k < 32; ++k) sum += a_tile[ty][k] * b_tile[k][tx];
    __syncthreads();
  }
  c[y * N + x] = sum;
}

__global__ void transpose_naive(const float* in, float* out) {
  const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  out[x * SIDE + y] = in[y * SIDE + x];
}

__global__ void transpose_tiled(const float* in, float* out) {
  __shared__ float tile[32][33];
  const int tx = threadIdx.x, bx = blockIdx.x * 32, by = blockIdx.y * 32;
  for (int i = threadIdx.y; i < 32; i += 8) tile[i][tx] = in[(by + i) * SIDE + bx + tx];
  __syncthreads();
  for (int i = threadIdx.y; i < 32; i += 8) out[(bx + i) * SIDE + by + tx] = tile[tx][i];
}

__global__ void stencil_naive(const float* in, float* out) {
  const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  const int z = blockIdx.z * blockDim.z + threadIdx.z;
  if (x == 0 || y == 0 || z == 0 || x == CUBE - 1 || y == CUBE - 1 || z == CUBE - 1) return;
  const int i = (z * CUBE + y) * CUBE + x;
  out[i] = in[i] + in[i - 1] + in[i + 1] + in[i - CUBE] + in[i + CUBE] + in[i - CUBE * CUBE] +
           in[i + CUBE * CUBE];
}

__global__ void reduce_blocks(const float* in, float* out) {
  __shared__ float sums[256];
  const int t = threadIdx.x;
  float sum = 0;
  for (int i = blockIdx.x * 256 + t; i < COUNT; i += gridDim.x * 256) sum += in[i];
  sums[t] = sum;
  __syncthreads();
  for (int s = 128; s > 0; s /= 2) {
    if (t < s) sums[t] += sums[t + s];
    __syncthreads();
  }
  if (t == 0) out[blockIdx.x] = sums[0];
}

__global__ void histogram_global(const unsigned* in, unsigned* bins) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  atomicAdd(&bins[in[i] % 256], 1u);
}

__global__ void convolution_naive(const float* in, const float* mask, float* out) {
  const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x < 2 || y < 2 || x >= SIDE - 2 || y >= SIDE - 2) return;
  float sum = 0;
#pragma unroll 1
  for (int j = 0; j < 5; ++j) {
#pragma unroll 1
    for (int i = 0; i < 5; ++i) sum += mask[5 * j + i] * in[(y + j - 2) * SIDE + x + i - 2];
  }
  out[y * SIDE + x] = sum;
}

// One block per row, three passes over it.
__global__ void softmax_rows(const float* in, float* out) {
  __shared__ float part[256];
  const int t = threadIdx.x;
  const float* row = in + blockIdx.x * WIDTH;
  float most = -1e30f, sum = 0;
  for (int i = t; i < WIDTH; i += 256) most = fmaxf(most, row[i]);
  part[t] = most;
  __syncthreads();
  for (int s = 128; s > 0; s /= 2) {
    if (t < s) part[t] = fmaxf(part[t], part[t + s]);
    __syncthreads();
  }
  most = part[0];
  __syncthreads();
  for (int i = t; i < WIDTH; i += 256) sum += __expf(row[i] - most);
  part[t] = sum;
  __syncthreads();
  for (int s = 128; s > 0; s /= 2) {
    if (t < s) part[t] += part[t + s];
    __syncthreads();
  }
  for (int i = t; i < WIDTH; i += 256) {
    out[blockIdx.x * WIDTH + i] = __expf(row[i] - most) / part[0];
  }
}

// Does L1 keep what its own SM has stored?
__global__ void store_then_load(float* x) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  x[i] = 1;
  __syncthreads();
  x[COUNT + i] = x[blockIdx.x * blockDim.x + (threadIdx.x + 33) % blockDim.x];
}

// Do stores hit lines that L1 holds?
__global__ void load_then_store(float* x) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  x[i] += 1;
}

// Twice through more than L2 holds: LRU would hit nothing.
__global__ void sweep_twice(const float* in, float* out) {
  const int threads = gridDim.x * blockDim.x, first = blockIdx.x * blockDim.x + threadIdx.x;
  float sum = 0;
#pragma unroll 1
  for (int round = 0; round < 2; ++round) {
#pragma unroll 1
    for (int i = first; i < FAR; i += threads) sum += in[i];
  }
  out[first] = sum;
}

void expect(cudaError_t result) {
  if (result == cudaSuccess) return;
  std::printf("%s\n", cudaGetErrorString(result));
  std::exit(1);
}

int main() {
  float *in = nullptr, *out = nullptr;
  expect(cudaMalloc(&in, sizeof(float) * FAR));
  expect(cudaMalloc(&out, 2 * sizeof(float) * COUNT));
  expect(cudaMemset(in, 0, sizeof(float) * FAR));
  expect(cudaMemset(out, 0, 2 * sizeof(float) * COUNT));
  unsigned* numbers = new unsigned[COUNT];
  for (int i = 0; i < COUNT; ++i) numbers[i] = (i * 2654435761u) >> 12;
  expect(cudaMemcpy(in + 4 * COUNT, numbers, sizeof(int) * COUNT, cudaMemcpyHostToDevice));
  delete[] numbers;
  const dim3 square(32, 32), flat(32, 8);
  gemm_coalesced<<<dim3(N / 32, N / 32), square>>>(in, in + N * N, out);
  gemm_uncoalesced<<<dim3(N / 32, N / 32), square>>>(in, in + N * N, out);
  gemm_tiled<<<dim3(N / 32, N / 32), square>>>(in, in + N * N, out);
  transpose_naive<<<dim3(SIDE / 32, SIDE / 8), flat>>>(in, out);
  transpose_tiled<<<dim3(SIDE / 32, SIDE / 32), flat>>>(in, out);
  stencil_naive<<<dim3(CUBE / 32, CUBE / 4, CUBE / 2), dim3(32, 4, 2)>>>(in, out);
  reduce_blocks<<<528, 256>>>(in, out);
  histogram_global<<<COUNT / 256, 256>>>(reinterpret_cast<unsigned*>(in + 4 * COUNT),
                                         reinterpret_cast<unsigned*>(out));
  convolution_naive<<<dim3(SIDE / 32, SIDE / 8), flat>>>(in, in + COUNT, out);
  softmax_rows<<<ROWS, 256>>>(in, out);
  store_then_load<<<COUNT / 256, 256>>>(out);
  load_then_store<<<COUNT / 256, 256>>>(out);
  sweep_twice<<<1056, 256>>>(in, out);
  expect(cudaDeviceSynchronize());
  expect(cudaFree(in));
  expect(cudaFree(out));
}
