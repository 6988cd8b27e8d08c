// SPDX-License-Identifier: Apache-2.0
// A data race, on purpose: an item reads its neighbor's sum while that one writes it. The second
// barrier is left out.

kernel void planted(global float* out, ulong out_start, ulong n) {
  local float sums[64];
  const uint item = get_local_id(0);
  const ulong i = get_global_id(0);
  sums[item] = 0;
  barrier(CLK_LOCAL_MEM_FENCE);
  sums[item] = item;
  if (i >= n) return;
  out[out_start + i] = sums[(item + 1) % get_local_size(0)];
}
