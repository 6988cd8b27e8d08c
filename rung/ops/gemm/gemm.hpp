// SPDX-License-Identifier: Apache-2.0
// gemm: general matrix multiply with a fused epilogue.
//
//   C = act(alpha op(A) op(B) + beta C + bias) + residual        for each matrix of a batch
//
// Shapes   op(A): m x k, op(B): k x n, C: m x n, each optionally with a batch axis in front. A or B
//          without a batch axis (or with an extent of 1) is shared by the whole batch. A vector is
//          a matrix with one row or column. bias: n (a value per column), m x 1 (a value per row),
//          or m x n; residual has the same forms.
// Strides  any, including zero (broadcast) in all tensors but C; C must not overlap itself.
// Types    A, B, C all f32 or all f64; A, B bf16 or f16 with C the same or f32; A e4m3 or e5m2, B
//          e4m3 or e5m2, independently, with C f32, f16 or bf16; A, B i8 with C i32. bias and
//          residual as C. Sums are kept in f32 (f64 for f64), to which alpha and beta are rounded.
//          i8: sums are kept modulo 2^32, so that C is exact wherever it fits in an i32; alpha and
//          beta are whole numbers, the activation is none or relu.
// Scales   optional f32 factors of e4m3 and e5m2 operands: scale_a, m x ceil(k / 128), has a factor
//          per 128 elements of a row of op(A), scale_b, ceil(k / 128) x ceil(n / 128), a factor per
//          128 x 128 block of op(B); each optionally with a batch axis in front, any strides, in
//          the order of op() even if the operand is transposed. op(A)(i, p) means
//          scale_a(i, p / 128) a(i, p). A factor for a whole matrix belongs in alpha.
// Zero     m, n or batch = 0: nothing is written. k = 0 or alpha = 0: A and B are not read.
//          beta = 0: C is not read, so that NaN in it does not propagate.
// Aliasing C must not overlap any other tensor. To add C's previous content before the activation,
// use beta.
//          Overlap is determined from address ranges, from the lowest to the highest byte of a
//          tensor, so that tensors whose elements interleave are rejected.
// Accuracy |error| <= (k + 4) u (|alpha| |op(A)| |op(B)| + |beta C| + |bias|) elementwise, u the
//          unit roundoff of the accumulator, plus one rounding to C's type, if C and alpha op(A)
//          are in the accumulator's range; activations add a few ulp [Higham 2002, section 3.5].
//          f32 never becomes tf32 unless Precision::tf32 is requested.
//          Precision::split writes each f32 operand as a sum of three bf16, 24 bits in all; tensor
//          cores add the six largest of the nine products, in partial sums of 64 steps of k. The
//          bound holds if operands are at least 2^-100; an infinite operand may give NaN where f32
//          gives infinity.
//          e4m3, e5m2: Hopper's tensor cores keep some 14 bits of a sum of products. Rungs on
//          tensor cores add sums of 128 steps of k in f32; each product may lose 2^-13 of the
//          largest sum among its 128. For operands of similar magnitude the total is less than 2^-9
//          |op(A)| |op(B)|, the bound that `check` tests.
// Repeats  results are bitwise equal from run to run and for any number of threads, on one machine
//          and for one layout (shape, strides, alignment).
// Errors   Error(invalid_argument) for shapes, types, aliasing; Error(unsupported) if no rung of
//          the backend supports the call, with every rung's reason.
#pragma once

#include <cstdint>
#include <span>

#include "rung/core/activation.hpp"
#include "rung/core/context.hpp"
#include "rung/core/export.hpp"
#include "rung/core/pick.hpp"
#include "rung/core/tensor_ref.hpp"

namespace rung {

/// Permitted conversion of f32 operands on tensor cores: none (the default), rounding to the 11
/// bits of tf32, or splitting into three bf16, which keeps 24 bits.
enum class Precision : std::uint8_t { full, tf32, split };

struct GemmOptions {
  double alpha = 1.0;                        // factor of the product
  double beta = 0.0;                         // factor of C's previous content; 0: C is not read
  bool transpose_a = false;                  // a is given k x m
  bool transpose_b = false;                  // b is given n x k
  ConstTensorRef bias = {};                  // optional; added before the activation
  Activation activation = Activation::none;  // applied to the sum with bias
  Precision precision = Precision::full;     // f32 only; tf32 and split run on tensor cores
  ConstTensorRef residual = {};              // optional; added last
  ConstTensorRef scale_a = {};               // 8-bit floats: a factor per row and 128 steps of k
  ConstTensorRef scale_b = {};  // 8-bit floats: a factor per 128 steps of k and 128 columns
};

RUNG_API void gemm(Context& context, const ConstTensorRef& a, const ConstTensorRef& b,
                   const TensorRef& c, const GemmOptions& options = {}, Pick pick = best);

/// A product of a list, with the tensors of gemm().
struct GemmProblem {
  ConstTensorRef a = {};         // m x k, or k x m with transpose_a
  ConstTensorRef b = {};         // k x n, or n x k with transpose_b
  TensorRef c = {};              // m x n, written
  ConstTensorRef bias = {};      // optional; added before the activation
  ConstTensorRef residual = {};  // optional; added last
};

/// Computes all products of a list, of any shapes and types, each as gemm() would. No C may overlap
/// a tensor of another product; all products are validated before the first is computed. Options
/// apply to every product and must have no bias, residual or scales. On a GPU small products share
/// launches, up to 200 each; a product that its own kernel computes in less time has its own
/// launch. A pick of `grouped` puts all products into shared launches; a pick of another rung runs
/// each product by that rung. Errors name the index of the product, from 0. An empty list is
/// allowed.
RUNG_API void gemm_grouped(Context& context, std::span<const GemmProblem> problems,
                           const GemmOptions& options = {}, Pick pick = best);

}  // namespace rung
