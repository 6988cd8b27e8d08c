// SPDX-License-Identifier: Apache-2.0
// Rows for cuDNN's softmax: an N x C x 1 x W tensor in channel mode, with rows along C and adjacent
// rows along W.
#pragma once

#include <cstdint>
#include <limits>
#include <utility>

#include "rung/core/rows.hpp"
#include "rung/peers/cudnn.hpp"

namespace rung::cudnn {

struct RowLayout {
  std::int64_t n = 1, w = 1;
  int n_axis = -1, w_axis = -1;  // of the collapsed axes; -1: none
  bool fits = false;             // false: more axes or larger strides than cuDNN supports
};
template <int N>
RowLayout row_layout(const Rows<N>& rows) {
  const auto& others = rows.others;
  RowLayout layout;
  layout.fits = others.rank <= 2;
  if (others.rank > 0) {
    layout.w_axis = others.rank - 1;
    layout.w = others.shape[layout.w_axis];
  }
  if (others.rank > 1) {
    layout.n_axis = 0;
    layout.n = others.shape[0];
  }
  if (others.rank == 1 && rows.are_contiguous()) {
    std::swap(layout.n, layout.w);
    std::swap(layout.n_axis, layout.w_axis);
  }
  constexpr std::int64_t limit = std::numeric_limits<int>::max();
  layout.fits = layout.fits && layout.n <= limit && layout.w <= limit && rows.length <= limit;
  for (int tensor = 0; tensor < N; ++tensor) {
    for (int axis = 0; axis < others.rank; ++axis) {
      const std::int64_t stride = others.strides[tensor][axis];
      layout.fits = layout.fits && stride > 0 && stride <= limit;
    }
    const std::int64_t step = rows.steps[tensor];
    layout.fits = layout.fits && step > 0 && step <= limit;
  }
  return layout;
}

/// Describes a tensor of rows to cuDNN.
template <int N>
void describe_rows(Layout& described, DType dtype, const Rows<N>& rows, const RowLayout& layout,
                   int tensor) {
  const auto stride = [&](int axis) { return axis < 0 ? 1 : rows.others.strides[tensor][axis]; };
  described.set(dtype, {layout.n, rows.length, 1, layout.w},
                {stride(layout.n_axis), rows.steps[tensor], 1, stride(layout.w_axis)});
}

}  // namespace rung::cudnn
