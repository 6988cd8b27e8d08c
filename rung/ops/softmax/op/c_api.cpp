// SPDX-License-Identifier: Apache-2.0
// C API of softmax.
#include "rung/c/options.hpp"
#include "rung/ops/softmax/softmax.h"
#include "rung/ops/softmax/softmax.hpp"

namespace {

using namespace rung::c_api;
using C = rung_softmax_options;
using Cpp = rung::SoftmaxOptions;

constexpr auto table =
    options_table<C, Cpp>("rung_softmax_options", field("axis", &C::axis, &Cpp::axis),
                          field("scale", &C::scale, &Cpp::scale), field("log", &C::log, &Cpp::log));

}  // namespace

rung_status rung_softmax_options_init(rung_softmax_options* options, size_t size) {
  return table.init(options, size);
}

rung_status rung_softmax(rung_context* context, const rung_tensor* x, const rung_tensor* y,
                         const rung_softmax_options* options) {
  return table.call(rung::softmax, context, options, Argument{x, "x"}, Argument{y, "y"});
}
