// SPDX-License-Identifier: Apache-2.0
// attention_backward: gradients of scaled dot-product attention (ops/attention) with respect to q,
// k and v, from its results o and lse and the gradient dout of o.
//
//   p[b, h, i, j]  = exp(s[b, h, i, j] - lse[b, h, i])          s: the scores of attention()
//   ds[b, h, i, j] = p c sum_c dout[b, h, i, c] (v[b, g, j, c] - o[b, h, i, c])
//   dq[b, h, i, :] = scale sum_j ds k[b, g, j, :]
//   dk[b, g, j, :] = scale sum_h sum_i ds q[b, h, i, :]
//   dv[b, g, j, :] = sum_h sum_i p dout[b, h, i, :]
//   dsinks[h]      = -sum_b sum_i exp(sinks[h] - lse[b, h, i]) sum_c dout[b, h, i, c] o[b, h, i, c]
//
// where g = h / (H / Hk) is the head of k and v that head h uses (dk and dv sum over the H / Hk
// heads that share it), and c is the derivative of the soft cap, 1 - tanh^2(x / soft_cap) at the
// scaled product x, 1 without one. Sums run over the pairs (i, j) visible to attention() with the
// same options: the L keys of the batch element (Lengths and Packed there), and under `causal`
// j <= i + L - Sq, and j > i + L - Sq - W with a `window` W above 0. Slopes and bias get no
// gradients.
//
// Shapes   q and dq: B x H x Sq x D; k and dk: B x Hk x Sk x D; v and dv: B x Hk x Sk x Dv; o and
//          dout: B x H x Sq x Dv; lse: B x H x Sq; key_lengths: B. D and Dv are 1 or more. Hk
//          divides H. Empty gradients: nothing is written to them. sinks and dsinks: H, both or
//          neither; without dsinks the call needs no sinks: lse contains them.
// Packed   query_offsets and key_offsets (B + 1) as of attention(): q, o, lse, dout and dq, or k,
//          v, dk and dv, hold the rows of all batch elements one after another, at index 0 of their
//          first axis. Rows that belong to no batch element are not written. Without bias;
//          key_offsets without key_lengths.
// Strides  any: B x S x H x D in memory is supported, too; inputs may have zero strides
//          (broadcast). Outputs must not overlap themselves.
// Types    q, k, v, o, dout, dq, dk, dv: one of f32, f64, f16, bf16. lse: f32, f64 for f64.
//          slopes, bias, sinks, dsinks: as lse. key_lengths, offsets: i32. Sums are kept in f32,
//          f64 for f64.
// Scale    as of attention(): above 0 and within the range of f32; 0, the default, stands for
//          1 / sqrt(D). soft_cap: the same range; 0, the default, means none.
// Window   as of attention(): 0 (none) or more; above 0, `causal` must be set.
// Special  A query that sees no key: its dq is 0, and it adds nothing to dk and dv. A key that no
//          query sees: its dk and dv are 0. The values of such queries and keys, lse included,
//          never affect a result. An lse of -infinity: p is 0. A NaN or an infinity elsewhere may
//          make any gradient of its batch element and head of k NaN, infinite or any number.
// Range    scores, scale q and lse, each times log2(e), p, ds and the sums must be in the range of
//          the arithmetic; for f16, p and ds in the range of f16. Otherwise results may be any
//          numbers. With the lse of attention(), p is at most 1, except for rounding.
// Aliasing dq, dk, dv and dsinks overlap nothing else. Overlap is decided by address ranges, from
//          the lowest to the highest byte that a tensor touches, so that tensors whose elements
//          interleave are refused.
// Accuracy with u the unit roundoff of the arithmetic (twice that for f16 and bf16, where tensor
//          cores truncate), r the unit roundoff of f16 or bf16 for these types (p and ds may be
//          rounded to the type of q before they are multiplied), else 0, s the scores, and sums of
//          n terms:
//            e       = u ((D + 8) scale sum |q k| + t + 8 |lse| + 4 |s - lse| + 8), t as of
//                      attention()
//            E(p)    = p (exp(e) - 1)
//            E(ds)   = (E(p) + 4 u p) |ds / p| + p exp(e) (Dv + 8) u (sum |dout v| + sum |dout o|)
//                      + exp(e) |ds / c| E(c), E(c) = u (2 (D + 8) scale sum |q k| / soft_cap
//                      + 32), 0 without a soft cap
//            |error of dq| <= scale sum (E(ds) + ((2 n + 40) u + r) |ds|) |k|, with |q| for dk,
//            |error of dv| <= sum (E(p) + ((2 n + 40) u + r) p) |dout|,
//            |error of dsinks| <= the same for n terms p' |D|, p' = exp(sinks - lse), with
//            e = u (8 |lse| + 4 |sinks - lse| + 8) and (Dv + 8) u sum |dout o| as the error of D,
//          plus one rounding to the result's type; what underflows counts as zero.
// Repeats  the same bits from run to run and for any number of threads: no floating-point atomics.
// Errors   Error(invalid_argument) for shapes, types, scale, soft_cap, window, aliasing;
//          Error(unsupported) if no rung of the backend supports the arguments, with every rung's
//          reason.
// Source   T. Dao and others, FlashAttention, 2022; T. Dao, FlashAttention-2, 2023.
#pragma once

#include <cstdint>

#include "rung/core/context.hpp"
#include "rung/core/export.hpp"
#include "rung/core/pick.hpp"
#include "rung/core/tensor_ref.hpp"

namespace rung {

/// The options of the attention() call that is differentiated.
struct AttentionBackwardOptions {
  double scale = 0;  // 0: 1 / sqrt(D)
  bool causal = false;
  std::int64_t window = 0;          // keeps a query's last `window` keys of the causal mask; 0: all
  double soft_cap = 0;              // bounds scores by soft_cap tanh(score / soft_cap); 0: none
  ConstTensorRef key_lengths = {};  // number of keys per batch element; absent: all
  ConstTensorRef query_offsets = {};  // rows of q per batch element, packed; absent: an axis
  ConstTensorRef key_offsets = {};    // rows of k and v per batch element, packed; absent: an axis
  ConstTensorRef slopes = {};         // of ALiBi, per head of q; absent: none
  ConstTensorRef bias = {};           // added to the scores; absent: none
  ConstTensorRef sinks = {};          // of the call; needed for dsinks only
  TensorRef dsinks = {};              // written if given: the gradient of the sinks
  bool operator==(const AttentionBackwardOptions&) const = default;
};

/// Writes dq, dk and dv from the operands of attention(), its results o and lse, and dout.
RUNG_API void attention_backward(Context& context, const ConstTensorRef& q, const ConstTensorRef& k,
                                 const ConstTensorRef& v, const ConstTensorRef& o,
                                 const ConstTensorRef& lse, const ConstTensorRef& dout,
                                 const TensorRef& dq, const TensorRef& dk, const TensorRef& dv,
                                 const AttentionBackwardOptions& options = {}, Pick pick = best);

}  // namespace rung
