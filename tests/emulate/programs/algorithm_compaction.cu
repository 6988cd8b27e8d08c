// SPDX-License-Identifier: Apache-2.0
// Elements that pass a test, packed: ballots give places within a warp.
#include "check.cuh"

__global__ void pack(const int* in, int* out, int* count, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x, lane = threadIdx.x % 32;
  const bool wanted = i < n && in[i] % 3 == 0;
  const unsigned mask = __ballot_sync(0xffffffffu, wanted);
  int first = 0;
  if (lane == 0) first = atomicAdd(count, __popc(mask));
  first = __shfl_sync(0xffffffffu, first, 0);
  if (wanted) out[first + __popc(mask & ((1u << lane) - 1))] = in[i];
}

int main() {
  constexpr int n = 500;
  Array<int> in(n), out(n), count(1);
  int expected = 0;
  long long sum = 0;
  for (int i = 0; i < n; ++i) {
    in[i] = (i * 31) % 97;
    expected += in[i] % 3 == 0;
    sum += in[i] % 3 == 0 ? in[i] : 0;
  }
  in.up();
  pack<<<4, 128>>>(in.device, out.device, count.device, n);
  out.down();
  count.down();
  CHECK(count[0] == expected);
  for (int i = 0; i < expected; ++i) sum -= out[i];
  CHECK(sum == 0);
  return ok();
}
