// SPDX-License-Identifier: Apache-2.0
// C interface of reduce.
#include "rung/c/options.hpp"
#include "rung/ops/reduce/reduce.h"
#include "rung/ops/reduce/reduce.hpp"

namespace {

using namespace rung::c_api;
using C = rung_reduce_options;
using Cpp = rung::ReduceOptions;
using rung::Reduction;

static_assert(same(RUNG_REDUCE_SUM, Reduction::sum));
static_assert(same(RUNG_REDUCE_PRODUCT, Reduction::product));
static_assert(same(RUNG_REDUCE_MIN, Reduction::min));
static_assert(same(RUNG_REDUCE_MAX, Reduction::max));
static_assert(same(RUNG_REDUCE_MEAN, Reduction::mean));
static_assert(same(RUNG_REDUCE_ARGMIN, Reduction::argmin));
static_assert(same(RUNG_REDUCE_ARGMAX, Reduction::argmax));
static_assert(same(RUNG_REDUCE_NORM, Reduction::norm));

constexpr auto table = options_table<C, Cpp>(
    "rung_reduce_options", choice("operation", &C::operation, &Cpp::operation, Reduction::norm),
    list("axes", &C::axes, "axes_count", &C::axes_count, &Cpp::axes),
    field("offsets", &C::offsets, &Cpp::offsets));

}  // namespace

rung_status rung_reduce_options_init(rung_reduce_options* options, size_t size) {
  return table.init(options, size);
}

rung_status rung_reduce(rung_context* context, const rung_tensor* x, const rung_tensor* y,
                        const rung_reduce_options* options) {
  return table.call(rung::reduce, context, options, Argument{x, "x"}, Argument{y, "y"});
}

rung_status rung_reduced_dtype(rung_reduction operation, rung_dtype x, rung_dtype* y) {
  return guarded([&] {
    require(y, {"y"});
    *y = static_cast<rung_dtype>(
        rung::reduced_dtype(checked_enum(operation, Reduction::norm, {"operation"}),
                            checked_enum(x, rung::DType::u16, {"x"})));
  });
}
