// SPDX-License-Identifier: Apache-2.0
// reduce / two stages
//
// Idea     Stage one: every item sums 16 elements, a group apart, in a register. Stage two: the
//          group reduces its items' sums by a tree in local memory.
// Changes  Against sequential_addressing: global memory is read once, and one sum per group is
//          stored; 16 elements per item make a tree 16 times smaller. (CUDA's two_stage_warp
//          reduces a warp by shuffles first, which OpenCL 1.2 lacks.)
// Cost     4 bytes per element; 8 rounds with a barrier each for 4096 elements.
// Limits   One sum of contiguous f32. At most 24 dependent additions per pass, and three passes for
//          up to 2^36 elements.
// Source   B. Catanzaro, "OpenCL Optimization Case Study: Simple Reductions", AMD, 2010.

#define PER_ITEM 16

kernel void reduce_two_stage(global const float* in, ulong in_start, ulong n,
                             global float* partial, ulong partial_start, local float* sums) {
  const uint item = get_local_id(0);
  const uint items = get_local_size(0);  // a power of two
  const ulong first = get_group_id(0) * items * PER_ITEM + item;
  float sum = 0;
  for (uint i = 0; i < PER_ITEM; ++i) {
    const ulong at = first + i * items;
    if (at < n) sum += in[in_start + at];
  }
  sums[item] = sum;
  barrier(CLK_LOCAL_MEM_FENCE);
  for (uint s = items / 2; s > 0; s /= 2) {
    if (item < s) sums[item] += sums[item + s];
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  if (item == 0) partial[partial_start + get_group_id(0)] = sums[0];
}
