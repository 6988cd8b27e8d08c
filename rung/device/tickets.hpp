// SPDX-License-Identifier: Apache-2.0
// tickets_of(): counters in device memory that are zero between launches, as is_last_block()
// (last_block.hpp) needs them.
#pragma once

#include <cstdint>
#include <utility>

#include "rung/core/context.hpp"
#include "rung/core/integer.hpp"
#include "rung/core/tensor.hpp"
#include "rung/device/launch.hpp"

namespace rung::inline RUNG_TARGET {

/// Zeroes `count` words.
template <class Owner>
__global__ void tickets_zero(unsigned* words, std::int64_t count) {
  const std::int64_t at = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (at < count) words[at] = 0;
}

/// Returns a context's `count` tickets of `Owner`, a type that names them; always call it with the
/// same count. Allocates and zeroes them on first use; kernels that change them make them zero
/// again. Each context has its own, so that streams do not share them.
template <class Owner>
unsigned* tickets_of(Context& context, std::int64_t count) {
  struct Memory {
    Tensor words;
  };
  Tensor& words = context.memo<Memory>().words;
  if (words.ref().data == nullptr) {
    Tensor zeroed(DType::i32, Extents{count}, context.device());
    launch(context, {.grid = ceil_div(count, std::int64_t{256}), .block = 256}, tickets_zero<Owner>,
           zeroed.data<unsigned>(), count);
    words = std::move(zeroed);
  }
  return words.data<unsigned>();
}

}  // namespace rung::inline RUNG_TARGET
