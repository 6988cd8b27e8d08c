// SPDX-License-Identifier: Apache-2.0
// Shuffles of every kind, width and type.
#include "check.cuh"

template <class T>
__global__ void shuffle(T* out) {
  const int t = threadIdx.x;
  const T v = static_cast<T>(t + 1);
  out[t] = __shfl_sync(0xffffffffu, v, 5);
  out[32 + t] = __shfl_up_sync(0xffffffffu, v, 3);
  out[64 + t] = __shfl_down_sync(0xffffffffu, v, 2, 8);
  out[96 + t] = __shfl_xor_sync(0xffffffffu, v, 1);
  out[128 + t] = __shfl_sync(0xffffffffu, v, 1, 4);
}
template <class T>
void run() {
  Array<T> out(160);
  shuffle<<<1, 32>>>(out.device);
  out.down();
  for (int t = 0; t < 32; ++t) {
    CHECK(out[t] == 6);
    CHECK(out[32 + t] == (t < 3 ? t + 1 : t - 2));
    CHECK(out[64 + t] == (t % 8 < 6 ? t + 3 : t + 1));
    CHECK(out[96 + t] == (t ^ 1) + 1);
    CHECK(out[128 + t] == t / 4 * 4 + 2);
  }
}

int main() {
  run<int>();
  run<unsigned>();
  run<long long>();
  run<unsigned long long>();
  run<float>();
  run<double>();
  return ok();
}
