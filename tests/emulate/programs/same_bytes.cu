// SPDX-License-Identifier: Apache-2.0
// That all lanes write one value to one byte is no race, whatever else they have accessed: reads
// all over the place just before, and bytes at other places of their words by the write before.
#include "check.cuh"

__global__ void mark(const char* table, char* apart, char* flag, short* half, int* out) {
  const int t = threadIdx.x;
  int sum = table[(t * t + 2) % 64];
  apart[4 * t + 2] = static_cast<char>(t);
  __syncthreads();
  sum += table[(t * t + 2) % 64];
  *flag = 1;
  __syncthreads();
  sum += table[(t * t + 2) % 64];
  apart[4 * t + 3] = static_cast<char>(t);
  __syncthreads();
  sum += table[(t * t + 2) % 64];
  *half = 5;
  out[t] = sum;
}

int main() {
  Array<char> table(64), apart(128), flag(4);
  Array<short> half(2);
  Array<int> out(32);
  for (int i = 0; i < 64; ++i) table[i] = static_cast<char>(i);
  table.up();
  mark<<<1, 32>>>(table.device, apart.device, flag.device, half.device, out.device);
  flag.down();
  half.down();
  out.down();
  CHECK(flag[0] == 1 && flag[1] == 0 && half[0] == 5 && half[1] == 0);
  for (int t = 0; t < 32; ++t) CHECK(out[t] == 4 * ((t * t + 2) % 64));
  return ok();
}
