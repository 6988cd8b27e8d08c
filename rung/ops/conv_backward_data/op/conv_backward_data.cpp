// SPDX-License-Identifier: Apache-2.0
// conv_backward_data: the operator's object, its list of rungs, and the dispatch of every call.
#include "rung/ops/conv_backward_data/op/conv_backward_data.hpp"

#include "rung/harness/any_operator.hpp"
#include "rung/ops/conv/shared/axes.hpp"

namespace rung {
namespace {

// Initialized before any dynamic initializer runs, so rungs of any file may push themselves.
constinit RungList<ConvBackwardData> rung_list;
const Operator<ConvBackwardData> self;

}  // namespace

RungList<ConvBackwardData>& ConvBackwardData::rungs() { return rung_list; }

void ConvBackwardData::bind(Args& args) {
  args.axes = args.dx.rank();
  args.geometry =
      conv_axes::bind_layer(name, conv_axes::Named<TensorRef>{args.dx, "dx"},
                            conv_axes::Named<ConstTensorRef>{args.w, "w"},
                            conv_axes::Named<ConstTensorRef>{args.dy, "dy"}, args.options);
}

void conv_backward_data(Context& context, const ConstTensorRef& dy, const ConstTensorRef& w,
                        const TensorRef& dx, const ConvBackwardDataOptions& options, Pick pick) {
  call<ConvBackwardData>(context, {.dy = dy, .w = w, .dx = dx, .options = options}, pick);
}

}  // namespace rung
