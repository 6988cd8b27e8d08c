/* SPDX-License-Identifier: Apache-2.0
 * A step of SGD or Adam, in C. Formulas, shapes, types, accuracy and errors:
 * rung/ops/optimizer/optimizer.hpp.
 */
#ifndef RUNG_OPS_OPTIMIZER_OPTIMIZER_H
#define RUNG_OPS_OPTIMIZER_OPTIMIZER_H

#include "rung/c/api.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum rung_optimizer_kind {
  RUNG_OPTIMIZER_SGD = 0,
  RUNG_OPTIMIZER_ADAM = 1
} rung_optimizer_kind;

/* Fields may be appended in later versions; `size` is the program's sizeof. Tensors are
 * optional: NULL means none. */
typedef struct rung_optimizer_options {
  size_t size;
  rung_optimizer_kind kind;
  double learning_rate;
  double weight_decay;
  int decoupled;
  double momentum; /* of sgd */
  int nesterov;
  double beta1; /* of adam, as are the next three */
  double beta2;
  double epsilon;
  int step;        /* from 1 on */
  double max_norm; /* 0: gradients are not clipped */
  const rung_tensor* first_moment;
  const rung_tensor* second_moment;
  const rung_tensor* master;
  const rung_tensor* norm;
  const char* rung; /* one rung by name; NULL: the best */
} rung_optimizer_options;

/* Sets the first `size` bytes - sizeof(rung_optimizer_options) - to defaults: sgd, learning rate
 * 0.001, beta1 0.9, beta2 0.999, epsilon 1e-8, step 1, all else off. */
RUNG_C_API rung_status rung_optimizer_options_init(rung_optimizer_options* options, size_t size);

/* Performs one step, in place. */
RUNG_C_API rung_status rung_optimizer(rung_context* context, const rung_tensor* parameters,
                                      const rung_tensor* gradients,
                                      const rung_optimizer_options* options);

/* Call rung_optimizer with the kind in the name; options->kind is ignored. */
RUNG_C_API rung_status rung_sgd_step(rung_context* context, const rung_tensor* parameters,
                                     const rung_tensor* gradients,
                                     const rung_optimizer_options* options);
RUNG_C_API rung_status rung_adam_step(rung_context* context, const rung_tensor* parameters,
                                      const rung_tensor* gradients,
                                      const rung_optimizer_options* options);

#ifdef __cplusplus
}
#endif

#endif
