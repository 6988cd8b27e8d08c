// SPDX-License-Identifier: Apache-2.0
// Kernels that measure a device: memory copy, and multiply-adds in registers.

// Each work-item copies 16 bytes; neighbors copy adjacent chunks.
kernel void copy_rate(global const float4* from, ulong from_start, global float4* to,
                      ulong to_start) {
  const ulong i = get_global_id(0);
  to[to_start + i] = from[from_start + i];
}

// 8 independent chains of float16 multiply-adds: enough to hide their latency on CPUs and GPUs.
kernel void multiply_add_rate(global float* out, ulong out_start, float factor, uint turns) {
  float16 sums[8];
  for (int i = 0; i < 8; ++i) sums[i] = (float)(get_local_id(0) + i);
  for (uint turn = 0; turn < turns; ++turn) {
#pragma unroll
    for (int i = 0; i < 8; ++i) sums[i] = mad(sums[i], factor, factor);
  }
  float16 total = 0;
  for (int i = 0; i < 8; ++i) total += sums[i];
  const float8 half_sum = total.lo + total.hi;
  const float4 quarter = half_sum.lo + half_sum.hi;
  out[out_start + get_global_id(0)] = quarter.x + quarter.y + quarter.z + quarter.w;
}
