/* SPDX-License-Identifier: Apache-2.0
 * A tensor with its axes in another order, in C. Shapes, strides, aliasing and errors:
 * rung/ops/transpose/transpose.hpp.
 */
#ifndef RUNG_OPS_TRANSPOSE_TRANSPOSE_H
#define RUNG_OPS_TRANSPOSE_TRANSPOSE_H

#include "rung/c/api.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Fields may be appended in later versions; `size` is the program's sizeof. */
typedef struct rung_transpose_options {
  size_t size;
  int order_count;      /* x's number of axes; 0: the last two axes are exchanged */
  const int64_t* order; /* order[a] is the axis of x that becomes axis a of y */
  const char* rung;     /* one rung by name; NULL: the best */
} rung_transpose_options;

/* Sets the first `size` bytes - sizeof(rung_transpose_options) - to defaults: no order. */
RUNG_C_API rung_status rung_transpose_options_init(rung_transpose_options* options, size_t size);

/* y = x with its axes in another order; y has the type of x, which may be any. y must not overlap
 * x (by address ranges: see rung_tensor). NULL options are the defaults. */
RUNG_C_API rung_status rung_transpose(rung_context* context, const rung_tensor* x,
                                      const rung_tensor* y, const rung_transpose_options* options);

#ifdef __cplusplus
}
#endif

#endif
