// SPDX-License-Identifier: Apache-2.0
// Windows and the numbers of outputs in 32 bits, whose divisions are multiplications: what a thread
// computes before its first load is then short beside a window of a few taps.
#pragma once

#include <cstdint>

#include "rung/device/divisor.hpp"
#include "rung/ops/pool/cuda/detail/images.hpp"

namespace rung::pool_cuda::inline RUNG_TARGET {

struct NarrowTaps {
  int begin, end;
};

/// A PoolAxis.
struct NarrowAxis {
  int in, kernel, stride, padding, dilation;

  [[nodiscard]] __device__ __forceinline__ int start(int o) const { return o * stride - padding; }
  [[nodiscard]] __device__ __forceinline__ NarrowTaps taps(int o) const {
    const int first = start(o);
    return {first >= 0 ? 0 : taps_in(-first), smaller(kernel, taps_in(in - first))};
  }
  /// How many taps an average counts.
  [[nodiscard]] __device__ __forceinline__ int counted(int o, bool padded) const {
    if (padded) return smaller(kernel, taps_in(in + padding - start(o)));
    const NarrowTaps within = taps(o);
    return within.end - within.begin;
  }

 private:
  [[nodiscard]] __device__ __forceinline__ int taps_in(int places) const {
    return dilation == 1 ? places : (places + dilation - 1) / dilation;
  }
};

/// The windows of a call, and the order in which threads take its outputs.
struct NarrowWindows {
  NarrowAxis rows, columns;
  Divisor height, width, channels;     // of y
  std::int64_t row_step, column_step;  // from tap to tap
  bool channels_innermost;

  [[nodiscard]] __device__ __forceinline__ Place place(std::uint32_t output) const {
    Place at{};
    if (channels_innermost) at.c = channels.take(output);
    at.ow = width.take(output);
    at.oh = height.take(output);
    if (!channels_innermost) at.c = channels.take(output);
    at.n = output;
    return at;
  }
};

/// divisor_of() where the taps of a window have no weights.
template <Pooling kind, class Sum>
__device__ __forceinline__ Sum narrow_divisor(const NarrowAxis& rows, const NarrowAxis& columns,
                                              const Place& at, bool padded) {
  if constexpr (kind != Pooling::average) return Sum(1);
  const int taps = rows.counted(static_cast<int>(at.oh), padded) *
                   columns.counted(static_cast<int>(at.ow), padded);
  return static_cast<Sum>(taps);
}

// --- on the host ---------------------------------------------------------------------------------

inline NarrowAxis narrow(const PoolAxis& axis) {
  return {.in = static_cast<int>(axis.in),
          .kernel = static_cast<int>(axis.kernel),
          .stride = static_cast<int>(axis.stride),
          .padding = static_cast<int>(axis.padding),
          .dilation = static_cast<int>(axis.dilation)};
}

inline NarrowWindows narrow_windows(const Pool::Args& args) {
  return {.rows = narrow(args.rows),
          .columns = narrow(args.columns),
          .height = Divisor::of(args.rows.out),
          .width = Divisor::of(args.columns.out),
          .channels = Divisor::of(args.channels()),
          .row_step = args.rows.dilation * args.x.strides[2],
          .column_step = args.columns.dilation * args.x.strides[3],
          .channels_innermost = args.y.strides[1] == 1};
}

/// Whether every place, and the number of every output or thread, fits.
inline Support supports_narrow(const Pool::Args& args, std::int64_t numbers) {
  constexpr std::int64_t max_place = std::int64_t{1} << 29;
  for (const PoolAxis* axis : {&args.rows, &args.columns}) {
    const std::int64_t span = (axis->kernel - 1) * axis->dilation + 1;
    if (axis->in > max_place || axis->stride > max_place || span > max_place) {
      return unsupported("images, windows and strides of up to 2^29");
    }
  }
  return numbers <= Divisor::max ? supported : unsupported("2^31 outputs and more");
}

}  // namespace rung::pool_cuda::inline RUNG_TARGET
