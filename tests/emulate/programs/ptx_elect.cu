// SPDX-License-Identifier: Apache-2.0
// What a Hopper kernel says beside its copies: elections, registers handed over, dependent grids.
#include <cstdint>

#include "check.cuh"

__global__ void __launch_bounds__(256) roles(int* out) {
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
  asm volatile("griddepcontrol.wait;" ::: "memory");
  const int warp = threadIdx.x / 32;
  if (warp < 4) {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(40));
  } else {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(232));
  }
  uint32_t leader = 99, chosen = 0;
  asm volatile(
      "{\n.reg .b32 who;\n.reg .pred p;\n"
      "elect.sync who|p, %2;\n"
      "@p mov.s32 %1, 1;\n"
      "mov.s32 %0, who;\n}"
      : "=r"(leader), "+r"(chosen)
      : "r"(0xffffffffu));
  uint32_t also = 0;
  asm volatile("{ .reg .pred p; elect.sync _|p, 0xffffffff; selp.b32 %0, 1, 0, p; }" : "=r"(also));
  out[threadIdx.x] = static_cast<int>(leader + 100 * chosen + 1000 * also);
  asm volatile("fence.proxy.async.global;" ::: "memory");
}

int main() {
  Array<int> out(256);
  roles<<<1, 256>>>(out.device);
  CUDA(cudaGetLastError());
  out.down();
  for (int warp = 0; warp < 8; ++warp) {
    // One lane, and the same each time.
    const int leader = out[32 * warp] % 100;
    CHECK(leader >= 0 && leader < 32);
    for (int lane = 0; lane < 32; ++lane) {
      CHECK(out[32 * warp + lane] == leader + (lane == leader ? 1100 : 0));
    }
  }
  return ok();
}
