// SPDX-License-Identifier: Apache-2.0
// mbarriers by asm statements: phases by state and by parity, counts, drops.
#include <cstdint>

#include "check.cuh"

__device__ uint32_t local(const void* p) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(p));
}

__global__ void phases(const int* in, int* out) {
  __shared__ int kept[64];
  __shared__ alignas(8) uint64_t barrier, few;
  const unsigned t = threadIdx.x;
  if (t == 0) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(local(&barrier)), "r"(64));
    asm volatile("mbarrier.init.shared.b64 [%0], 66;" ::"r"(local(&few)));
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  __syncthreads();
  kept[t] = in[t];
  uint64_t state = 0;
  asm volatile("mbarrier.arrive.shared::cta.b64 %0, [%1];"
               : "=l"(state)
               : "r"(local(&barrier))
               : "memory");
  uint32_t pending = 0;
  asm volatile("mbarrier.pending_count.b64 %0, %1;" : "=r"(pending) : "l"(state));
  uint32_t done = 0;
  while (done == 0) {
    asm volatile(
        "{\n\t.reg .pred p;\n\t"
        "mbarrier.test_wait.shared::cta.b64 p, [%1], %2;\n\t"
        "selp.u32 %0, 1, 0, p;\n\t}"
        : "=r"(done)
        : "r"(local(&barrier)), "l"(state)
        : "memory");
  }
  int sum = kept[63 - t];
  for (unsigned phase = 1; phase < 4; ++phase) {
    asm volatile("mbarrier.arrive.release.cta.shared::cta.b64 _, [%0];" ::"r"(local(&barrier))
                 : "memory");
    asm volatile(
        "{\n"
        ".reg .pred P1;\n"
        "LAB_WAIT_%=:\n"
        "mbarrier.try_wait.parity.shared::cta.b64 P1, [%0], %1, 0x989680;\n"
        "@P1 bra DONE_%=;\n"
        "bra LAB_WAIT_%=;\n"
        "DONE_%=:\n"
        "}" ::"r"(local(&barrier)),
        "r"(phase & 1)
        : "memory");
    if (phase == 2) kept[t] += 100;
    if (phase == 3) sum += kept[(t + 1) % 64];
  }
  // Two arrivals of one thread at once; the last two threads leave for good.
  if (t < 63) {
    asm volatile("mbarrier.arrive.shared.b64 %0, [%1], 1;" : "=l"(state) : "r"(local(&few)));
  } else {
    asm volatile("mbarrier.arrive_drop.shared.b64 %0, [%1], 3;" : "=l"(state) : "r"(local(&few)));
  }
  for (done = 0; done == 0;) {
    asm volatile(
        "{ .reg .pred p; mbarrier.try_wait.shared.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }"
        : "=r"(done)
        : "r"(local(&few)), "l"(state)
        : "memory");
  }
  if (t < 63) asm volatile("mbarrier.arrive.shared.b64 _, [%0];" ::"r"(local(&few)) : "memory");
  for (done = 0; done == 0;) {
    asm volatile(
        "{ .reg .pred p; mbarrier.try_wait.parity.shared.b64 p, [%1], 1; selp.u32 %0, 1, 0, p; }"
        : "=r"(done)
        : "r"(local(&few))
        : "memory");
  }
  __syncthreads();
  if (t == 0) {
    asm volatile("mbarrier.inval.shared::cta.b64 [%0];" ::"r"(local(&barrier)));
    asm volatile("mbarrier.inval.shared::cta.b64 [%0];" ::"r"(local(&few)));
  }
  out[t] = sum + (pending >= 1 && pending <= 64 ? 0 : 10000);
}

int main() {
  Array<int> in(64), out(64);
  for (int i = 0; i < 64; ++i) in[i] = 3 * i;
  in.up();
  phases<<<2, 64>>>(in.device, out.device);
  CUDA(cudaGetLastError());
  out.down();
  for (int i = 0; i < 64; ++i) CHECK(out[i] == 3 * (63 - i) + 3 * ((i + 1) % 64) + 100);
  return ok();
}
