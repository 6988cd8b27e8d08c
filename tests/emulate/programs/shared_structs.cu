// SPDX-License-Identifier: Apache-2.0
// Structs, unions and two-dimensional arrays in shared memory; parts of dynamic memory.
#include "check.cuh"

struct Node {
  int key;
  float value;
};
__global__ void use(float* out) {
  __shared__ Node nodes[32];
  __shared__ union {
    float numbers[4][8];
    unsigned bits[32];
  } both;
  extern __shared__ __align__(16) unsigned char memory[];
  double* first = reinterpret_cast<double*>(memory);
  short* second = reinterpret_cast<short*>(first + blockDim.x);
  const int t = threadIdx.x;
  nodes[t] = {31 - t, 0.5f * t};
  both.numbers[t / 8][t % 8] = static_cast<float>(t);
  first[t] = 1.0 / (t + 1);
  second[t] = static_cast<short>(-t);
  __syncthreads();
  const Node& mine = nodes[nodes[t].key];
  out[t] = mine.value + (both.bits[t] == __float_as_uint(t)) + static_cast<float>(first[31 - t]) +
           second[(t + 1) % 32];
}

int main() {
  Array<float> out(32);
  use<<<1, 32, 32 * (sizeof(double) + sizeof(short))>>>(out.device);
  out.down();
  for (int t = 0; t < 32; ++t) {
    CHECK(std::fabs(out[t] - (0.5f * (31 - t) + 1 + 1.0f / (32 - t) - (t + 1) % 32)) < 1e-5f);
  }
  return ok();
}
