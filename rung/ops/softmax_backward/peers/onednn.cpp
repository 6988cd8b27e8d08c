// SPDX-License-Identifier: Apache-2.0
// softmax_backward / onednn: oneDNN's backward softmax primitive as a peer.
//
// Kernels  generated at run time for the CPU.
// Limits   f32 and bf16, with and without logarithm; no scale; finite values, because oneDNN's
//          results for infinities and NaN differ from the contract.
#include <limits>

#include "rung/ops/softmax/shared/value_range.hpp"
#include "rung/ops/softmax_backward/op/softmax_backward.hpp"
#include "rung/peers/onednn.hpp"
#include "rung/peers/thread_count.hpp"

namespace rung {
namespace {

/// Returns the thread's cached primitive, so that repeated calls reuse it.
onednn::Primitive& cached() {
  thread_local onednn::Primitive primitive;
  return primitive;
}

bool prepare(const SoftmaxBackward::Args& args, int threads) {
  onednn::Operation operation{
      .kind = onednn::Kind::softmax,
      .algorithm = args.log ? onednn::Algorithm::log_softmax : onednn::Algorithm::softmax,
      .backward = true,
      .axis = args.axis};
  return cached().prepare(operation,
                          {{onednn::destination, args.y},
                           {onednn::gradient_destination, args.dy},
                           {onednn::gradient_source, args.dx}},
                          threads);
}

bool has_broadcast(const ConstTensorRef& tensor) {
  for (int axis = 0; axis < tensor.rank(); ++axis) {
    if (tensor.strides[axis] == 0 && tensor.shape[axis] > 1) return true;
  }
  return false;
}

Support supports(const SoftmaxBackward::Args& args, const Context& context) {
  if (args.empty()) return unsupported("nothing to do");
  if (args.scale != 1.0) return unsupported("oneDNN's softmax has no scale");
  if (has_broadcast(args.y) || has_broadcast(args.dy)) {
    return unsupported("no strides of 0");
  }
  if (!softmax_values::are_below(std::numeric_limits<double>::infinity(), args.scale, args.y,
                                 context)) {
    return unsupported("answers infinities and NaN otherwise than we do");
  }
  if (!prepare(args, context.threads())) {
    return unsupported("oneDNN has no such primitive for this processor, these types and strides");
  }
  return supported;
}

void run(const SoftmaxBackward::Args& args, Context& context) {
  const peer::ThreadCount threads(context.threads());
  prepare(args, context.threads());
  cached().run({args.y.data, args.dy.data, args.dx.data});
}

const Rung<SoftmaxBackward> self{{.name = "onednn",
                                  .peer = true,
                                  .about = onednn::about,
                                  .present = onednn::present,
                                  .supports = supports,
                                  .run = run}};

}  // namespace
}  // namespace rung
