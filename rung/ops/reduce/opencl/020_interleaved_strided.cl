// SPDX-License-Identifier: Apache-2.0
// reduce / interleaved, by stride
//
// Idea     The same tree with active items contiguous: item t adds to element 2 s t.
// Changes  Against interleaved_modulo: active items are neighbors, and the remainder is gone.
// Cost     The same accesses, still 2, 4, 8 ... elements apart.
// Limits   One sum of contiguous f32.
// Source   M. Harris, "Optimizing parallel reduction in CUDA" (2007), kernel 2.

kernel void reduce_interleaved_strided(global const float* in, ulong in_start, ulong n,
                                global float* copy, ulong copy_start,
                                global float* partial, ulong partial_start) {
  const uint item = get_local_id(0);
  const uint items = get_local_size(0);  // a power of two
  const ulong i = get_global_id(0);
  global float* const x = copy + copy_start + get_group_id(0) * items;
  x[item] = i < n ? in[in_start + i] : 0.0f;
  barrier(CLK_GLOBAL_MEM_FENCE);
  for (uint s = 1; s < items; s *= 2) {
    const uint at = 2 * s * item;
    if (at < items) x[at] += x[at + s];
    barrier(CLK_GLOBAL_MEM_FENCE);
  }
  if (item == 0) partial[partial_start + get_group_id(0)] = x[0];
}
