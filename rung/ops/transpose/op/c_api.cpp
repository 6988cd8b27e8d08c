// SPDX-License-Identifier: Apache-2.0
// C interface of transpose.
#include "rung/c/options.hpp"
#include "rung/ops/transpose/transpose.h"
#include "rung/ops/transpose/transpose.hpp"

namespace {

using namespace rung::c_api;
using C = rung_transpose_options;
using Cpp = rung::TransposeOptions;

constexpr auto table =
    options_table<C, Cpp>("rung_transpose_options",
                          list("order", &C::order, "order_count", &C::order_count, &Cpp::order));

}  // namespace

rung_status rung_transpose_options_init(rung_transpose_options* options, size_t size) {
  return table.init(options, size);
}

rung_status rung_transpose(rung_context* context, const rung_tensor* x, const rung_tensor* y,
                           const rung_transpose_options* options) {
  return table.call(rung::transpose, context, options, Argument{x, "x"}, Argument{y, "y"});
}
