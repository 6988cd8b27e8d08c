// SPDX-License-Identifier: Apache-2.0
// elementwise / thread per element
//
// Idea     Vector addition: one work-item adds one pair of elements, at the index get_global_id:
//          group index times group size plus local index.
// Changes  Baseline. Against the CUDA rung: the kernel receives a buffer and the index of the first
//          element in it instead of a pointer, because a host has no pointers into cl_mem.
// Cost     2 loads and 1 store of 4 bytes per element. Neighboring items load neighboring elements:
//          coalesced on a GPU, one vector load on a CPU.
// Limits   add, f32, contiguous tensors without broadcasting.
// Source   The OpenCL Specification 1.2, section 3.2.

kernel void elementwise_thread_per_element(global const float* x, ulong x_start,
                                           global const float* y, ulong y_start,
                                           global float* z, ulong z_start, ulong n) {
  const ulong i = get_global_id(0);
  if (i >= n) return;  // surplus items of the last group
  z[z_start + i] = x[x_start + i] + y[y_start + i];
}
