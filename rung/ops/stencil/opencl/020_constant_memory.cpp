// SPDX-License-Identifier: Apache-2.0
// stencil / constant memory: the host side of 020_constant_memory.cl.
#include "rung/ops/stencil/opencl/020_constant_memory.cl.hpp"

#include "rung/core/integer.hpp"
#include "rung/ops/stencil/op/stencil.hpp"
#include "rung/ops/stencil/op/steps.hpp"

namespace rung {
namespace {

/// Kernel argument; mirrors the .cl file's Image.
struct Image {
  std::int64_t rows, columns, x_row, y_row;
  std::int64_t mask_rows, mask_columns, origin_row, origin_column;
};

Support supports(const Stencil::Args& args, const Context&) {
  if (args.edge != StencilEdge::zero) return unsupported("takes zero edges");
  if (args.weights != Stencil::Weights::mask) return unsupported("takes a mask");
  if (args.x.dtype != DType::f32) return unsupported("takes f32");
  if (args.axes > 2) return unsupported("takes masks of one or two axes");
  const Stencil::Axis& columns = args.columns();
  if (columns.extent > 1 && (columns.x != 1 || columns.y != 1)) {
    return unsupported("the rows must be contiguous");
  }
  const Extents& strides = args.mask.strides;
  const bool dense = (columns.taps == 1 || strides[2] == 1) &&
                     (args.rows().taps == 1 || strides[1] == columns.taps);
  return dense ? supported : unsupported("the mask must be contiguous, and is not turned round");
}

void run(const Stencil::Args& args, Context& context) {
  const std::int64_t side = opencl::largest_side(context, 16, 0);
  stencil_detail::for_each_step(args, context, 0, [&](const Stencil::Args& step, void*) {
    const Stencil::Axis& rows = step.rows();
    const Stencil::Axis& columns = step.columns();
    const Image image{rows.extent, columns.extent, rows.x,      rows.y,
                      rows.taps,   columns.taps,   rows.origin, columns.origin};
    for (std::int64_t array = 0; array < step.arrays(); ++array) {
      std::int64_t at[2];
      step.batch.offsets(array, at);
      opencl::launch(
          context, {.source = source, .name = "stencil_constant_memory"},
          {.groups = {ceil_div(columns.extent, side), ceil_div(rows.extent, side)},
           .items = {side, side}},
          opencl::pointer_to(static_cast<const float*>(step.x.data) + at[0]),
          opencl::Constant{step.mask.data, static_cast<std::size_t>(step.taps()) * sizeof(float)},
          opencl::pointer_to(static_cast<const float*>(step.y.data) + at[1]), image,
          static_cast<float>(step.scale));
    }
  });
}

const Rung<Stencil> self{{.name = "constant_memory",
                          .step = 20,
                          .backend = Backend::opencl,
                          .supports = supports,
                          .run = run},
                         source.path};

}  // namespace
}  // namespace rung
