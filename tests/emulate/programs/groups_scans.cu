// SPDX-License-Identifier: Apache-2.0
// Scans and reductions of tiles with every operation.
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>

#include "check.cuh"

namespace cg = cooperative_groups;
__global__ void scans(const int* in, int* out) {
  auto tile = cg::tiled_partition<16>(cg::this_thread_block());
  const int v = in[threadIdx.x];
  int* mine = out + threadIdx.x * 6;
  mine[0] = cg::inclusive_scan(tile, v);
  mine[1] = cg::exclusive_scan(tile, v, cg::plus<int>());
  mine[2] = cg::inclusive_scan(tile, v, cg::greater<int>());
  mine[3] = cg::reduce(tile, v, cg::less<int>());
  mine[4] = cg::reduce(tile, v, cg::bit_xor<int>());
  mine[5] = cg::reduce(tile, v, [](int a, int b) { return a * 31 % 1000 + b; }) > 0;
}

int main() {
  Array<int> in(64), out(64 * 6);
  for (int i = 0; i < 64; ++i) in[i] = (i * 29) % 50;
  in.up();
  scans<<<1, 64>>>(in.device, out.device);
  out.down();
  for (int first = 0; first < 64; first += 16) {
    int sum = 0, most = 0, least = 99, bits = 0;
    for (int i = first; i < first + 16; ++i) {
      least = std::min(least, in[i]);
      bits ^= in[i];
    }
    for (int i = first; i < first + 16; ++i) {
      CHECK(out[6 * i + 1] == sum);
      sum += in[i];
      most = std::max(most, in[i]);
      CHECK(out[6 * i] == sum && out[6 * i + 2] == most && out[6 * i + 3] == least &&
            out[6 * i + 4] == bits);
    }
  }
  return ok();
}
