// SPDX-License-Identifier: Apache-2.0
// reduce / onednn: the peer oneDNN, its reduction primitive.
//
// Kernels  generated at run time for the detected processor; DNNL_MAX_CPU_ISA is overridden.
// Limits   f32, and bf16 and f16 if its kernels support them; no argmin and no argmax. min and max
//          do not propagate NaN.
#include "rung/peers/onednn.hpp"
#include "rung/ops/reduce/peers/call.hpp"
#include "rung/peers/thread_count.hpp"

namespace rung {
namespace {
using namespace reduce_peer;

onednn::Primitive& cached() {
  thread_local onednn::Primitive primitive;
  return primitive;
}

onednn::Algorithm algorithm_of(Reduction operation) {
  using onednn::Algorithm;
  switch (operation) {
    case Reduction::sum:
      return Algorithm::reduce_sum;
    case Reduction::product:
      return Algorithm::reduce_multiply;
    case Reduction::min:
      return Algorithm::reduce_min;
    case Reduction::max:
      return Algorithm::reduce_max;
    case Reduction::mean:
      return Algorithm::reduce_mean;
    case Reduction::norm:
      return Algorithm::reduce_norm;
    default:
      return Algorithm::none;
  }
}

bool prepare(const Reduce::Args& args, int threads) {
  const Shape shape = shape_of(args);
  ConstTensorRef x = args.x;
  x.shape = Extents{shape.outer, shape.length, shape.inner};
  x.strides = x.shape.contiguous_strides();
  TensorRef y = args.y;
  y.shape = Extents{shape.outer, 1, shape.inner};
  y.strides = y.shape.contiguous_strides();
  return cached().prepare(
      {.kind = onednn::Kind::reduction, .algorithm = algorithm_of(args.operation), .alpha = 2},
      {{onednn::source, x}, {onednn::destination, y}}, threads);
}

Support supports(const Reduce::Args& args, const Context& context) {
  if (args.x.dtype == DType::f64) return unsupported("no f64");
  if (const Support plain = supports_plain(args); !plain) return plain;
  if (shape_of(args).length == 1) return unsupported("one term: oneDNN requires more");
  return prepare(args, context.threads()) ? supported : unsupported("oneDNN has no such primitive");
}

void run(const Reduce::Args& args, Context& context) {
  const peer::ThreadCount threads(context.threads());
  prepare(args, context.threads());
  cached().run({args.x.data, args.y.data});
}

const Rung<Reduce> self{{.name = "onednn",
                         .peer = true,
                         .about = onednn::about,
                         .present = onednn::present,
                         .supports = supports,
                         .run = run}};

}  // namespace
}  // namespace rung
