/* SPDX-License-Identifier: Apache-2.0
 * A function of data in host memory, computed on a GPU, in C. Memory, waiting, aliasing and errors:
 * rung/ops/transfer/transfer.hpp.
 */
#ifndef RUNG_OPS_TRANSFER_TRANSFER_H
#define RUNG_OPS_TRANSFER_TRANSFER_H

#include "rung/c/api.h"
#include "rung/ops/elementwise/elementwise.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Fields may be appended in later versions; `size` is the program's sizeof. */
typedef struct rung_transfer_options {
  size_t size;
  rung_elementwise_function function; /* of one operand */
  const char* rung;                   /* one rung by name; NULL: the best */
} rung_transfer_options;

/* Sets the first `size` bytes - sizeof(rung_transfer_options) - to defaults: relu. */
RUNG_C_API rung_status rung_transfer_options_init(rung_transfer_options* options, size_t size);

/* y = f(x), x and y contiguous and in host memory, f on the context's GPU, real or simulated. y may
 * be x itself; it is complete when the call returns. NULL options are the defaults. */
RUNG_C_API rung_status rung_transfer(rung_context* context, const rung_tensor* x,
                                     const rung_tensor* y, const rung_transfer_options* options);

#ifdef __cplusplus
}
#endif

#endif
