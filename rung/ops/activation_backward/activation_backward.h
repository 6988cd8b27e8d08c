/* SPDX-License-Identifier: Apache-2.0
 * Gradients of activation functions, in C. Formulas, shapes, types, accuracy and errors:
 * rung/ops/activation_backward/activation_backward.hpp.
 */
#ifndef RUNG_OPS_ACTIVATION_BACKWARD_ACTIVATION_BACKWARD_H
#define RUNG_OPS_ACTIVATION_BACKWARD_ACTIVATION_BACKWARD_H

#include "rung/c/api.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum rung_activation_function {
  RUNG_ACTIVATION_FUNCTION_SIGN = 0,
  RUNG_ACTIVATION_FUNCTION_SIGMOID = 1,
  RUNG_ACTIVATION_FUNCTION_TANH = 2,
  RUNG_ACTIVATION_FUNCTION_RELU = 3,
  RUNG_ACTIVATION_FUNCTION_GELU = 4,
  RUNG_ACTIVATION_FUNCTION_SILU = 5
} rung_activation_function;

/* Fields may be appended in later versions; `size` is the program's sizeof. */
typedef struct rung_activation_backward_options {
  size_t size;
  rung_activation_function function;
  const char* rung; /* one rung by name; NULL: the best */
} rung_activation_backward_options;

/* Sets the first `size` bytes - sizeof(rung_activation_backward_options) - to defaults: relu. */
RUNG_C_API rung_status
rung_activation_backward_options_init(rung_activation_backward_options* options, size_t size);

/* dx = dy f'. saved: the input (sign, relu, gelu, silu) or output (sigmoid, tanh, relu) of f. */
RUNG_C_API rung_status rung_activation_backward(rung_context* context, const rung_tensor* saved,
                                                const rung_tensor* dy, const rung_tensor* dx,
                                                const rung_activation_backward_options* options);

/* Call rung_activation_backward with the function in the name and the best rung. */
RUNG_C_API rung_status rung_sign_backward(rung_context* context, const rung_tensor* saved,
                                          const rung_tensor* dy, const rung_tensor* dx);
RUNG_C_API rung_status rung_sigmoid_backward(rung_context* context, const rung_tensor* saved,
                                             const rung_tensor* dy, const rung_tensor* dx);
RUNG_C_API rung_status rung_tanh_backward(rung_context* context, const rung_tensor* saved,
                                          const rung_tensor* dy, const rung_tensor* dx);
RUNG_C_API rung_status rung_relu_backward(rung_context* context, const rung_tensor* saved,
                                          const rung_tensor* dy, const rung_tensor* dx);
RUNG_C_API rung_status rung_gelu_backward(rung_context* context, const rung_tensor* saved,
                                          const rung_tensor* dy, const rung_tensor* dx);
RUNG_C_API rung_status rung_silu_backward(rung_context* context, const rung_tensor* saved,
                                          const rung_tensor* dy, const rung_tensor* dx);

#ifdef __cplusplus
}
#endif

#endif
