/* SPDX-License-Identifier: Apache-2.0
 * Scaled dot-product attention in C. Shapes, types, masked keys, aliasing, accuracy and errors:
 * rung/ops/attention/attention.hpp.
 */
#ifndef RUNG_OPS_ATTENTION_ATTENTION_H
#define RUNG_OPS_ATTENTION_ATTENTION_H

#include "rung/c/api.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Fields may be appended in later versions; `size` is the program's sizeof. Tensors are
 * optional: NULL means none. */
typedef struct rung_attention_options {
  size_t size;
  double scale;                   /* 0: 1 / sqrt(D) */
  int causal;                     /* not 0: of L keys, query i sees those j <= i + L - Sq */
  int64_t window;                 /* maximum keys per query: the last of the causal ones; 0: all */
  const rung_tensor* key_lengths; /* B, i32: how many keys each batch element has */
  const rung_tensor* lse;         /* B x H x Sq: written, log sum exp of the scores */
  const char* rung;               /* one rung by name; NULL: the best */
  double soft_cap;                /* scores become soft_cap tanh(score / soft_cap); 0: none */
  const rung_tensor* query_offsets; /* B + 1, i32: q and o are packed, 1 x H x T x D */
  const rung_tensor* key_offsets;   /* B + 1, i32: k and v are packed, 1 x Hk x Tk x D */
  const rung_tensor* page_table;    /* B x P, i32: k and v are N x Hk x page x D */
  const rung_tensor* slopes;        /* H: of ALiBi */
  const rung_tensor* bias;          /* B x H x Sq x Sk: added to the scores */
  const rung_tensor* sinks;         /* H: a score without a value */
  const rung_tensor* k_scales;      /* B x Hk, f32: factors of e4m3 keys */
  const rung_tensor* v_scales;      /* B x Hk, f32: factors of e4m3 values */
} rung_attention_options;

/* Sets options of `size` bytes, sizeof(rung_attention_options), to defaults: all 0. */
RUNG_C_API rung_status rung_attention_options_init(rung_attention_options* options, size_t size);

/* o = softmax(scale q k^T) v. q: B x H x Sq x D, k: B x Hk x Sk x D, v: B x Hk x Sk x Dv,
 * o: B x H x Sq x Dv. NULL options are the defaults. */
RUNG_C_API rung_status rung_attention(rung_context* context, const rung_tensor* q,
                                      const rung_tensor* k, const rung_tensor* v,
                                      const rung_tensor* o, const rung_attention_options* options);

#ifdef __cplusplus
}
#endif

#endif
