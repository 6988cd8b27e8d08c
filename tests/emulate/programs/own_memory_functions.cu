// SPDX-License-Identifier: Apache-2.0
// Functions of the program's own that are called as those of <cstring>.
#include <cstring>

#include "check.cuh"

template <class T>
__device__ void memset(T* to, T value, int count) {
  for (int i = 0; i < count; ++i) to[i] = value;
}

namespace tools {
__device__ void memcpy(float* to, const float* from, int count) {
  for (int i = 0; i < count; ++i) to[i] = 2 * from[i];
}
__device__ void both(float* to, const float* from) { memcpy(to, from, 2); }
}  // namespace tools

struct Stack {
  float* values;
  __device__ void memmove(int from, int to) { values[to] = values[from]; }
  __device__ void duplicate(int at) { memmove(at, at + 1); }
};

__global__ void fill(float* out, const float* in) {
  memset(out, 1.5f, 4);
  tools::memcpy(out + 4, in, 2);
  tools::both(out + 6, in);
  std::memcpy(out + 8, in, 2 * sizeof(float));
  Stack{out}.duplicate(9);
}

int main() {
  Array<float> in(2), out(11);
  in[0] = 3;
  in[1] = 4;
  in.up();
  fill<<<1, 1>>>(out.device, in.device);
  out.down();
  const float expected[] = {1.5f, 1.5f, 1.5f, 1.5f, 6, 8, 6, 8, 3, 4, 4};
  for (int i = 0; i < 11; ++i) CHECK(out[i] == expected[i]);
  return ok();
}
