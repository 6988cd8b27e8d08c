// SPDX-License-Identifier: Apache-2.0
// reduce / functor
//
// Idea     an operation that is associative but need not commute: elements keep their order, here
//          for min and max as a combine(earlier, later) that gives the first of equals. The kernels
//          (functor.cuh) are those of reduce.cuh, which takes functors of the caller's own.
// Changes  against general: each thread folds eight neighbors of a tile instead of elements that
//          lie a block apart; the states of a row's parts are joined by a second launch.
// Cost     x once; a warp's lanes read addresses that are eight elements apart.
// Limits   min and max of f32, one axis reduced and one kept. The specialized kernels are faster,
//          hence never picked.
// Source   -
#include "rung/ops/reduce/reduce.cuh"

#include <limits>

#include "rung/ops/reduce/cuda/detail/states.hpp"

namespace rung::reduce_cuda::inline RUNG_TARGET {
namespace {

/// The first of the least, or of the greatest where `sign` is -1; a NaN before all numbers.
struct First {
  float sign;
  RUNG_HD float operator()(float a, float b) const {
    return a != a || !(sign * b < sign * a || b != b) ? a : b;
  }
};

Support supports(const Reduce::Args& args, const Context&) {
  if (args.x.dtype != DType::f32) return unsupported("f32 only");
  if (args.has_segments()) return unsupported("no segments");
  if (args.terms.rank > 1 || args.kept.rank > 1) return unsupported("one axis kept, one reduced");
  if (args.operation != Reduction::min && args.operation != Reduction::max) {
    return unsupported("min and max");
  }
  return supported;
}

void run(const Reduce::Args& args, Context& context) {
  View<const float, 2> x;
  x.data = static_cast<const float*>(args.x.data);
  x.shape[0] = args.kept.size();
  x.shape[1] = args.terms.size();
  x.strides[0] = args.kept.strides[0][0];
  x.strides[1] = args.terms.strides[0][0];
  View<float, 1> y;
  y.data = static_cast<float*>(args.y.data);
  y.shape[0] = args.kept.size();
  y.strides[0] = args.kept.strides[1][0];
  const float sign = args.operation == Reduction::min ? 1.0F : -1.0F;
  reduce_by(context, x, y, sign * std::numeric_limits<float>::infinity(), First{sign});
}

const Rung<Reduce> self{{.name = "functor",
                         .after = "general",
                         .backend = device_backend,
                         .teaching = true,
                         .supports = supports,
                         .run = run}};

}  // namespace
}  // namespace rung::reduce_cuda::inline RUNG_TARGET
