// SPDX-License-Identifier: Apache-2.0
// conv: the operator's object, its list of rungs, and the dispatch of every call.
#include "rung/ops/conv/op/conv.hpp"

#include "rung/core/require.hpp"
#include "rung/harness/any_operator.hpp"
#include "rung/ops/conv/shared/axes.hpp"

namespace rung {
namespace {

// Initialized before any dynamic initializer runs, so rungs of any file may push themselves.
constinit RungList<Conv> rung_list;
const Operator<Conv> self;

}  // namespace

RungList<Conv>& Conv::rungs() { return rung_list; }

void Conv::bind(Args& args) {
  const ConvOptions& options = args.options;
  require_choice(name, options.activation, Activation::tanh, "activation");
  args.axes = args.x.rank();
  args.geometry = conv_axes::bind_layer(name, conv_axes::Named<ConstTensorRef>{args.x, "x"},
                                        conv_axes::Named<ConstTensorRef>{args.w, "w"},
                                        conv_axes::Named<TensorRef>{args.y, "y"}, options);
  if (is_given(options.bias)) {
    require_shape(name, options.bias, "bias", {args.geometry.filters});
    require_dtype(name, options.bias, "bias", {args.x.dtype});
  }
}

void conv(Context& context, const ConstTensorRef& x, const ConstTensorRef& w, const TensorRef& y,
          const ConvOptions& options, Pick pick) {
  call<Conv>(context, {.x = x, .w = w, .y = y, .options = options}, pick);
}

std::int64_t convolved_extent(std::int64_t extent, std::int64_t kernel, int stride, int padding,
                              int dilation) {
  return conv_axes::axis_of(Conv::name, "axis", extent, kernel, {stride, padding, dilation}).out;
}

}  // namespace rung
