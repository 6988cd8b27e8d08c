/* SPDX-License-Identifier: Apache-2.0
 * Layer norm and RMS norm, in C. Shapes, types, aliasing, accuracy and errors:
 * rung/ops/norm/norm.hpp.
 */
#ifndef RUNG_OPS_NORM_NORM_H
#define RUNG_OPS_NORM_NORM_H

#include "rung/c/api.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Fields may be appended in later versions; `size` is the program's sizeof. Tensors are
 * optional: NULL means none. */
typedef struct rung_norm_options {
  size_t size;
  int axis; /* the first normalized axis, from the end when negative */
  int axes; /* how many are normalized together, from `axis` on */
  double epsilon;
  const rung_tensor* gamma;    /* the scale: of the extents of the normalized axes */
  const rung_tensor* beta;     /* the shift: likewise */
  const rung_tensor* residual; /* added to x first; of its shape */
  const rung_tensor* sum;      /* written: x + residual; needs a residual */
  const rung_tensor* mean;     /* written: of each row; layer norm alone */
  const rung_tensor* rstd;     /* written: 1 / standard deviation (rms: / root mean square) */
  const char* rung;            /* one rung by name; NULL: the best */
} rung_norm_options;

/* Sets the first `size` bytes - sizeof(rung_norm_options) - to defaults: axis -1, axes 1,
 * epsilon 1e-5, no tensors. */
RUNG_C_API rung_status rung_norm_options_init(rung_norm_options* options, size_t size);

/* y = (s - mean) rstd gamma + beta with s = x + residual, for each row. y has x's shape and type
 * and may be x or residual itself. NULL options are the defaults. */
RUNG_C_API rung_status rung_layer_norm(rung_context* context, const rung_tensor* x,
                                       const rung_tensor* y, const rung_norm_options* options);

/* y = s rstd gamma + beta: RMS norm, which has no mean. */
RUNG_C_API rung_status rung_rms_norm(rung_context* context, const rung_tensor* x,
                                     const rung_tensor* y, const rung_norm_options* options);

#ifdef __cplusplus
}
#endif

#endif
