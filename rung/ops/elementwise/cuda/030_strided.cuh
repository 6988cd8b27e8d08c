// SPDX-License-Identifier: Apache-2.0
// elementwise / strided: the kernel, which transform.cuh launches too.
//
// Part of the rung whose Idea, Changes, Cost and Limits are in 030_strided.cu.
#pragma once

#include "rung/core/bounds.hpp"
#include "rung/device/resident.hpp"
#include "rung/ops/elementwise/cuda/detail/rung.hpp"

namespace rung::elementwise_cuda::inline RUNG_TARGET {

template <class F, class T>
__global__ void elementwise_strided(F f, T tensors) {
  const auto& layout = tensors.layout;
  const std::int64_t stride = std::int64_t{gridDim.x} * blockDim.x;
  const std::int64_t first = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
#pragma unroll 1
  for (std::int64_t i = first; i < layout.size(); i += stride) {
    // Decomposes i into an index per merged axis; the offset in a tensor is the sum of index times
    // stride, which is 0 along a broadcast axis.
    std::int64_t at[T::all] = {};
    const auto divide = [&](auto rest) {
      for (int axis = layout.rank - 1; axis > 0; --axis) {
        const auto extent = static_cast<decltype(rest)>(layout.shape[axis]);
        const auto quotient = rest / extent;
        const std::int64_t index = rest - quotient * extent;
        for (int tensor = 0; tensor < T::all; ++tensor) {
          at[tensor] += index * layout.strides[tensor][axis];
        }
        rest = quotient;
      }
      for (int tensor = 0; tensor < T::all; ++tensor) {
        at[tensor] += std::int64_t{rest} * layout.strides[tensor][0];
      }
    };
    if (layout.rank <= 1) {
      for (int tensor = 0; tensor < T::all; ++tensor) at[tensor] = i * layout.strides[tensor][0];
    } else if (layout.size() <= 0xffffffff) {
      divide(static_cast<std::uint32_t>(i));  // several times cheaper than a 64-bit division
    } else {
      divide(i);
    }
    compute(tensors, f, at);
  }
}

template <class F, class T>
std::int64_t strided_blocks(const Context& context, const T& tensors) {
  return smaller(blocks_for(tensors.size(), block_threads),
                 resident_blocks(context, elementwise_strided<F, T>, block_threads));
}
template <class F, class T>
void launch_strided(Context& context, const F& f, const T& tensors) {
  launch(context, {.grid = strided_blocks<F>(context, tensors), .block = block_threads},
         elementwise_strided<F, T>, f, tensors);
}

}  // namespace rung::elementwise_cuda::inline RUNG_TARGET
