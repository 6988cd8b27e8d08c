// SPDX-License-Identifier: Apache-2.0
// reduce / sequential addressing
//
// Idea     The tree with strides in descending order: the upper half of the elements is added to
//          the lower half, then the upper quarter to the lower, until one element is left.
// Changes  Against interleaved_strided: neighboring items access neighboring elements in every
//          round.
// Cost     The same additions, a fraction of the cache lines.
// Limits   One sum of contiguous f32.
// Source   M. Harris, "Optimizing parallel reduction in CUDA" (2007), kernel 3.

kernel void reduce_sequential_addressing(global const float* in, ulong in_start, ulong n,
                                  global float* copy, ulong copy_start,
                                  global float* partial, ulong partial_start) {
  const uint item = get_local_id(0);
  const uint items = get_local_size(0);  // a power of two
  const ulong i = get_global_id(0);
  global float* const x = copy + copy_start + get_group_id(0) * items;
  x[item] = i < n ? in[in_start + i] : 0.0f;
  barrier(CLK_GLOBAL_MEM_FENCE);
  for (uint s = items / 2; s > 0; s /= 2) {
    if (item < s) x[item] += x[item + s];
    barrier(CLK_GLOBAL_MEM_FENCE);
  }
  if (item == 0) partial[partial_start + get_group_id(0)] = x[0];
}
