// SPDX-License-Identifier: Apache-2.0
// Types of cuda::std in kernels.
#include <cuda/std/array>
#include <cuda/std/complex>
#include <cuda/std/limits>
#include <cuda/std/optional>
#include <cuda/std/tuple>
#include <cuda/std/type_traits>

#include "check.cuh"

__device__ cuda::std::optional<int> half_of(int v) {
  if (v % 2 != 0) return {};
  return v / 2;
}
__global__ void use(int* out, cuda::std::array<int, 3> given) {
  const int t = threadIdx.x;
  const auto pair = cuda::std::make_tuple(given[t % 3], t);
  out[t] = half_of(t).value_or(-1) + cuda::std::get<0>(pair);
  static_assert(cuda::std::is_same_v<cuda::std::remove_const_t<const int>, int>);
  const cuda::std::complex<float> i(0, 1);
  if (t == 31) out[t] = static_cast<int>((i * i).real()) + cuda::std::numeric_limits<short>::max();
}

int main() {
  Array<int> out(32);
  use<<<1, 32>>>(out.device, cuda::std::array<int, 3>{100, 200, 300});
  out.down();
  for (int t = 0; t < 31; ++t) CHECK(out[t] == (t % 2 == 0 ? t / 2 : -1) + 100 * (t % 3 + 1));
  CHECK(out[31] == 32766);
  return ok();
}
