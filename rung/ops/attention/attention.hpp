// SPDX-License-Identifier: Apache-2.0
// attention: scaled dot-product attention, forward.
//
//   s[b, h, i, j] = cap(scale k_scales[b, g] sum_d q[b, h, i, d] k[b, g, j, d])
//                   - slopes[h] |j - (i + L - Sq)| + bias[b, h, i, j],       g = h / (H / Hk)
//   o[b, h, i, :] = v_scales[b, g] sum_j w_j v[b, g, j, :],      w_j = exp(s_j - m) / Z
//   lse[b, h, i]  = m + log Z                                          (written when given)
//
// where m is the maximum of all s_j (and sinks[h]), Z = sum_j exp(s_j - m), plus exp(sinks[h] - m)
// with sinks, and cap(x) = soft_cap tanh(x / soft_cap), x itself for a soft_cap of 0. Scales,
// slopes, bias and sinks that are not given are left out.
//
// Sums run over the keys j that query i sees: all L keys of its batch element. `causal` aligns the
// last query with the last of these keys: query i sees keys j <= i + L - Sq. A `window` W above 0
// keeps only the last W of these: also j > i + L - Sq - W.
//
// Shapes   q: B x H x Sq x D; k: B x Hk x Sk x D; v: B x Hk x Sk x Dv; o: B x H x Sq x Dv; lse:
//          B x H x Sq. D and Dv are 1 or more. Hk divides H: H / Hk heads of q share a head of k
//          and v. B, H or Sq 0: nothing is written.
// Lengths  L is Sk, or with key_lengths (B) key_lengths[b], clamped to [0, Sk].
// Packed   query_offsets (B + 1): q is 1 x H x T x D and o and lse alike; the queries of batch
//          element b are rows query_offsets[b] to query_offsets[b + 1] - 1, and Sq is their number.
//          key_offsets (B + 1): the same for k and v, 1 x Hk x Tk x D; L is the number of rows.
//          Offsets are clamped to [0, T] and must not decrease: otherwise any rows of o and lse may
//          get any numbers. Rows of o and lse that belong to no batch element are not written.
//          Without bias; key_offsets without key_lengths.
// Pages    page_table (B x P): k is N x Hk x page x D, v alike: N pages of `page` keys each. Key j
//          of batch element b is row j % page of page page_table[b, j / page]; Sk is P page, or 0
//          if N is 0. Pages may be shared and in any order. Entries of pages that hold no key of a
//          batch element (from key_lengths) are never used; others that are not in [0, N) give any
//          numbers. Without key_offsets.
// Strides  any: B x S x H x D in memory is supported, too; inputs may have zero strides
//          (broadcast). Outputs must not overlap themselves.
// Types    q, k, v, o: one of f32, f64, f16, bf16; k and v may both be e4m3 instead, with q and o
//          of f32, f16 or bf16. lse, slopes (H), sinks (H) and bias (B x H x Sq x Sk): f32, f64 for
//          f64. key_lengths, offsets and page_table: i32. Sums are kept in f32, f64 for f64.
// Scales   of e4m3 keys and values: k_scales and v_scales (B x Hk), f32, each optional. Also with
//          packed rows and pages, they belong to a batch element and a head. They are finite, and
//          k_scales 0 or more; others give any numbers in o and lse of their heads.
// Window   0 (none) or more; above 0, `causal` must be set. A window of Sk or more keys gives the
//          same bits as none.
// Scale    above 0 and within the range of f32; 0, the default, means 1 / sqrt(D). soft_cap: the
//          same range; 0, the default, means none.
// Special  A query that sees no key: o is 0, and lse is -infinity, with sinks sinks[h]. A score
//          that is NaN or +infinity makes its query's o and lse NaN. A score of -infinity, from a
//          bias for instance, has the weight 0. If all scores of a query are -infinity, all weights
//          are 0 (without sinks the softmax formula gives NaN): o is 0, lse as if it saw no key.
//          Weights multiply v even if they are 0: a NaN in v makes its column of o NaN for every
//          query that sees its key; an infinity makes it infinite or NaN, and NaN if the score is
//          -infinity. Values of keys that a query does not see never affect its result. A sink of
//          -infinity is none; one that is NaN or +infinity gives any numbers.
// Range    with finite operands: sinks / scale, products, their partial sums, scores and scale q,
//          each times log2(e), and the number of visible keys times max |v| must be in the range of
//          the arithmetic, also with k_scales in scale and v_scales in v.
//          Otherwise o and lse of the query may be any numbers, infinite or NaN.
// Aliasing o and lse overlap nothing else. Overlap is decided by address ranges, from the lowest to
//          the highest byte that a tensor touches, so that tensors whose elements interleave are
//          refused.
// Accuracy with u the unit roundoff of the arithmetic (twice that for f16 and bf16, where tensor
//          cores truncate), a_j = scale sum_d |q_d k_jd|, t_j = 16 soft_cap + 4 |slope term| +
//          4 |bias|, n the number of keys that are seen, p the unit roundoff of f16 or bf16 for
//          these types of q (weights may be rounded to its type before they are multiplied by v),
//          else 0, and k_scales and v_scales in k and v:
//            e_j = u ((D + 8) a_j + t_j + 8 |m| + 4 |s_j - m|)          errors of the scores
//            |error of o| <= sum_j w_j |v_j| (exp(e_j + E) - 1 + (2 n + 40) u + p),
//            |error of lse| <= E + (n + 40) u + 4 u (|m| + |lse|),  E = log sum_j w_j exp(e_j)
//          (the sink counts as a key without a value) plus one rounding to o's type; what
//          underflows counts as zero.
// Repeats  the same bits from run to run and for any number of threads.
// Errors   Error(invalid_argument) for shapes, types, scale, soft_cap, window, aliasing;
//          Error(unsupported) if no rung of the backend supports the arguments, with every rung's
//          reason.
// Source   A. Vaswani and others, Attention is all you need, 2017; T. Dao, FlashAttention-2, 2023;
//          J. Ainslie and others, GQA, 2023 (grouped-query attention); A. Jiang and others, Mistral
//          7B, 2023 (windows); O. Press and others, ALiBi, 2022 (slopes); Gemma Team, Gemma 2, 2024
//          (soft cap); G. Xiao and others, Efficient streaming language models with attention
//          sinks, 2023; W. Kwon and others, PagedAttention, 2023 (pages).
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
  double soft_cap = 0;              // bounds scores by soft_cap tanh(score / soft_cap); 0: none
  ConstTensorRef key_lengths = {};  // number of keys per batch element; absent: all
  ConstTensorRef query_offsets = {};  // rows of q and o per batch element, packed; absent: an axis
  ConstTensorRef key_offsets = {};    // rows of k and v per batch element, packed; absent: an axis
  ConstTensorRef page_table = {};     // pages of k and v per batch element; absent: no pages
  ConstTensorRef slopes = {};         // of ALiBi, per head of q; absent: none
  ConstTensorRef bias = {};           // added to the scores; absent: none
  ConstTensorRef sinks = {};          // a score without a value per head of q; absent: none
  ConstTensorRef k_scales = {};       // factors of e4m3 keys per batch element and head; absent: 1
  ConstTensorRef v_scales = {};       // factors of e4m3 values, alike
  TensorRef lse = {};                 // written if given
  bool operator==(const AttentionOptions&) const = default;
};

RUNG_API void attention(Context& context, const ConstTensorRef& q, const ConstTensorRef& k,
                        const ConstTensorRef& v, const TensorRef& o,
                        const AttentionOptions& options = {}, Pick pick = best);

}  // namespace rung
