// SPDX-License-Identifier: Apache-2.0
// reduce / interleaved, by remainder
//
// Idea     A tree: in round s = 1, 2, 4 ... every 2 s-th item adds the element s further on to its
//          own.
// Changes  Baseline.
// Cost     log2(256) rounds through global memory: each addition loads two elements and stores one.
//          Working items are 2, 4, 8 ... apart: on a GPU every access touches a line of its own.
// Limits   One sum of contiguous f32.
// Source   D. Kirk & W. Hwu, Programming Massively Parallel Processors, chapter on reduction;
//          M. Harris, "Optimizing parallel reduction in CUDA" (2007), kernel 1.

kernel void reduce_interleaved_modulo(global const float* in, ulong in_start, ulong n,
                               global float* copy, ulong copy_start,
                               global float* partial, ulong partial_start) {
  const uint item = get_local_id(0);
  const uint items = get_local_size(0);  // a power of two
  const ulong i = get_global_id(0);
  global float* const x = copy + copy_start + get_group_id(0) * items;
  x[item] = i < n ? in[in_start + i] : 0.0f;
  barrier(CLK_GLOBAL_MEM_FENCE);
  for (uint s = 1; s < items; s *= 2) {
    if (item % (2 * s) == 0) x[item] += x[item + s];
    barrier(CLK_GLOBAL_MEM_FENCE);
  }
  if (item == 0) partial[partial_start + get_group_id(0)] = x[0];
}
