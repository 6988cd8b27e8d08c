// SPDX-License-Identifier: Apache-2.0
// Loops whose threads run in time slices when their launch repeats others: the switch in a loop
// keeps all registers and flags, and threads leave loops in any order, meet in warp operations and
// wait for locks. Every kernel has enough blocks for all lengths of slices.
#include "check.cuh"

constexpr int n = 96;
constexpr int blocks = 20, threads = 64, count = blocks * threads;

__host__ __device__ int element(int i) { return static_cast<int>(i * 2654435761u >> 20); }

/// Every value that lives across the loop is in a register, more of them than the processor has.
__global__ void many_values(const int* data, double* out) {
  const int t = blockIdx.x * blockDim.x + threadIdx.x;
  double a = 1, b = 2, c = 3, d = 4;
  float e = 5, f = 6, g = 7;
  long long h = t, i = 9;
  unsigned j = 10;
  short k = 11;
  for (int at = 0; at < n; ++at) {
    const int x = data[at * count + t];
    a += x;
    b += 2 * a;
    c = c > x ? c : x;
    d -= x * .5;
    e += static_cast<float>(x & 15);
    f = e - f;
    g = g < f ? g : f;
    h = h * 31 + x;
    i ^= h >> 7;
    j = j << 3 | j >> 29;
    k = static_cast<short>(k + x);
  }
  out[t] = a + b + c + d + e + f + g + static_cast<double>(h % 1000) +
           static_cast<double>(i % 1000) + j % 1000 + k;
}

/// The numbers of iterations differ, by data.
__global__ void chase(const int* data, int* out) {
  const int t = blockIdx.x * blockDim.x + threadIdx.x;
  int at = t, steps = 0;
  while (data[at] % 37 != 0 && steps < 500) {
    at = (at + data[at] + 1) % count;
    ++steps;
  }
  out[t] = steps;
}

/// Three-way comparisons, whose flags two jumps read; some threads exit early.
__global__ void search(const int* sorted, const int* wanted, int* out) {
  const int t = blockIdx.x * blockDim.x + threadIdx.x;
  if (t % 5 == 3) return;
  int steps = 0;
  for (int repeat = 0; repeat < 6; ++repeat) {
    int low = 0, high = count - 1;
    while (low <= high) {
      const int middle = (low + high) / 2;
      ++steps;
      if (sorted[middle] == wanted[t]) break;
      if (sorted[middle] < wanted[t]) {
        low = middle + 1;
      } else {
        high = middle - 1;
      }
    }
  }
  out[t] = steps;
}

/// Calls in a loop, an array in local memory, and carries from one word to the next.
__global__ void carries(const unsigned* data, unsigned* out) {
  const int t = blockIdx.x * blockDim.x + threadIdx.x;
  unsigned long long sum[3] = {};
  float angles = 0;
  for (int at = 0; at < n; ++at) {
    const unsigned long long x = static_cast<unsigned long long>(data[at * count + t]) << 45;
    sum[at % 3] += x;
    sum[(at + 1) % 3] += sum[at % 3] < x ? 1 : 0;
    angles += cosf(static_cast<float>(data[at]));
  }
  out[t] = static_cast<unsigned>(sum[0] >> 32) ^ static_cast<unsigned>(sum[1]) ^
           static_cast<unsigned>(sum[2] >> 40) ^ static_cast<unsigned>(angles * 16);
}

__noinline__ __device__ int from_lane(int value, int distance) {
  return __shfl_xor_sync(0xffffffffu, value, distance);
}
__noinline__ __device__ void meet_block() { __syncthreads(); }

/// Lanes that have looped for different times meet in shuffles, warps at a barrier.
__global__ void meet(const int* data, int* out) {
  const int t = blockIdx.x * blockDim.x + threadIdx.x;
  int sum = 0;
  for (int round = 0; round < 4; ++round) {
    for (int at = 0; at < 10 + t % 32 * 2; ++at) sum += data[at * count + t];
    sum += from_lane(sum, 1 + round);
    if (round % 2 == 0) meet_block();
  }
  out[t] = sum;
}

/// Each thread adds its data under a lock, one lane of a warp after the other.
__global__ void lock(const int* data, int* out, int* owner) {
  const int t = blockIdx.x * blockDim.x + threadIdx.x;
  for (int turn = 0; turn < 32; ++turn) {
    if (static_cast<int>(threadIdx.x % 32) != turn) continue;
    while (atomicCAS(owner, 0, 1) != 0) __nanosleep(1);
    __threadfence();
    for (int at = 0; at < 40; ++at) atomicAdd(out, data[at * count + t] & 7);
    __threadfence();
    atomicExch(owner, 0);
  }
}

int main() {
  const size_t words = static_cast<size_t>(n) * count;
  int *data, *out, *sorted, *owner;
  double* sums;
  CHECK(cudaMallocManaged(&data, words * sizeof(int)) == cudaSuccess);
  CHECK(cudaMallocManaged(&out, 5 * count * sizeof(int)) == cudaSuccess);
  CHECK(cudaMallocManaged(&sorted, count * sizeof(int)) == cudaSuccess);
  CHECK(cudaMallocManaged(&owner, sizeof(int)) == cudaSuccess);
  CHECK(cudaMallocManaged(&sums, count * sizeof(double)) == cudaSuccess);
  for (size_t i = 0; i < words; ++i) data[i] = element(static_cast<int>(i));
  for (int i = 0; i < count; ++i) sorted[i] = 3 * i;
  int first[5 * count];
  double first_sums[count];
  int first_total = 0;
  // The first launches are recorded and the others are not: all compute the same.
  for (int launch = 0; launch < 5; ++launch) {
    for (int i = 0; i < 5 * count; ++i) out[i] = 0;
    many_values<<<blocks, threads>>>(data, sums);
    chase<<<blocks, threads>>>(data, out);
    search<<<blocks, threads>>>(sorted, data, out + count);
    carries<<<blocks, threads>>>(reinterpret_cast<const unsigned*>(data),
                                 reinterpret_cast<unsigned*>(out) + 2 * count);
    meet<<<blocks, threads>>>(data, out + 3 * count);
    *owner = 0;
    lock<<<blocks, threads>>>(data, out + 4 * count, owner);
    CHECK(cudaDeviceSynchronize() == cudaSuccess);
    for (int i = 0; i < 4 * count && launch != 0; ++i) CHECK(out[i] == first[i]);
    for (int i = 0; i < count && launch != 0; ++i) CHECK(sums[i] == first_sums[i]);
    if (launch != 0) CHECK(out[4 * count] == first_total);
    for (int i = 0; i < 4 * count; ++i) first[i] = out[i];
    for (int i = 0; i < count; ++i) first_sums[i] = sums[i];
    first_total = out[4 * count];
  }
  int total = 0;
  for (int t = 0; t < count; ++t) {
    for (int at = 0; at < 40; ++at) total += data[at * count + t] & 7;
    int at = t, steps = 0;
    while (data[at] % 37 != 0 && steps < 500) {
      at = (at + data[at] + 1) % count;
      ++steps;
    }
    CHECK(out[t] == steps);
  }
  CHECK(first_total == total);
  std::puts("OK");
  return 0;
}
