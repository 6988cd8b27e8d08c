// SPDX-License-Identifier: Apache-2.0
// Predicates, labels and branches in one statement.
#include "check.cuh"

__global__ void control(int* out) {
  const int t = threadIdx.x;
  int steps, least;
  asm volatile(
      "{\n\t"
      ".reg .pred p, q;\n\t"
      ".reg .s32 n;\n\t"
      "mov.s32 n, %1;\n\t"
      "mov.s32 %0, 0;\n\t"
      "again:\n\t"
      "setp.le.s32 p, n, 0;\n\t"
      "@p bra done;\n\t"
      "sub.s32 n, n, 3;\n\t"
      "add.s32 %0, %0, 1;\n\t"
      "bra again;\n\t"
      "done:\n\t"
      "}"
      : "=&r"(steps)
      : "r"(t));
  asm("min.s32 %0, %1, 7; @!0 max.s32 %0, %0, 2;" : "=&r"(least) : "r"(t));
  out[t] = 100 * steps + least;
}

int main() {
  Array<int> out(32);
  control<<<1, 32>>>(out.device);
  out.down();
  for (int t = 0; t < 32; ++t) CHECK(out[t] / 100 == (t + 2) / 3);
  return ok();
}
