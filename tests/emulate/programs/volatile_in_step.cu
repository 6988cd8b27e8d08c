// SPDX-License-Identifier: Apache-2.0
// Programs from before Volta count on a warp's going in step where its shared memory is volatile.
#include "check.cuh"

template <class T>
struct Dynamic {
  __device__ T* memory() {
    extern __shared__ T elements[];
    return elements;
  }
};

template <int size>
__global__ void sum(const float* in, float* out) {
  Dynamic<float> dynamic;
  volatile float* part = dynamic.memory();
  const int t = threadIdx.x;
  part[t] = in[blockIdx.x * size + t];
  __syncthreads();
  if (size >= 128) {
    if (t < 64) part[t] += part[t + 64];
    __syncthreads();
  }
  if (t < 32) {
    part[t] += part[t + 32];
    part[t] += part[t + 16];
    part[t] += part[t + 8];
    part[t] += part[t + 4];
    part[t] += part[t + 2];
    part[t] += part[t + 1];
  }
  if (t == 0) out[blockIdx.x] = part[0];
}

__global__ void scan(int* values) {
  __shared__ volatile int part[2][64];
  const int warp = threadIdx.x / 32;
  const int lane = threadIdx.x % 32;
  volatile int* mine = &part[warp][lane + 32];
  mine[-32] = 0;
  int sum = values[threadIdx.x];
  mine[0] = sum;
  mine[0] = sum += mine[-1];
  mine[0] = sum += mine[-2];
  mine[0] = sum += mine[-4];
  mine[0] = sum += mine[-8];
  mine[0] = sum += mine[-16];
  values[threadIdx.x] = sum;
}

// Half of a warp goes another way, and does not keep the others waiting.
__global__ void halves(const int* in, int* out) {
  __shared__ volatile int part[32];
  const int lane = threadIdx.x;
  part[lane] = in[lane];
  if (lane < 16) part[lane] += part[lane + 16];
  __syncthreads();
  out[lane] = part[lane];
}

int main() {
  Array<float> in(4 * 128), sums(4);
  for (int i = 0; i < in.size; ++i) in[i] = static_cast<float>(i % 7);
  in.up();
  sum<128><<<4, 128, 128 * sizeof(float)>>>(in.device, sums.device);
  sums.down();
  for (int block = 0; block < 4; ++block) {
    float expected = 0;
    for (int i = 0; i < 128; ++i) expected += in[128 * block + i];
    CHECK(sums[block] == expected);
  }
  Array<int> values(64), other(32);
  for (int i = 0; i < 64; ++i) values[i] = i;
  values.up();
  scan<<<1, 64>>>(values.device);
  values.down();
  for (int i = 0, expected = 0; i < 64; ++i) {
    expected = i % 32 == 0 ? i : expected + i;
    CHECK(values[i] == expected);
  }
  halves<<<1, 32>>>(values.device, other.device);
  other.down();
  for (int i = 0; i < 32; ++i) CHECK(other[i] == values[i] + (i < 16 ? values[i + 16] : 0));
  return ok();
}
