// SPDX-License-Identifier: Apache-2.0
// norm / onednn: oneDNN's layer normalization as a peer.
//
// Kernels  generated at run time for the CPU.
// Limits   Layer norm over the last axis only, f32 and bf16 (if the CPU has it), gamma and beta of
//          f32; no residual; no statistics, because oneDNN returns the variance instead of rstd.
#include "rung/peers/onednn.hpp"
#include "rung/ops/norm/op/norm.hpp"
#include "rung/peers/thread_count.hpp"

namespace rung {
namespace {

onednn::Primitive& cached() {
  thread_local onednn::Primitive primitive;
  return primitive;
}

/// Returns gamma or beta as the vector given, before it was spread over x.
ConstTensorRef vector_of(const ConstTensorRef& weights, const Norm::Args& args) {
  const int last = args.x.rank() - 1;
  return {weights.data, weights.dtype, Extents{args.x.shape[last]}, Extents{weights.strides[last]},
          weights.device};
}

bool prepare(const Norm::Args& args, int threads) {
  onednn::Operation operation{.kind = onednn::Kind::layer_norm,
                              .beta = static_cast<float>(args.epsilon)};
  if (args.gamma.data == nullptr) {
    return cached().prepare(operation, {{onednn::source, args.x}, {onednn::destination, args.y}},
                            threads);
  }
  operation.scale = operation.shift = true;
  return cached().prepare(operation,
                          {{onednn::source, args.x},
                           {onednn::destination, args.y},
                           {onednn::scale, vector_of(args.gamma, args)},
                           {onednn::shift, vector_of(args.beta, args)}},
                          threads);
}

Support supports(const Norm::Args& args, const Context& context) {
  if (args.kind != NormKind::layer) return unsupported("oneDNN has no RMS norm");
  if (args.x.dtype != DType::f32 && args.x.dtype != DType::bf16) {
    return unsupported("the peer takes f32 and bf16");
  }
  if (args.x.rank() < 2 || args.normalized != AxisSet{1} << (args.x.rank() - 1)) {
    return unsupported("the peer normalizes the last axis alone");
  }
  if (args.x.empty()) return unsupported("empty");
  if (args.residual.data != nullptr) return unsupported("no residual");
  if (args.mean.data != nullptr || args.rstd.data != nullptr) return unsupported("no statistics");
  if ((args.gamma.data == nullptr) != (args.beta.data == nullptr)) {
    return unsupported("gamma and beta, or neither");
  }
  const int last = args.x.rank() - 1;
  if (args.gamma.data != nullptr) {
    if (args.gamma.dtype != DType::f32) return unsupported("gamma and beta of f32 only");
    if (args.gamma.strides[last] != 1 || args.beta.strides[last] != 1) {
      return unsupported("gamma and beta contiguous");
    }
  }
  // oneDNN 2.6 writes into the padding between rows, so padded rows are rejected.
  const Extents contiguous = args.x.shape.contiguous_strides();
  if (!(args.x.strides == contiguous && args.y.strides == contiguous)) {
    return unsupported("x and y contiguous");
  }
  return prepare(args, context.threads()) ? supported
                                          : unsupported("oneDNN has no such primitive here");
}

void run(const Norm::Args& args, Context& context) {
  const peer::ThreadCount threads(context.threads());
  prepare(args, context.threads());
  if (args.gamma.data == nullptr) {
    cached().run({args.x.data, args.y.data});
  } else {
    cached().run({args.x.data, args.y.data, args.gamma.data, args.beta.data});
  }
}

const Rung<Norm> self{{.name = "onednn",
                       .peer = true,
                       .about = onednn::about,
                       .present = onednn::present,
                       .supports = supports,
                       .run = run}};

}  // namespace
}  // namespace rung
