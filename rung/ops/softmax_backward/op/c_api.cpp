// SPDX-License-Identifier: Apache-2.0
// C API of softmax_backward.
#include "rung/c/options.hpp"
#include "rung/ops/softmax_backward/softmax_backward.h"
#include "rung/ops/softmax_backward/softmax_backward.hpp"

namespace {

using namespace rung::c_api;
using C = rung_softmax_options;
using Cpp = rung::SoftmaxOptions;

constexpr auto table =
    options_table<C, Cpp>("rung_softmax_options", field("axis", &C::axis, &Cpp::axis),
                          field("scale", &C::scale, &Cpp::scale), field("log", &C::log, &Cpp::log));

}  // namespace

rung_status rung_softmax_backward(rung_context* context, const rung_tensor* y,
                                  const rung_tensor* dy, const rung_tensor* dx,
                                  const rung_softmax_options* options) {
  return table.call(rung::softmax_backward, context, options, Argument{y, "y"}, Argument{dy, "dy"},
                    Argument{dx, "dx"});
}
