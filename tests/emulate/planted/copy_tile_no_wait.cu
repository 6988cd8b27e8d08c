// SPDX-License-Identifier: Apache-2.0
// A warp's group copies a row; cg::wait orders the reads, sync() does not.
#include <cooperative_groups.h>
#include <cooperative_groups/memcpy_async.h>

#include "../programs/check.cuh"
namespace cg = cooperative_groups;

__global__ void rows(const float* in, float* out) {
  __shared__ alignas(16) float kept[4][64];
  auto warp = cg::tiled_partition<32>(cg::this_thread_block());
  const int w = warp.meta_group_rank(), lane = warp.thread_rank();
  cg::memcpy_async(warp, kept[w], in + 64 * w, 64 * sizeof(float));  // expect: race
#ifdef BUG
  warp.sync();
#else
  cg::wait(warp);
#endif
  out[64 * w + lane] = kept[w][63 - lane];  // expect: race
}

int main() {
  Array<float> in(256), out(256);
  for (int i = 0; i < 256; ++i) in[i] = static_cast<float>(i);
  in.up();
  rows<<<1, 128>>>(in.device, out.device);
#ifndef BUG
  out.down();
  CHECK(out[0] == 63 && out[64] == 127 && out[31] == 32);
#endif
  return ok();
}
