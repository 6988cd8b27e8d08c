// SPDX-License-Identifier: Apache-2.0
// pool / onednn: the peer oneDNN, its pooling primitive.
//
// Kernels  JIT-compiled for the detected processor.
// Limits   f32 and bf16; maximum without indices, average; no bias, no activation. No window that
//          reaches beyond the padded image if padding is counted, since oneDNN counts positions
//          beyond it too. Finite values only, since oneDNN's result for NaN differs.
#include <algorithm>
#include <cmath>
#include <cstddef>

#include "rung/ops/pool/op/pool.hpp"
#include "rung/peers/onednn.hpp"
#include "rung/peers/thread_count.hpp"

namespace rung {
namespace {

/// Returns the thread's primitive, which repeated calls reuse.
onednn::Primitive& cached() {
  thread_local onednn::Primitive primitive;
  return primitive;
}

bool prepare(const Pool::Args& args, int threads) {
  onednn::Operation operation{.kind = onednn::Kind::pooling};
  operation.algorithm = args.kind() == Pooling::max  ? onednn::Algorithm::pool_max
                        : args.options.count_padding ? onednn::Algorithm::pool_average
                                                     : onednn::Algorithm::pool_average_of_existing;
  const PoolAxis* axes[] = {&args.rows, &args.columns};
  for (int i = 0; i < 2; ++i) {
    const PoolAxis& axis = *axes[i];
    operation.window.strides[i] = axis.stride;
    operation.window.kernel[i] = axis.kernel;
    operation.window.dilation[i] = axis.dilation - 1;
    operation.window.front[i] = axis.padding;
    const std::int64_t end = axis.start(axis.out - 1) + (axis.kernel - 1) * axis.dilation + 1;
    operation.window.behind[i] = std::max<std::int64_t>(0, end - axis.in);
  }
  return cached().prepare(operation, {{onednn::source, args.x}, {onednn::destination, args.y}},
                          threads);
}

/// Returns whether x is finite. Large tensors are not scanned, since that would take longer than
/// timing them: they have ordinary values.
bool is_finite(const ConstTensorRef& x) {
  constexpr std::int64_t worth_looking = std::int64_t{1} << 22;
  if (x.size() > worth_looking) return true;
  for (std::int64_t i = 0; i < x.size(); ++i) {
    std::int64_t rest = i;
    std::int64_t offset = 0;
    for (int axis = 3; axis >= 0; --axis) {
      offset += rest % x.shape[axis] * x.strides[axis];
      rest /= x.shape[axis];
    }
    const auto bytes = static_cast<std::int64_t>(size_of(x.dtype));
    const auto* element = static_cast<const std::byte*>(x.data) + offset * bytes;
    if (!std::isfinite(load_as_double(x.dtype, element))) return false;
  }
  return true;
}

Support supports(const Pool::Args& args, const Context& context) {
  if (args.y.empty()) return unsupported("nothing to do");
  if (args.kind() != Pooling::max && args.kind() != Pooling::average) {
    return unsupported("maximum and average only");
  }
  if (args.has_indices() || args.has_epilogue()) {
    return unsupported("no indices, no bias, no activation");
  }
  if (onednn::has_broadcast_axis(args.x)) return unsupported("no strides of 0");
  const bool beyond = args.rows.padded_taps(args.rows.out - 1) < args.rows.kernel ||
                      args.columns.padded_taps(args.columns.out - 1) < args.columns.kernel;
  if (beyond && args.kind() == Pooling::average && args.options.count_padding) {
    return unsupported("counts places beyond the padding, too");
  }
  if (!is_finite(args.x)) return unsupported("answers infinities and NaN otherwise than we do");
  return prepare(args, context.threads())
             ? supported
             : unsupported("oneDNN has no such primitive for this processor, type and layout");
}

void run(const Pool::Args& args, Context& context) {
  const peer::ThreadCount threads(context.threads());
  prepare(args, context.threads());
  cached().run({args.x.data, args.y.data});
}

const Rung<Pool> self{{.name = "onednn",
                       .peer = true,
                       .about = onednn::about,
                       .present = onednn::present,
                       .supports = supports,
                       .run = run}};

}  // namespace
}  // namespace rung
