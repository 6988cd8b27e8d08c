/* SPDX-License-Identifier: Apache-2.0
 * Losses and their gradients, in C. Formulas, shapes, types, accuracy and errors:
 * rung/ops/loss/loss.hpp.
 */
#ifndef RUNG_OPS_LOSS_LOSS_H
#define RUNG_OPS_LOSS_LOSS_H

#include <limits.h>

#include "rung/c/api.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum rung_loss_kind {
  RUNG_LOSS_CROSS_ENTROPY = 0,
  RUNG_LOSS_HINGE = 1,
  RUNG_LOSS_SQUARED = 2
} rung_loss_kind;

typedef enum rung_loss_reduction { RUNG_LOSS_MEAN = 0, RUNG_LOSS_SUM = 1 } rung_loss_reduction;

/* Value of ignored_label that ignores no label. */
#define RUNG_NO_LABEL INT_MIN

/* Fields may be appended in later versions; `size` is the program's sizeof. Tensors are
 * optional: NULL means none. */
typedef struct rung_loss_options {
  size_t size;
  rung_loss_kind kind;
  rung_loss_reduction reduction;
  int axis;          /* of the classes: from the front, or the end when negative */
  double smoothing;  /* of cross entropy */
  double margin;     /* of hinge; 0: the perceptron's loss */
  int ignored_label; /* rows with it do not count */
  const rung_tensor* dx;
  const rung_tensor* losses; /* of each row */
  const char* rung;          /* one rung by name; NULL: the best */
} rung_loss_options;

/* Sets the first `size` bytes - sizeof(rung_loss_options) - to defaults: the mean of cross entropy,
 * axis -1, no smoothing, margin 1, RUNG_NO_LABEL, no tensors. */
RUNG_C_API rung_status rung_loss_options_init(rung_loss_options* options, size_t size);

/* Computes the loss of x into result (one element). target: labels; for squared, values as x. */
RUNG_C_API rung_status rung_loss(rung_context* context, const rung_tensor* x,
                                 const rung_tensor* target, const rung_tensor* result,
                                 const rung_loss_options* options);

/* Call rung_loss with the kind in the name; options->kind is ignored. */
RUNG_C_API rung_status rung_cross_entropy(rung_context* context, const rung_tensor* x,
                                          const rung_tensor* target, const rung_tensor* result,
                                          const rung_loss_options* options);
RUNG_C_API rung_status rung_hinge_loss(rung_context* context, const rung_tensor* x,
                                       const rung_tensor* target, const rung_tensor* result,
                                       const rung_loss_options* options);
RUNG_C_API rung_status rung_squared_error(rung_context* context, const rung_tensor* x,
                                          const rung_tensor* target, const rung_tensor* result,
                                          const rung_loss_options* options);

#ifdef __cplusplus
}
#endif

#endif
