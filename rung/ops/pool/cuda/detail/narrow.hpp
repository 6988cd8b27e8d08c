// SPDX-License-Identifier: Apache-2.0
// Windows and output indices in 32 bits, whose divisions are multiplications: this shortens the
// index arithmetic before a thread's first load, which dominates windows of a few taps.
#pragma once

#include <cstdint>

#include "rung/device/divisor.hpp"
#include "rung/ops/pool/cuda/detail/images.hpp"
#include "rung/ops/pool/shared/narrow_axis.hpp"

namespace rung::pool_cuda::inline RUNG_TARGET {

/// Windows of a call, and the order in which outputs are assigned to threads.
struct NarrowWindows {
  NarrowAxis rows, columns;
  Divisor height, width, channels;     // of y
  std::int64_t row_step, column_step;  // elements between taps
  bool channels_innermost;

  [[nodiscard]] __device__ __forceinline__ OutputPosition place(std::uint32_t output) const {
    OutputPosition at{};
    if (channels_innermost) at.c = channels.take(output);
    at.ow = width.take(output);
    at.oh = height.take(output);
    if (!channels_innermost) at.c = channels.take(output);
    at.n = output;
    return at;
  }
};

/// Returns divisor_of() in 32 bits, for kinds other than weighted.
template <Pooling kind, class Sum>
__device__ __forceinline__ Sum narrow_divisor(const NarrowAxis& rows, const NarrowAxis& columns,
                                              const OutputPosition& at, bool padded) {
  if constexpr (kind != Pooling::average) return Sum(1);
  const int taps = rows.counted(static_cast<int>(at.oh), padded) *
                   columns.counted(static_cast<int>(at.ow), padded);
  return static_cast<Sum>(taps);
}

// --- on the host ---------------------------------------------------------------------------------

inline NarrowWindows narrow_windows(const Pool::Args& args) {
  return {.rows = NarrowAxis::of(args.rows),
          .columns = NarrowAxis::of(args.columns),
          .height = Divisor::of(args.rows.out),
          .width = Divisor::of(args.columns.out),
          .channels = Divisor::of(args.channels()),
          .row_step = args.rows.dilation * args.x.strides[2],
          .column_step = args.columns.dilation * args.x.strides[3],
          .channels_innermost = args.y.strides[1] == 1};
}

inline Support supports_narrow(const Pool::Args& args, std::int64_t numbers) {
  return rung::supports_narrow(args.rows, args.columns, numbers);
}

}  // namespace rung::pool_cuda::inline RUNG_TARGET
