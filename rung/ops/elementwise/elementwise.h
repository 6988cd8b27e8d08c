/* SPDX-License-Identifier: Apache-2.0
 * Functions of up to three tensors, element by element, in C. Formulas, broadcasting, types,
 * accuracy and errors: rung/ops/elementwise/elementwise.hpp.
 */
#ifndef RUNG_OPS_ELEMENTWISE_ELEMENTWISE_H
#define RUNG_OPS_ELEMENTWISE_ELEMENTWISE_H

#include "rung/c/api.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum rung_elementwise_function {
  RUNG_ELEMENTWISE_ADD = 0,  /* x + y */
  RUNG_ELEMENTWISE_SUB = 1,  /* x - y */
  RUNG_ELEMENTWISE_MUL = 2,  /* x y */
  RUNG_ELEMENTWISE_DIV = 3,  /* x / y */
  RUNG_ELEMENTWISE_AXPY = 4, /* alpha x + y */
  RUNG_ELEMENTWISE_FMA = 5,  /* x y + w */
  RUNG_ELEMENTWISE_RELU = 6,
  RUNG_ELEMENTWISE_SIGMOID = 7,
  RUNG_ELEMENTWISE_TANH = 8,
  RUNG_ELEMENTWISE_GELU = 9, /* the exact one, with the error function */
  RUNG_ELEMENTWISE_EXP = 10,
  RUNG_ELEMENTWISE_SILU = 11, /* x / (1 + e^-x) */
  RUNG_ELEMENTWISE_SIGN = 12  /* -1, 0 or 1 */
} rung_elementwise_function;

/* Fields may be appended in later versions; `size` is the program's sizeof. */
typedef struct rung_elementwise_options {
  size_t size;
  rung_elementwise_function function;
  double alpha;     /* of axpy alone */
  const char* rung; /* one rung by name; NULL: the best */
} rung_elementwise_options;

/* Sets the first `size` bytes - sizeof(rung_elementwise_options) - to defaults: add, alpha 1. */
RUNG_C_API rung_status rung_elementwise_options_init(rung_elementwise_options* options,
                                                     size_t size);

/* z = f(x, y, w). Operands that f does not read are NULL; the others broadcast to z's shape as in
 * NumPy. All have one type; z may be an operand itself. NULL options are the defaults. */
RUNG_C_API rung_status rung_elementwise(rung_context* context, const rung_tensor* x,
                                        const rung_tensor* y, const rung_tensor* w,
                                        const rung_tensor* z,
                                        const rung_elementwise_options* options);

/* Call rung_elementwise with the function in the name and the best rung. */
RUNG_C_API rung_status rung_add(rung_context* context, const rung_tensor* x, const rung_tensor* y,
                                const rung_tensor* z);
RUNG_C_API rung_status rung_subtract(rung_context* context, const rung_tensor* x,
                                     const rung_tensor* y, const rung_tensor* z);
RUNG_C_API rung_status rung_multiply(rung_context* context, const rung_tensor* x,
                                     const rung_tensor* y, const rung_tensor* z);
RUNG_C_API rung_status rung_divide(rung_context* context, const rung_tensor* x,
                                   const rung_tensor* y, const rung_tensor* z);
RUNG_C_API rung_status rung_axpy(rung_context* context, double alpha, const rung_tensor* x,
                                 const rung_tensor* y, const rung_tensor* z);
RUNG_C_API rung_status rung_multiply_add(rung_context* context, const rung_tensor* x,
                                         const rung_tensor* y, const rung_tensor* w,
                                         const rung_tensor* z);
RUNG_C_API rung_status rung_relu(rung_context* context, const rung_tensor* x, const rung_tensor* z);
RUNG_C_API rung_status rung_sigmoid(rung_context* context, const rung_tensor* x,
                                    const rung_tensor* z);
RUNG_C_API rung_status rung_tanh(rung_context* context, const rung_tensor* x, const rung_tensor* z);
RUNG_C_API rung_status rung_gelu(rung_context* context, const rung_tensor* x, const rung_tensor* z);
RUNG_C_API rung_status rung_silu(rung_context* context, const rung_tensor* x, const rung_tensor* z);
RUNG_C_API rung_status rung_exp(rung_context* context, const rung_tensor* x, const rung_tensor* z);
RUNG_C_API rung_status rung_sign(rung_context* context, const rung_tensor* x, const rung_tensor* z);

#ifdef __cplusplus
}
#endif

#endif
