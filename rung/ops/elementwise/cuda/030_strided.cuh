// SPDX-License-Identifier: Apache-2.0
// elementwise / strided: its kernel, which transform.cuh launches too.
//
// Idea, Changes, Cost and Limits stand in 030_strided.cu, whose rung this is a part of.
#pragma once

#include "rung/core/bounds.hpp"
#include "rung/device/resident.hpp"
#include "rung/ops/elementwise/cuda/detail/rung.hpp"

namespace rung::elementwise_cuda::inline RUNG_TARGET {

template <class F, class T>
__global__ void elementwise_strided(F f, T tensors) {
  const std::int64_t stride = std::int64_t{gridDim.x} * blockDim.x;
  const std::int64_t first = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
#pragma unroll 1
  for (std::int64_t i = first; i < tensors.layout.size(); i += stride) compute_at(tensors, f, i);
}

template <class F, class T>
void launch_strided(Context& context, const F& f, const T& tensors) {
  const auto kernel = elementwise_strided<F, T>;
  const std::int64_t blocks = smaller(blocks_for(tensors.size(), block_threads),
                                      resident_blocks(context, kernel, block_threads));
  launch(context, {.grid = blocks, .block = block_threads}, kernel, f, tensors);
}

}  // namespace rung::elementwise_cuda::inline RUNG_TARGET
