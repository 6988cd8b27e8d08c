// SPDX-License-Identifier: Apache-2.0
// C interface of transfer.
#include "rung/c/options.hpp"
#include "rung/ops/transfer/transfer.h"
#include "rung/ops/transfer/transfer.hpp"

namespace {

using namespace rung::c_api;
using C = rung_transfer_options;
using Cpp = rung::TransferOptions;

constexpr auto table = options_table<C, Cpp>(
    "rung_transfer_options",
    choice("function", &C::function, &Cpp::function, rung::ElementwiseFunction::sign));

}  // namespace

rung_status rung_transfer_options_init(rung_transfer_options* options, size_t size) {
  return table.init(options, size);
}

rung_status rung_transfer(rung_context* context, const rung_tensor* x, const rung_tensor* y,
                          const rung_transfer_options* options) {
  return table.call(rung::transfer, context, options, Argument{x, "x"}, Argument{y, "y"});
}
