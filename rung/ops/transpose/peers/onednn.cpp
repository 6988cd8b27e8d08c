// SPDX-License-Identifier: Apache-2.0
// transpose / onednn: the peer oneDNN, its reorder primitive between two layouts of one tensor.
//
// Kernels  generated at run time for the detected processor and the given strides.
// Limits   its own types; no broadcast, no empty tensors.
#include "rung/peers/onednn.hpp"

#include "rung/cpu/isa.hpp"
#include "rung/ops/transpose/op/transpose.hpp"
#include "rung/peers/thread_count.hpp"

namespace rung {
namespace {

onednn::Primitive& cached() {  // one per thread, reused by repeated calls
  thread_local onednn::Primitive primitive;
  return primitive;
}

/// Returns x as a tensor of y's shape, its axes in y's order.
ConstTensorRef reordered(const Transpose::Args& args) {
  ConstTensorRef x = args.x;
  x.shape = args.y.shape;
  for (int axis = 0; axis < args.y.rank(); ++axis) {
    x.strides[axis] = args.x.strides[static_cast<int>(args.order[axis])];
  }
  return x;
}

bool prepare(const Transpose::Args& args, int threads) {
  return cached().prepare({.kind = onednn::Kind::reorder},
                          {{onednn::source, reordered(args)}, {onednn::destination, args.y}},
                          threads);
}

Support supports(const Transpose::Args& args, const Context& context) {
  if (args.moves.empty()) return unsupported("oneDNN takes no empty tensors");
  // Without AVX-512 oneDNN converts through f32 and flushes subnormals: -6e-39 becomes -0.
  if (args.x.dtype == DType::bf16 && cpu::isa() != cpu::Isa::avx512) {
    return unsupported("oneDNN 2.6 moves bf16 exactly with AVX-512 only");
  }
  for (int axis = 0; axis < args.x.rank(); ++axis) {
    if (args.x.strides[axis] <= 0 || args.y.strides[axis] <= 0) {
      return unsupported("oneDNN takes positive strides");
    }
  }
  return prepare(args, context.threads()) ? supported : unsupported("oneDNN has no such reorder");
}

void run(const Transpose::Args& args, Context& context) {
  const peer::ThreadCount threads(context.threads());
  prepare(args, context.threads());
  cached().run({args.x.data, args.y.data});
}

const Rung<Transpose> self{{.name = "onednn",
                            .peer = true,
                            .about = onednn::about,
                            .present = onednn::present,
                            .supports = supports,
                            .run = run}};

}  // namespace
}  // namespace rung
