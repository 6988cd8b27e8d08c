// SPDX-License-Identifier: Apache-2.0
// Descriptors for oneDNN 2 and 3.
#include "rung/peers/onednn_describe.hpp"

#include <iterator>

namespace rung::onednn {
namespace {

constexpr int forward_training = 64;
constexpr int forward_inference = 96;
constexpr int backward_all = 128;
constexpr int backward_data = 160;

/// oneDNN's numbers of the algorithms, in the order of Algorithm; version 3 renumbered eltwise.
struct Number {
  int version_2, version_3;
};
constexpr Number numbers[] = {
    {0, 0},
    {0x1f, 0x20},        // relu
    {0x2f, 0x21},        // tanh
    {0x3f, 0x22},        // elu
    {0x4f, 0x23},        // square
    {0x5f, 0x24},        // abs
    {0x6f, 0x25},        // sqrt
    {0x7f, 0x26},        // linear
    {0x9f, 0x27},        // soft_relu
    {0xaf, 0x29},        // logistic
    {0xbf, 0x2a},        // exp
    {0xcf, 0x2b},        // gelu_tanh
    {0xdf, 0x2c},        // swish
    {0xef, 0x2d},        // log
    {0xff, 0x2e},        // clip
    {0x20, 0x30},        // pow
    {0x30, 0x31},        // gelu_erf
    {0x40, 0x32},        // round
    {0x1fff0, 0x1fff0},  // add
    {0x1fff1, 0x1fff1},  // multiply
    {0x1fff2, 0x1fff2},  // maximum
    {0x1fff3, 0x1fff3},  // minimum
    {0x1fff4, 0x1fff4},  // divide
    {0x1fff5, 0x1fff5},  // subtract
    {0x2fff2, 0x2fff2},  // reduce_max
    {0x2fff3, 0x2fff3},  // reduce_min
    {0x2fff4, 0x2fff4},  // reduce_sum
    {0x2fff5, 0x2fff5},  // reduce_multiply
    {0x2fff6, 0x2fff6},  // reduce_mean
    {0x2fff8, 0x2fff8},  // reduce_norm
    {0x2fffa, 0x2fffa},  // reduce_norm_power_p
    {0x30000, 0x30000},  // softmax
    {0x30001, 0x30001},  // log_softmax
    {0x1, 0x1},          // direct
    {0x3, 0x3},          // direct_or_winograd
    {0x1ff, 0x1ff},      // pool_max
    {0x2ff, 0x2ff},      // pool_average
    {0x3ff, 0x3ff},      // pool_average_of_existing
};
static_assert(std::size(numbers) ==
              static_cast<std::size_t>(Algorithm::pool_average_of_existing) + 1);

/// Returns oneDNN's number of a type, or 0 if it has none.
int data_type(DType dtype) {
  switch (dtype) {
    case DType::f16:
      return 1;
    case DType::bf16:
      return 2;
    case DType::f32:
      return 3;
    case DType::i32:
      return 4;
    case DType::i8:
      return 5;
    case DType::u8:
      return 6;
    default:
      return 0;
  }
}

unsigned norm_flags(const Operation& operation) {
  const bool three = library().version_3;
  return (operation.scale ? (three ? 0x2u : 0x8u) : 0u) |
         (operation.shift ? (three ? 0x4u : 0x10u) : 0u);
}

/// Calls one of the library's optional functions and returns whether it succeeded; false if it is
/// missing.
template <class... Parameters, class... Arguments>
bool succeeds(Status (*function)(Parameters...), const Arguments&... arguments) {
  return function != nullptr && function(arguments...) == 0;
}

bool describe_3(const Operation& op, const Layouts& x, Handle hint, Handle* made) {
  const Library& lib = library();
  const int algorithm = numbers[static_cast<std::size_t>(op.algorithm)].version_3;
  const int forward = op.training ? forward_training : forward_inference;
  const int backward = op.scale || op.shift ? backward_all : backward_data;
  const Window& w = op.window;
  Handle e = lib.engine;
  Handle none = nullptr;
  const Description no_bias = nullptr;
  switch (op.kind) {
    case Kind::matmul:
      return succeeds(lib.v3.matmul, made, e, x[source], x[weights], no_bias, x[destination], none);
    case Kind::eltwise:
      return succeeds(lib.v3.eltwise, made, e, forward, algorithm, x[source], x[destination],
                      op.alpha, op.beta, none);
    case Kind::binary:
      return succeeds(lib.v3.binary, made, e, algorithm, x[source], x[source_1], x[destination],
                      none);
    case Kind::softmax:
      return op.backward ? succeeds(lib.v3.softmax_backward, made, e, algorithm, x[gradient_source],
                                    x[gradient_destination], x[destination], op.axis, hint, none)
                         : succeeds(lib.v3.softmax, made, e, forward, algorithm, x[source],
                                    x[destination], op.axis, none);
    case Kind::layer_norm:
      return op.backward ? succeeds(lib.v3.layer_norm_backward, made, e, backward,
                                    x[gradient_source], x[gradient_destination], x[source], x[mean],
                                    op.beta, norm_flags(op), hint, none)
                         : succeeds(lib.v3.layer_norm, made, e, forward, x[source], x[destination],
                                    x[mean], op.beta, norm_flags(op), none);
    case Kind::reduction:
      return succeeds(lib.v3.reduction, made, e, algorithm, x[source], x[destination], op.alpha,
                      op.beta, none);
    case Kind::reorder:
      return succeeds(lib.reorder, made, x[source], e, x[destination], e, none);
    case Kind::convolution:
      if (!op.backward) {
        return succeeds(lib.v3.convolution, made, e, forward, algorithm, x[source], x[weights],
                        no_bias, x[destination], w.strides, w.dilation, w.front, w.behind, none);
      }
      return x.has(gradient_weights)
                 ? succeeds(lib.v3.convolution_weights, made, e, algorithm, x[source],
                            x[gradient_weights], no_bias, x[gradient_destination], w.strides,
                            w.dilation, w.front, w.behind, hint, none)
                 : succeeds(lib.v3.convolution_data, made, e, algorithm, x[gradient_source],
                            x[weights], x[gradient_destination], w.strides, w.dilation, w.front,
                            w.behind, hint, none);
    case Kind::pooling:
      return succeeds(lib.v3.pooling, made, e, forward, algorithm, x[source], x[destination],
                      w.strides, w.kernel, w.dilation, w.front, w.behind, none);
  }
  return false;
}

bool describe_2(const Operation& op, const Layouts& x, Handle hint, Handle* made) {
  const Library& lib = library();
  const int algorithm = numbers[static_cast<std::size_t>(op.algorithm)].version_2;
  const int forward = op.training ? forward_training : forward_inference;
  const int backward = op.scale || op.shift ? backward_all : backward_data;
  const Window& w = op.window;
  const Description no_bias = nullptr;
  alignas(16) std::byte operation[8192] = {};
  void* const o = operation;
  bool ok = false;
  switch (op.kind) {
    case Kind::matmul:
      ok = succeeds(lib.v2.matmul, o, x[source], x[weights], no_bias, x[destination]);
      break;
    case Kind::eltwise:  // one layout for both operands (needs_one_layout)
      ok = succeeds(lib.v2.eltwise, o, forward, algorithm, x[source], op.alpha, op.beta);
      break;
    case Kind::binary:
      ok = succeeds(lib.v2.binary, o, algorithm, x[source], x[source_1], x[destination]);
      break;
    case Kind::softmax:
      ok = op.backward ? succeeds(lib.v2.softmax_backward, o, algorithm, x[gradient_source],
                                  x[gradient_destination], x[destination], op.axis)
                       : succeeds(lib.v2.softmax, o, forward, algorithm, x[source], x[destination],
                                  op.axis);
      break;
    case Kind::layer_norm:
      ok = op.backward ? succeeds(lib.v2.layer_norm_backward, o, backward, x[gradient_source],
                                  x[source], x[mean], op.beta, norm_flags(op))
                       : succeeds(lib.v2.layer_norm, o, forward, x[source], x[mean], op.beta,
                                  norm_flags(op));
      break;
    case Kind::reduction:
      ok = succeeds(lib.v2.reduction, o, algorithm, x[source], x[destination], op.alpha, op.beta);
      break;
    case Kind::reorder:
      return succeeds(lib.reorder, made, x[source], lib.engine, x[destination], lib.engine,
                      Handle{nullptr});
    case Kind::convolution:
      if (!op.backward) {
        ok = succeeds(lib.v2.convolution, o, forward, algorithm, x[source], x[weights], no_bias,
                      x[destination], w.strides, w.dilation, w.front, w.behind);
      } else if (x.has(gradient_weights)) {
        ok = succeeds(lib.v2.convolution_weights, o, algorithm, x[source], x[gradient_weights],
                      no_bias, x[gradient_destination], w.strides, w.dilation, w.front, w.behind);
      } else {
        ok = succeeds(lib.v2.convolution_data, o, algorithm, x[gradient_source], x[weights],
                      x[gradient_destination], w.strides, w.dilation, w.front, w.behind);
      }
      break;
    case Kind::pooling:
      ok = succeeds(lib.v2.pooling, o, forward, algorithm, x[source], x[destination], w.strides,
                    w.kernel, w.dilation, w.front, w.behind);
      break;
  }
  return ok && lib.v2.describe(made, operation, nullptr, lib.engine, hint) == 0;
}

}  // namespace

bool Layout::make(const ConstTensorRef& tensor, bool any) {
  const Library& lib = library();
  const int type = data_type(tensor.dtype);
  if (type == 0 || tensor.rank() == 0) return false;
  if (any) {
    constexpr int tag = 1;
    known_ = lib.version_3
                 ? succeeds(lib.v3.any_layout, &made_, tensor.rank(), tensor.shape.at, type, tag)
                 : succeeds(lib.v2.any_layout, static_cast<void*>(buffer_), tensor.rank(),
                            tensor.shape.at, type, tag);
    return known_;
  }
  known_ =
      (lib.version_3
           ? lib.v3.layout(&made_, tensor.rank(), tensor.shape.at, type, tensor.strides.at)
           : lib.v2.layout(buffer_, tensor.rank(), tensor.shape.at, type, tensor.strides.at)) == 0;
  return known_;
}

Handle describe(const Operation& operation, const Layouts& layouts, Handle hint) {
  Handle made = nullptr;
  const bool ok = library().version_3 ? describe_3(operation, layouts, hint, &made)
                                      : describe_2(operation, layouts, hint, &made);
  return ok ? made : nullptr;
}

}  // namespace rung::onednn
