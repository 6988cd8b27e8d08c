/* SPDX-License-Identifier: Apache-2.0
 * softmax and log-softmax along an axis, in C. Shapes, types, masked rows, aliasing, accuracy and
 * errors: rung/ops/softmax/softmax.hpp.
 */
#ifndef RUNG_OPS_SOFTMAX_SOFTMAX_H
#define RUNG_OPS_SOFTMAX_SOFTMAX_H

#include "rung/c/api.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Fields may be appended in later versions; `size` is the program's sizeof. */
typedef struct rung_softmax_options {
  size_t size;
  int axis;         /* from the front, or from the end when negative */
  double scale;     /* s, finite and above 0 */
  int log;          /* not 0: log-softmax */
  const char* rung; /* one rung by name; NULL: the best */
} rung_softmax_options;

/* Sets the first `size` bytes - sizeof(rung_softmax_options) - to defaults: axis -1, scale 1. */
RUNG_C_API rung_status rung_softmax_options_init(rung_softmax_options* options, size_t size);

/* y = exp(s x) / sum exp(s x) along the axis; log: its logarithm. y has x's shape and type, or is
 * f32 for f16 and bf16; it may be x itself. NULL options are the defaults. */
RUNG_C_API rung_status rung_softmax(rung_context* context, const rung_tensor* x,
                                    const rung_tensor* y, const rung_softmax_options* options);

#ifdef __cplusplus
}
#endif

#endif
