/* SPDX-License-Identifier: Apache-2.0
 * Gradients of layer norm and RMS norm, in C. Formulas, shapes, types, aliasing, accuracy and
 * errors: rung/ops/norm_backward/norm_backward.hpp.
 */
#ifndef RUNG_OPS_NORM_BACKWARD_NORM_BACKWARD_H
#define RUNG_OPS_NORM_BACKWARD_NORM_BACKWARD_H

#include "rung/c/api.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Fields may be appended in later versions; `size` is the program's sizeof. Tensors are
 * optional: NULL means none. */
typedef struct rung_norm_backward_options {
  size_t size;
  int axis; /* the first normalized axis, from the end when negative */
  int axes; /* how many are normalized together, from `axis` on */
  double epsilon;
  const rung_tensor* gamma;  /* as given to rung_layer_norm or rung_rms_norm */
  const rung_tensor* mean;   /* as written by it; with rstd, or both are computed again */
  const rung_tensor* rstd;   /* as written by it */
  const rung_tensor* dgamma; /* written: the gradient of gamma */
  const rung_tensor* dbeta;  /* written: the gradient of beta */
  const char* rung;          /* one rung by name; NULL: the best */
} rung_norm_backward_options;

/* Sets the first `size` bytes - sizeof(rung_norm_backward_options) - to defaults: axis -1, axes 1,
 * epsilon 1e-5, no tensors. */
RUNG_C_API rung_status rung_norm_backward_options_init(rung_norm_backward_options* options,
                                                       size_t size);

/* dx = rstd (g - mean(g) - z mean(g z)) with g = dy gamma, z = (x - mean) rstd, for each row. x is
 * the tensor that was normalized (with a residual: the sum); dx has its shape and type and may be
 * dy or x itself. NULL options are the defaults. */
RUNG_C_API rung_status rung_layer_norm_backward(rung_context* context, const rung_tensor* dy,
                                                const rung_tensor* x, const rung_tensor* dx,
                                                const rung_norm_backward_options* options);

/* dx = rstd (g - z mean(g z)) with z = x rstd: the gradient of RMS norm. */
RUNG_C_API rung_status rung_rms_norm_backward(rung_context* context, const rung_tensor* dy,
                                              const rung_tensor* x, const rung_tensor* dx,
                                              const rung_norm_backward_options* options);

#ifdef __cplusplus
}
#endif

#endif
