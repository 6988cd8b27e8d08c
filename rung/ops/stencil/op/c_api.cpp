// SPDX-License-Identifier: Apache-2.0
// C functions of stencil.
#include "rung/c/options.hpp"
#include "rung/ops/stencil/stencil.h"
#include "rung/ops/stencil/stencil.hpp"

namespace {

using namespace rung::c_api;
using C = rung_stencil_options;
using Cpp = rung::StencilOptions;
using rung::StencilEdge;

static_assert(same(RUNG_EDGE_ZERO, StencilEdge::zero) && same(RUNG_EDGE_CLAMP, StencilEdge::clamp));
static_assert(same(RUNG_EDGE_MIRROR, StencilEdge::mirror) &&
              same(RUNG_EDGE_WRAP, StencilEdge::wrap));

constexpr auto table = options_table<C, Cpp>(
    "rung_stencil_options",
    list("window", &C::window, "window_count", &C::window_count, &Cpp::window),
    list("anchor", &C::anchor, "anchor_count", &C::anchor_count, &Cpp::anchor),
    choice("edge", &C::edge, &Cpp::edge, StencilEdge::wrap),
    field("convolution", &C::convolution, &Cpp::convolution),
    field("scale", &C::scale, &Cpp::scale), field("iterations", &C::iterations, &Cpp::iterations));

}  // namespace

rung_status rung_stencil_options_init(rung_stencil_options* options, size_t size) {
  return table.init(options, size);
}

rung_status rung_stencil(rung_context* context, const rung_tensor* x, const rung_tensor* mask,
                         const rung_tensor* y, const rung_stencil_options* options) {
  return table.call(rung::stencil, context, options, Argument{x, "x"}, Argument{mask, "mask", true},
                    Argument{y, "y"});
}

rung_status rung_stencil_separable(rung_context* context, const rung_tensor* x,
                                   const rung_tensor* across, const rung_tensor* down,
                                   const rung_tensor* through, const rung_tensor* y,
                                   const rung_stencil_options* options) {
  return table.call(rung::stencil_separable, context, options, Argument{x, "x"},
                    Argument{across, "across"}, Argument{down, "down", true},
                    Argument{through, "through", true}, Argument{y, "y"});
}
