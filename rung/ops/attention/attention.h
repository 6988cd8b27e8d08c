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

/* May grow at its end; `size` tells a library how much of it the program knows. Tensors are
 * optional: NULL means none. */
typedef struct rung_attention_options {
  size_t size;
  double scale;                   /* 0: 1 / sqrt(D) */
  int causal;                     /* not 0: the last query sees all keys, one before it one less */
  int64_t window;                 /* keys per query, the last ones of a causal mask; 0: all */
  const rung_tensor* key_lengths; /* B, i32: how many keys each batch element has */
  const rung_tensor* lse;         /* B x H x Sq: written, log sum exp of the scores */
  const char* rung;               /* one rung by name; NULL: the best */
} rung_attention_options;

/* Sets the first `size` bytes - sizeof(rung_attention_options) - to defaults: all off. */
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
