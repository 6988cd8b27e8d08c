// SPDX-License-Identifier: Apache-2.0
// conv_backward_filter: the operator's object, its list of rungs, and the dispatch of every call.
#include "rung/ops/conv_backward_filter/op/conv_backward_filter.hpp"

#include "rung/harness/any_operator.hpp"
#include "rung/ops/conv/shared/axes.hpp"

namespace rung {
namespace {

// Initialized before any dynamic initializer runs, so rungs of any file may push themselves.
constinit RungList<ConvBackwardFilter> rung_list;
const Operator<ConvBackwardFilter> self;

}  // namespace

RungList<ConvBackwardFilter>& ConvBackwardFilter::rungs() { return rung_list; }

void ConvBackwardFilter::bind(Args& args) {
  args.axes = args.x.rank();
  args.geometry =
      conv_axes::bind_layer(name, conv_axes::Named<ConstTensorRef>{args.x, "x"},
                            conv_axes::Named<TensorRef>{args.dw, "dw"},
                            conv_axes::Named<ConstTensorRef>{args.dy, "dy"}, args.options);
}

void conv_backward_filter(Context& context, const ConstTensorRef& x, const ConstTensorRef& dy,
                          const TensorRef& dw, const ConvBackwardFilterOptions& options,
                          Pick pick) {
  call<ConvBackwardFilter>(context, {.x = x, .dy = dy, .dw = dw, .options = options}, pick);
}

}  // namespace rung
