/* SPDX-License-Identifier: Apache-2.0
 * A step of SGD or Adam, in C. Formulas, shapes, types, accuracy and errors:
 * rung/ops/optimiser/optimiser.hpp.
 */
#ifndef RUNG_OPS_OPTIMISER_OPTIMISER_H
#define RUNG_OPS_OPTIMISER_OPTIMISER_H

#include "rung/core/c_api.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum rung_optimiser_kind {
  RUNG_OPTIMISER_SGD = 0,
  RUNG_OPTIMISER_ADAM = 1
} rung_optimiser_kind;

/* May grow at its end; `size` tells a library how much of it the program knows. Tensors are
 * optional: NULL means none. */
typedef struct rung_optimiser_options {
  size_t size;
  rung_optimiser_kind kind;
  double learning_rate;
  double weight_decay;
  int decoupled;
  double momentum; /* of sgd */
  int nesterov;
  double beta1; /* of adam, as what follows */
  double beta2;
  double epsilon;
  int step;        /* from 1 on */
  double max_norm; /* 0: gradients are not clipped */
  const rung_tensor* first_moment;
  const rung_tensor* second_moment;
  const rung_tensor* master;
  const rung_tensor* norm;
  const char* rung; /* one rung by name; NULL: the best */
} rung_optimiser_options;

/* Sets the first `size` bytes - sizeof(rung_optimiser_options) - to defaults: sgd, learning rate
 * 0.001, beta1 0.9, beta2 0.999, epsilon 1e-8, step 1, all else off. */
RUNG_C_API rung_status rung_optimiser_options_init(rung_optimiser_options* options, size_t size);

/* One step, in place. */
RUNG_C_API rung_status rung_optimiser(rung_context* context, const rung_tensor* parameters,
                                      const rung_tensor* gradients,
                                      const rung_optimiser_options* options);

#ifdef __cplusplus
}
#endif

#endif
