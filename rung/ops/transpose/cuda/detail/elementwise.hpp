// SPDX-License-Identifier: Apache-2.0
// One thread per element: all axes of a transpose as one list, in the order of the threads.
#pragma once

#include "rung/core/bounds.hpp"
#include "rung/ops/transpose/cuda/detail/matrices.hpp"

namespace rung::transpose_cuda::inline RUNG_TARGET {

/// Tensor whose adjacent elements adjacent threads move.
enum class Along : std::uint8_t { x, y };

/// Returns the axes of y (tensor 0) and x (tensor 1), with the densest axis of `which` last.
inline Collapsed<2> axes_along(const Moves& m, Along which) {
  Collapsed<2> axes = m.batch;
  const auto append = [&](std::int64_t extent, std::int64_t y, std::int64_t x) {
    if (extent == 1) return;
    axes.shape[axes.rank] = extent;
    axes.strides[0][axes.rank] = y;
    axes.strides[1][axes.rank] = x;
    axes.count *= extent;
    ++axes.rank;
  };
  if (which == Along::y) append(m.columns, m.y_row, m.x_column);
  append(m.rows, m.y_column, m.x_row);
  if (which == Along::x) append(m.columns, m.y_row, m.x_column);
  append(m.run, 1, 1);
  return axes;
}

inline constexpr int elementwise_threads = 256;

/// Launches kernel(x, y, axes, first), in which thread k moves element first + k.
template <class T, class Kernel>
void launch_elements(Context& context, Kernel kernel, const Transpose::Args& args, Along which) {
  const Collapsed<2> axes = axes_along(args.moves, which);
  constexpr std::int64_t most = (std::int64_t{1} << 31) - elementwise_threads;
  for (std::int64_t first = 0; first < axes.count; first += most) {
    launch(context,
           {.grid = ceil_div<std::int64_t>(smaller(most, axes.count - first), elementwise_threads),
            .block = elementwise_threads},
           kernel, static_cast<const T*>(args.x.data), static_cast<T*>(args.y.data), axes, first);
  }
}

}  // namespace rung::transpose_cuda::inline RUNG_TARGET
