// SPDX-License-Identifier: Apache-2.0
// C interface of scan.
#include "rung/c/options.hpp"
#include "rung/ops/scan/scan.h"
#include "rung/ops/scan/scan.hpp"

namespace {

using namespace rung::c_api;
using C = rung_scan_options;
using Cpp = rung::ScanOptions;
using rung::ScanOperation;

static_assert(same(RUNG_SCAN_SUM, ScanOperation::sum));
static_assert(same(RUNG_SCAN_PRODUCT, ScanOperation::product));
static_assert(same(RUNG_SCAN_MIN, ScanOperation::min));
static_assert(same(RUNG_SCAN_MAX, ScanOperation::max));

constexpr auto table = options_table<C, Cpp>(
    "rung_scan_options", choice("operation", &C::operation, &Cpp::operation, ScanOperation::max),
    field("axis", &C::axis, &Cpp::axis), field("exclusive", &C::exclusive, &Cpp::exclusive),
    field("reverse", &C::reverse, &Cpp::reverse), field("offsets", &C::offsets, &Cpp::offsets));

}  // namespace

rung_status rung_scan_options_init(rung_scan_options* options, size_t size) {
  return table.init(options, size);
}

rung_status rung_scan(rung_context* context, const rung_tensor* x, const rung_tensor* y,
                      const rung_scan_options* options) {
  return table.call(rung::scan, context, options, Argument{x, "x"}, Argument{y, "y"});
}
