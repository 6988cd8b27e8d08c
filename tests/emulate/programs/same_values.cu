// SPDX-License-Identifier: Apache-2.0
// That many threads write one value to a word is no race: flags, of a warp, a block, a grid; in
// parts of a word; and doubles.
#include "check.cuh"

__global__ void flags(int* found, char* bytes, double* sum, float4* box) {
  __shared__ int any;
  const int t = threadIdx.x;
  any = 7;
  *found = 1;
  bytes[t % 3] = 'x';
  sum[t % 5] = 0.25;
  box[t % 2] = make_float4(1, 2, 3, 4);
  __syncthreads();
  if (any != 7) *found = 2;
}

/// Each thread has a byte of its own, and writes it twice.
__global__ void bytes_of_words(char* bytes) {
  for (int i = 0; i < 2; ++i) bytes[threadIdx.x] = static_cast<char>(threadIdx.x + i);
}

/// A thread's own word passes through many values in front of every other's.
__global__ void own_words(int* out) {
  __shared__ int kept[32];
  for (int i = 0; i < 5; ++i) {
    kept[threadIdx.x] = i;
    kept[threadIdx.x] += threadIdx.x;
  }
  out[threadIdx.x] = kept[threadIdx.x];
}

int main() {
  Array<int> found(1), out(32);
  Array<char> bytes(96);
  Array<double> sum(5);
  Array<float4> box(2);
  flags<<<4, 96>>>(found.device, bytes.device, sum.device, box.device);
  found.down();
  CHECK(found[0] == 1);
  bytes_of_words<<<1, 96>>>(bytes.device);
  bytes.down();
  for (int i = 0; i < 96; ++i) CHECK(bytes[i] == i + 1);
  own_words<<<1, 32>>>(out.device);
  out.down();
  for (int i = 0; i < 32; ++i) CHECK(out[i] == i + 4);
  return ok();
}
