/* SPDX-License-Identifier: Apache-2.0
 * Gradients of scaled dot-product attention in C. Shapes, types, masked keys, aliasing, accuracy
 * and errors: rung/ops/attention_backward/attention_backward.hpp.
 */
#ifndef RUNG_OPS_ATTENTION_BACKWARD_ATTENTION_BACKWARD_H
#define RUNG_OPS_ATTENTION_BACKWARD_ATTENTION_BACKWARD_H

#include "rung/c/api.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Fields may be appended in later versions; `size` is the program's sizeof. Set the other fields
 * as for rung_attention. */
typedef struct rung_attention_backward_options {
  size_t size;
  double scale;                   /* 0: 1 / sqrt(D) */
  int causal;                     /* not 0: of L keys, query i sees those j <= i + L - Sq */
  int64_t window;                 /* maximum keys per query: the last of the causal ones; 0: all */
  const rung_tensor* key_lengths; /* B, i32: how many keys each batch element has; NULL: all */
  const char* rung;               /* one rung by name; NULL: the best */
  double soft_cap;                /* as of rung_attention; 0: none */
  const rung_tensor* query_offsets; /* B + 1, i32: q, o, lse, dout and dq are packed */
  const rung_tensor* key_offsets;   /* B + 1, i32: k, v, dk and dv are packed */
  const rung_tensor* slopes;        /* H: of ALiBi */
  const rung_tensor* bias;          /* B x H x Sq x Sk: added to the scores */
  const rung_tensor* sinks;         /* H: of the call; needed for dsinks only */
  const rung_tensor* dsinks;        /* H: written, the gradient of the sinks */
} rung_attention_backward_options;

/* Sets options of `size` bytes, sizeof(rung_attention_backward_options), to defaults: all 0. */
RUNG_C_API rung_status
rung_attention_backward_options_init(rung_attention_backward_options* options, size_t size);

/* Writes dq, dk and dv from the operands of rung_attention, its results o and lse, and dout, the
 * gradient of o. q, dq: B x H x Sq x D, k, dk: B x Hk x Sk x D, v, dv: B x Hk x Sk x Dv, o, dout:
 * B x H x Sq x Dv, lse: B x H x Sq. NULL options are the defaults. */
RUNG_C_API rung_status rung_attention_backward(rung_context* context, const rung_tensor* q,
                                               const rung_tensor* k, const rung_tensor* v,
                                               const rung_tensor* o, const rung_tensor* lse,
                                               const rung_tensor* dout, const rung_tensor* dq,
                                               const rung_tensor* dk, const rung_tensor* dv,
                                               const rung_attention_backward_options* options);

#ifdef __cplusplus
}
#endif

#endif
