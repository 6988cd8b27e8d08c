// SPDX-License-Identifier: Apache-2.0
// oneDNN for the peers of all operators: loaded, not linked, with versions 2 and 3 of its C
// interface behind one interface. A complete peer:
//
//   onednn::Primitive& cached() {                    // one per thread, for repeated calls
//     thread_local onednn::Primitive primitive;
//     return primitive;
//   }
//   bool prepare(const Args& a, int threads) {
//     return cached().prepare({.kind = onednn::Kind::eltwise,
//                              .algorithm = onednn::Algorithm::relu},
//                             {{onednn::source, a.x}, {onednn::destination, a.y}}, threads);
//   }
//   Support supports(const Args& a, const Context& c) {      // tensors must not be empty
//     return prepare(a, c.threads()) ? supported : unsupported("oneDNN has no such primitive");
//   }
//   void run(const Args& a, Context& c) {
//     const peer::ThreadCount threads(c.threads());          // rung/peers/thread_count.hpp
//     prepare(a, c.threads());                               // a few comparisons if unchanged
//     cached().run({a.x.data, a.y.data});                    // in the order passed to prepare()
//   }
//   const Rung<Op> self{{.name = "onednn", .peer = true, .about = onednn::about,
//                        .present = onednn::present, .supports = supports, .run = run}};
//
// Operands of each kind, in any order; all strides are non-zero:
//
//   matmul       source (m x k), weights (k x n), destination (m x n)
//   eltwise      source, destination; alpha and beta as oneDNN documents them per algorithm
//   binary       source, source_1 (extents of 1 are broadcast), destination
//   softmax      source, destination; axis. Backward: destination (y), gradient_destination (dy),
//                gradient_source (dx)
//   layer_norm   source, destination, mean and variance (f32, shape without the last axis; only
//                with training or backward), scale and shift (f32, the last axis) with the flags;
//                beta is epsilon. Backward: source, gradient_destination, gradient_source, mean,
//                variance, and with flags scale, gradient_scale, gradient_shift
//   reduction    source, destination (same rank, 1 in the reduced axes); alpha is p, beta epsilon
//   reorder      source, destination
//   convolution  source, weights (groups first if there are several), destination; window.
//                Backward for the images: gradient_source, weights, gradient_destination; for the
//                filters: source, gradient_weights, gradient_destination
//   pooling      source, destination; window
//
// Operand::any leaves the layout of filters to the library: each run then reorders them, before or
// after the primitive.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>

#include "rung/core/operator.hpp"
#include "rung/core/tensor_ref.hpp"

namespace rung::onednn {

/// Returns whether the library is installed with a CPU engine; about() returns its name, such as
/// "oneDNN 2.6.3, avx512_core_vnni, OpenMP". DNNL_MAX_CPU_ISA is overridden: oneDNN uses all
/// instruction sets, or at most AVX2 if our own rungs do (RUNG_CPU_TARGET).
Support present();
std::string about();

enum class Kind : std::uint8_t {
  matmul,
  eltwise,
  binary,
  softmax,
  layer_norm,
  reduction,
  reorder,
  convolution,
  pooling
};

enum class Algorithm : std::uint8_t {
  none,
  // eltwise
  relu,
  tanh,
  elu,
  square,
  abs,
  sqrt,
  linear,
  soft_relu,
  logistic,
  exp,
  gelu_tanh,
  swish,
  log,
  clip,
  pow,
  gelu_erf,
  round,
  // binary
  add,
  multiply,
  maximum,
  minimum,
  divide,
  subtract,
  // reduction
  reduce_max,
  reduce_min,
  reduce_sum,
  reduce_multiply,
  reduce_mean,
  reduce_norm,          // (sum |x|^p)^(1/p), p in alpha
  reduce_norm_power_p,  // sum |x|^p
  // softmax
  softmax,
  log_softmax,
  // convolution
  direct,
  direct_or_winograd,  // oneDNN chooses
  // pooling
  pool_max,
  pool_average,             // includes padding in the count
  pool_average_of_existing  // excludes padding from the count
};

/// Window of a convolution or pooling, per image axis; unused axes are zero.
struct Window {
  static constexpr int max_axes = 3;
  std::int64_t strides[max_axes] = {};
  std::int64_t kernel[max_axes] = {};    // pooling only
  std::int64_t dilation[max_axes] = {};  // as oneDNN counts it: 0 is dense
  std::int64_t front[max_axes] = {};     // padding before
  std::int64_t behind[max_axes] = {};    // padding after
  bool operator==(const Window&) const = default;
};

/// Operation of a primitive, with its parameters.
struct Operation {
  Kind kind = Kind::matmul;
  Algorithm algorithm = Algorithm::none;
  bool backward = false;
  bool training = false;  // layer norm: the forward pass stores mean and variance
  bool scale = false;     // layer norm: has scale
  bool shift = false;     // layer norm: has shift
  int axis = 0;
  float alpha = 0;
  float beta = 0;
  Window window = {};
  bool operator==(const Operation&) const = default;
};

/// oneDNN's argument numbers of operands.
enum Role : int {
  source = 1,
  source_1 = 2,
  destination = 17,
  weights = 33,
  mean = 49,
  variance = 50,
  scale = 51,
  shift = 52,
  gradient_source = 129,
  gradient_destination = 145,
  gradient_weights = 161,
  gradient_scale = 255,
  gradient_shift = 256
};
struct Operand {
  Role role;
  ConstTensorRef tensor;  // type, shape and strides, also for outputs
  bool any = false;       // weights and their gradient: in the library's preferred layout
};

/// Returns whether an axis of a tensor is broadcast by a stride of 0, which oneDNN rejects.
bool has_broadcast_axis(const ConstTensorRef& tensor);

/// Primitive created for an operation, its operands' layouts and a number of threads.
class Primitive {
 public:
  Primitive();
  Primitive(const Primitive&) = delete;
  Primitive& operator=(const Primitive&) = delete;
  ~Primitive();

  /// Creates the primitive unless it is cached. Returns false if oneDNN does not support it here
  /// (for example bf16 on an old processor).
  bool prepare(const Operation& operation, std::initializer_list<Operand> operands, int threads);
  /// Runs the operation after a prepare() that returned true: pass the operands' data in the same
  /// order. Throws Error(internal) if oneDNN reports a failure.
  void run(std::initializer_list<const void*> data);

 private:
  struct Made;
  std::unique_ptr<Made> made_;
};

/// Computes C = alpha op(A) op(B) + beta C of f32 matrices with contiguous rows. Returns 0 on
/// success.
int sgemm(bool transpose_a, bool transpose_b, std::int64_t m, std::int64_t n, std::int64_t k,
          float alpha, const float* a, std::int64_t lda, const float* b, std::int64_t ldb,
          float beta, float* c, std::int64_t ldc);

}  // namespace rung::onednn
