// SPDX-License-Identifier: Apache-2.0
// attention: scaled dot-product attention, forward.
//
//   s[b, h, i, j] = scale sum_d q[b, h, i, d] k[b, g, j, d],      g = h / (H / Hk)
//   o[b, h, i, :] = sum_j w_j v[b, g, j, :],      w_j = exp(s_j - max s) / sum_j exp(s_j - max s)
//   lse[b, h, i]  = log sum_j exp(s_j)                                 (written when given)
//
// over the keys j that query i sees: all keys of its batch element, Sk or key_lengths[b] if given
// (clamped to [0, Sk]). `causal` aligns the last query with the last of these L keys: query i sees
// keys j <= i + L - Sq. A `window` W above 0 keeps only the last W of these: also
// j > i + L - Sq - W.
//
// Shapes   q: B x H x Sq x D; k: B x Hk x Sk x D; v: B x Hk x Sk x Dv; o: B x H x Sq x Dv; lse:
//          B x H x Sq; key_lengths: B. D and Dv are 1 or more. Hk divides H: H / Hk heads of q
//          share a head of k and v. B, H or Sq 0: nothing is written.
// Strides  any: B x S x H x D in memory is supported, too; inputs may have zero strides
//          (broadcast). Outputs must not overlap themselves.
// Types    q, k, v, o: one of f32, f64, f16, bf16. lse: f32, f64 for f64. key_lengths: i32. Sums
//          are kept in f32, f64 for f64.
// Window   0 (none) or more; above 0, `causal` must be set. A window of Sk or more keys gives the
//          same bits as none.
// Scale    above 0 and within the range of f32; 0, the default, means 1 / sqrt(D).
// Special  A query that sees no key: o is 0 and lse -infinity. A score that is NaN or +infinity
//          makes its query's o and lse NaN. A score of -infinity has the weight 0. If all scores of
//          a query are -infinity, all weights are 0 (the softmax formula gives NaN): lse is
//          -infinity, o is 0. Weights multiply v even if they are 0: a NaN in v makes its column of
//          o NaN for every query that sees its key; an infinity makes it infinite or NaN, and NaN
//          if the score is -infinity. Values of keys that a query does not see never affect its
//          result.
// Range    with finite q, k and v: scores, their partial sums and scale q, each times log2(e), and
//          the number of visible keys times max |v| must be in the range of the arithmetic.
//          Otherwise o and lse of the query may be any numbers, infinite or NaN.
// Aliasing o and lse overlap nothing else. Overlap is decided by address ranges, from the lowest to
//          the highest byte that a tensor touches, so that tensors whose elements interleave are
//          refused.
// Accuracy with u the unit roundoff of the arithmetic (twice that for f16 and bf16, where tensor
//          cores truncate), a_j = scale sum_d |q_d k_jd|, n the number of keys that are seen, p the
//          unit roundoff of f16 or bf16 for these types (weights may be rounded to the type of v
//          before they are multiplied by it), else 0:
//            e_j = u ((D + 8) a_j + 8 |max s| + 4 |s_j - max s|)        errors of the scores
//            |error of o| <= sum_j w_j |v_j| (exp(e_j + E) - 1 + (2 n + 40) u + p),
//            |error of lse| <= E + (n + 40) u + 4 u (|max s| + |lse|),  E = log sum_j w_j exp(e_j)
//          plus one rounding to o's type; what underflows counts as zero.
// Repeats  the same bits from run to run and for any number of threads.
// Errors   Error(invalid_argument) for shapes, types, scale, window, aliasing;
//          Error(unsupported) if no rung of the backend supports the arguments, with every rung's
//          reason.
// Source   A. Vaswani and others, Attention is all you need, 2017; T. Dao, FlashAttention-2, 2023;
//          J. Ainslie and others, GQA, 2023 (grouped-query attention); A. Jiang and others, Mistral
//          7B, 2023 (windows).
#pragma once

#include <cstdint>

#include "rung/core/context.hpp"
#include "rung/core/export.hpp"
#include "rung/core/pick.hpp"
#include "rung/core/tensor_ref.hpp"

namespace rung {

struct AttentionOptions {
  double scale = 0;  // 0: 1 / sqrt(D)
  bool causal = false;
  std::int64_t window = 0;          // keeps a query's last `window` keys of the causal mask; 0: all
  ConstTensorRef key_lengths = {};  // number of keys per batch element; absent: all
  TensorRef lse = {};               // written if given
  bool operator==(const AttentionOptions&) const = default;
};

RUNG_API void attention(Context& context, const ConstTensorRef& q, const ConstTensorRef& k,
                        const ConstTensorRef& v, const TensorRef& o,
                        const AttentionOptions& options = {}, Pick pick = best);

}  // namespace rung
