/* SPDX-License-Identifier: Apache-2.0
 * The gradient of pool, in C. Shapes, types, accuracy and errors:
 * rung/ops/pool_backward/pool_backward.hpp.
 */
#ifndef RUNG_OPS_POOL_BACKWARD_POOL_BACKWARD_H
#define RUNG_OPS_POOL_BACKWARD_POOL_BACKWARD_H

#include "rung/c/api.h"
#include "rung/ops/pool/pool.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Fields may be appended in later versions; `size` is the program's sizeof. Tensors are
 * optional: NULL means none. Set windows and weights as for rung_pool. */
typedef struct rung_pool_backward_options {
  size_t size;
  rung_pooling kind;
  int kernel[2];  /* {height, width}, as the next three */
  int stride[2];  /* 0: as the kernel */
  int padding[2]; /* at both ends */
  int dilation[2];
  int ceil_mode;
  int count_padding;
  int channels_last;
  const rung_tensor* indices; /* of max: what rung_pool wrote */
  const rung_tensor* x;       /* of l2: rung_pool's x and y */
  const rung_tensor* y;
  const rung_tensor* weights; /* of weighted */
  const char* rung;           /* one rung by name; NULL: the best */
} rung_pool_backward_options;

/* Sets the first `size` bytes - sizeof(rung_pool_backward_options) - to defaults: max, a kernel of
 * 1 x 1, stride as the kernel, no padding, dilation 1, count_padding 1, all else off. */
RUNG_C_API rung_status rung_pool_backward_options_init(rung_pool_backward_options* options,
                                                       size_t size);

/* dx: N x C x H x W, from dy: N x C x OH x OW. */
RUNG_C_API rung_status rung_pool_backward(rung_context* context, const rung_tensor* dy,
                                          const rung_tensor* dx,
                                          const rung_pool_backward_options* options);

/* Call rung_pool_backward with the kind in the name; options->kind is ignored. */
RUNG_C_API rung_status rung_max_pool_backward(rung_context* context, const rung_tensor* dy,
                                              const rung_tensor* dx,
                                              const rung_pool_backward_options* options);
RUNG_C_API rung_status rung_average_pool_backward(rung_context* context, const rung_tensor* dy,
                                                  const rung_tensor* dx,
                                                  const rung_pool_backward_options* options);

#ifdef __cplusplus
}
#endif

#endif
