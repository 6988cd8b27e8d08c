// SPDX-License-Identifier: Apache-2.0
// Arguments of the CPU's first rungs: images of f32 with zero edges.
#pragma once

#include <cstdint>

#include "rung/ops/stencil/op/steps.hpp"

namespace rung::stencil_cpu {

using Image = View<const float, 2>;
using ImageOut = View<float, 2>;
struct Mask {
  View<const float, 2> weights;
  int rows, columns;
  int origin_row, origin_column;  // the mask's anchor
  float scale;
  float operator()(int row, int column) const { return weights(row, column); }
};

inline Image image_of(const Stencil::Args& args, std::int64_t array) {
  return {static_cast<const float*>(args.x.data) + args.batch.offset<0>(array),
          {args.rows().extent, args.columns().extent},
          {args.rows().x, args.columns().x}};
}
inline ImageOut result_of(const Stencil::Args& args, std::int64_t array) {
  return {static_cast<float*>(args.y.data) + args.batch.offset<1>(array),
          {args.rows().extent, args.columns().extent},
          {args.rows().y, args.columns().y}};
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
    const Mask mask{step.mask.view<const float, 3>().at(0),
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
