// SPDX-License-Identifier: Apache-2.0
// Rows of softmax that a cluster of blocks keeps in registers: who has what, and reductions.
#pragma once

#include "rung/device/ptx_cluster.hpp"
#include "rung/ops/softmax/cuda_registers.hpp"

namespace rung::softmax_cuda::inline RUNG_TARGET {

template <class Sum>
struct ClusterShared {
  RowScratch<Sum> scratch;
  Sum maximum;
  Sum sum;
};

/// f over `value` of all threads of the cluster, in all of them. `mine` is a place of this block's
/// that no other exchange has used since the last cluster barrier but one.
template <class Sum, class F>
__device__ __forceinline__ Sum cluster_reduce(Sum value, F f, RowScratch<Sum>& scratch, Sum& mine) {
  value = row_reduce(value, f, scratch);
  if (threadIdx.x == 0) mine = value;
  ptx::cluster_sync();
  const int blocks = ptx::cluster_size();
  // By rank, not from this block onwards: the same bits everywhere.
  value = *ptx::cluster_map(&mine, 0);
  for (int rank = 1; rank < blocks; ++rank) value = f(value, *ptx::cluster_map(&mine, rank));
  return value;
}

/// The k-th pack of this thread: blocks of a cluster have neighbouring parts of the row.
template <int packs>
__device__ __forceinline__ int cluster_pack_index(int k) {
  const int first = ptx::cluster_rank() * packs * static_cast<int>(blockDim.x);
  return first + pack_index(k);
}

/// body(row), in all threads of a cluster alike.
template <class Body>
__device__ __forceinline__ void for_each_cluster_row(std::int64_t count, Body&& body) {
  const int blocks = ptx::cluster_size();
  for (std::int64_t row = blockIdx.x / blocks; row < count; row += gridDim.x / blocks) body(row);
  // Others may still read this block's shared memory.
  ptx::cluster_sync();
}

}  // namespace rung::softmax_cuda::inline RUNG_TARGET
