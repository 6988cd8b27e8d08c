// SPDX-License-Identifier: Apache-2.0
// Nothing planted: what the others are beside their fault.

kernel void planted(global float* out, ulong out_start, ulong n) {
  local float sums[64];
  const uint item = get_local_id(0);
  const ulong i = get_global_id(0);
  sums[item] = item;
  barrier(CLK_LOCAL_MEM_FENCE);
  if (i >= n) return;
  out[out_start + i] = sums[(item + 1) % get_local_size(0)];
}
