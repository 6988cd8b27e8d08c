/* SPDX-License-Identifier: Apache-2.0
 * Gradients of softmax and log-softmax along an axis, in C. Shapes, types, aliasing, accuracy and
 * errors: rung/ops/softmax_backward/softmax_backward.hpp.
 */
#ifndef RUNG_OPS_SOFTMAX_BACKWARD_SOFTMAX_BACKWARD_H
#define RUNG_OPS_SOFTMAX_BACKWARD_SOFTMAX_BACKWARD_H

#include "rung/c/api.h"
#include "rung/ops/softmax/softmax.h"

#ifdef __cplusplus
extern "C" {
#endif

/* dx = s (dy - sum dy y) y; log: s (dy - exp(y) sum dy). y is the result of rung_softmax, called
 * with the same options; dx may be y or dy itself. NULL options are the defaults. */
RUNG_C_API rung_status rung_softmax_backward(rung_context* context, const rung_tensor* y,
                                             const rung_tensor* dy, const rung_tensor* dx,
                                             const rung_softmax_options* options);

#ifdef __cplusplus
}
#endif

#endif
