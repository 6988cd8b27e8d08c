// SPDX-License-Identifier: Apache-2.0
// Variadic templates, constant expressions, specializations in kernels.
#include "check.cuh"

template <int N>
struct Factorial {
  static constexpr int value = N * Factorial<N - 1>::value;
};
template <>
struct Factorial<0> {
  static constexpr int value = 1;
};
template <class... T>
__device__ auto sum_of(T... values) {
  return (values + ...);
}
template <class T, class... More>
__global__ void sums(T* out, More... more) {
  if constexpr (sizeof...(More) > 0) {
    out[threadIdx.x] = static_cast<T>(sum_of(more...));
  } else {
    out[threadIdx.x] = Factorial<5>::value;
  }
}

int main() {
  Array<double> out(4);
  sums<<<1, 4>>>(out.device, 1, 2.5, 3u);
  out.down();
  CHECK(out[3] == 6.5);
  sums<<<1, 4>>>(out.device);
  out.down();
  CHECK(out[0] == 120);
  return ok();
}
