// SPDX-License-Identifier: Apache-2.0
// A store beyond a buffer, on purpose: the comparison with n lets one item too many through.

kernel void planted(global float* out, ulong out_start, ulong n) {
  const ulong i = get_global_id(0);
  if (i > n) return;
  out[out_start + i] = 1.0f;
}
