// SPDX-License-Identifier: Apache-2.0
// What the first rungs of the CPU take: images of f32 with zero edges, as plain structures.
#pragma once

#include <cstdint>

#include "rung/ops/stencil/op/steps.hpp"

namespace rung::stencil_cpu {

/// A row is contiguous only if column_stride is 1.
struct Image {
  const float* data;
  std::int64_t rows, columns, row_stride, column_stride;
  const float& operator()(std::int64_t row, std::int64_t column) const {
    return data[row * row_stride + column * column_stride];
  }
};
struct ImageOut {
  float* data;
  std::int64_t row_stride, column_stride;
  float& operator()(std::int64_t row, std::int64_t column) const {
    return data[row * row_stride + column * column_stride];
  }
};
struct Mask {
  const float* data;
  std::int64_t row_stride, column_stride;
  int rows, columns;
  int origin_row, origin_column;  // the element that is on y's
  float scale;
  float operator()(int row, int column) const {
    return data[row * row_stride + column * column_stride];
  }
};

inline Image image_of(const Stencil::Args& args, std::int64_t array) {
  return {static_cast<const float*>(args.x.data) + args.batch.offset<0>(array), args.rows().extent,
          args.columns().extent, args.rows().x, args.columns().x};
}
inline ImageOut result_of(const Stencil::Args& args, std::int64_t array) {
  return {static_cast<float*>(args.y.data) + args.batch.offset<1>(array), args.rows().y,
          args.columns().y};
}

inline Support supports_images(const Stencil::Args& args) {
  if (args.x.dtype != DType::f32) return unsupported("takes f32");
  if (args.axes > 2) return unsupported("takes masks of one or two axes");
  return args.edge == StencilEdge::zero ? supported : unsupported("takes zero edges");
}
inline Support supports_textbook(const Stencil::Args& args, const Context&) {
  if (args.weights != Stencil::Weights::mask) return unsupported("takes a mask");
  return supports_images(args);
}

/// Calls f(x, mask, y) for each array of each iteration.
template <class F>
void for_each_image(const Stencil::Args& args, Context& context, F&& f) {
  stencil_detail::for_each_step(args, context, 0, [&](const Stencil::Args& step, void*) {
    const Mask mask{static_cast<const float*>(step.mask.data),
                    step.mask.strides[1],
                    step.mask.strides[2],
                    step.rows().taps,
                    step.columns().taps,
                    step.rows().origin,
                    step.columns().origin,
                    static_cast<float>(step.scale)};
    for (std::int64_t array = 0; array < step.arrays(); ++array) {
      f(image_of(step, array), mask, result_of(step, array));
    }
  });
}

}  // namespace rung::stencil_cpu
