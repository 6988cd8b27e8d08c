// SPDX-License-Identifier: Apache-2.0
// Shared arrays with a large alignment are on it: as C++ sees their addresses, and as PTX does, in
// whatever amount of dynamic shared memory.
#include <cstdint>

#include "check.cuh"

__device__ unsigned seen_by_ptx(const void* address) {
  unsigned window;
  asm("{ .reg .u64 a; cvta.to.shared.u64 a, %1; cvt.u32.u64 %0, a; }"
      : "=r"(window)
      : "l"(address));
  return window;
}

__global__ void addresses(unsigned* out) {
  __shared__ char small[3];
  __shared__ __align__(16384) char wide[100];
  __shared__ alignas(1024) float tile[4];
  extern __shared__ __align__(1024) char dynamic[];
  small[0] = 0;
  out[0] = static_cast<unsigned>(__cvta_generic_to_shared(wide)) % 16384;
  out[1] = seen_by_ptx(wide) % 16384;
  out[2] = static_cast<unsigned>(reinterpret_cast<uintptr_t>(wide) % 16384);
  out[3] = seen_by_ptx(tile) % 1024;
  out[4] = seen_by_ptx(dynamic) % 1024;
  out[5] = wide < small + 3 && small < wide + 100;
}

int main() {
  Array<unsigned> out(6);
  for (const int bytes : {0, 100, 5000}) {
    CUDA(cudaMemset(out.device, 0xff, 6 * sizeof(unsigned)));
    addresses<<<1, 1, bytes>>>(out.device);
    out.down();
    for (int i = 0; i < 6; ++i) CHECK(out[i] == 0);
  }
  return ok();
}
