// SPDX-License-Identifier: Apache-2.0
// elementwise / onednn: the peer oneDNN: oneDNN's eltwise and binary primitives.
//
// Kernels  generated at run time for the detected processor; a limit by DNNL_MAX_CPU_ISA is lifted.
// Limits   no axpy and no fma; no broadcasting of the first operand; infinities and subnormals are
//          not checked.
#include <algorithm>

#include "rung/ops/elementwise/op/elementwise.hpp"
#include "rung/peers/onednn.hpp"
#include "rung/peers/thread_count.hpp"

namespace rung {
namespace {

onednn::Primitive& cached() {
  thread_local onednn::Primitive primitive;
  return primitive;
}

onednn::Algorithm algorithm_of(ElementwiseFunction function) {
  using enum ElementwiseFunction;
  using onednn::Algorithm;
  switch (function) {
    case add:
      return Algorithm::add;
    case sub:
      return Algorithm::subtract;
    case mul:
      return Algorithm::multiply;
    case div:
      return Algorithm::divide;
    case relu:
      return Algorithm::relu;
    case sigmoid:
      return Algorithm::logistic;
    case tanh:
      return Algorithm::tanh;
    case gelu:
      return Algorithm::gelu_erf;
    case exp:
      return Algorithm::exp;
    default:
      return Algorithm::none;
  }
}

/// Returns the tensor with extents of 1 on repeated axes, as oneDNN requires.
ConstTensorRef narrowed(ConstTensorRef tensor) {
  std::int64_t dense = 1;
  for (int axis = tensor.rank() - 1; axis >= 0; --axis) {
    if (tensor.strides[axis] != 0) continue;
    tensor.shape[axis] = 1;
    tensor.strides[axis] = 1;
  }
  for (int axis = tensor.rank() - 1; axis >= 0; --axis) {
    if (tensor.shape[axis] == 1) tensor.strides[axis] = dense;
    dense = std::max(dense, tensor.strides[axis] * tensor.shape[axis]);
  }
  return tensor;
}

bool prepare(const Elementwise::Args& args, int threads) {
  const onednn::Algorithm algorithm = algorithm_of(args.function);
  if (args.arity() == 1) {
    return cached().prepare({.kind = onednn::Kind::eltwise, .algorithm = algorithm},
                            {{onednn::source, args.in[0]}, {onednn::destination, args.z}}, threads);
  }
  return cached().prepare({.kind = onednn::Kind::binary, .algorithm = algorithm},
                          {{onednn::source, args.in[0]},
                           {onednn::source_1, narrowed(args.in[1])},
                           {onednn::destination, args.z}},
                          threads);
}

Support supports(const Elementwise::Args& args, const Context& context) {
  if (algorithm_of(args.function) == onednn::Algorithm::none) {
    return unsupported("oneDNN has no such primitive");
  }
  if (!is_floating(args.z.dtype)) return unsupported("floating types only");
  if (args.z.empty() || args.layout.rank == 0) return unsupported("nothing to compute, or no axes");
  for (int axis = 0; axis < args.z.rank(); ++axis) {
    if (args.in[0].strides[axis] == 0 && args.z.shape[axis] > 1) {
      return unsupported("oneDNN broadcasts the second operand only");
    }
  }
  // oneDNN 2.6 accepts gaps within rows, but then writes nothing.
  if (args.layout.strides[0][args.layout.rank - 1] > 1) {
    return unsupported("the elements of a row are apart");
  }
  return prepare(args, context.threads()) ? supported
                                          : unsupported("oneDNN has no such primitive here");
}

void run(const Elementwise::Args& args, Context& context) {
  const peer::ThreadCount threads(context.threads());
  prepare(args, context.threads());
  if (args.arity() == 1) {
    cached().run({args.in[0].data, args.z.data});
  } else {
    cached().run({args.in[0].data, args.in[1].data, args.z.data});
  }
}

const Rung<Elementwise> self{{.name = "onednn",
                              .peer = true,
                              .about = onednn::about,
                              .present = onednn::present,
                              .supports = supports,
                              .run = run}};

}  // namespace
}  // namespace rung
