/* SPDX-License-Identifier: Apache-2.0
 * pool in C: maxima, averages and norms of windows. Shapes, types, windows, NaN, accuracy and
 * errors: rung/ops/pool/pool.hpp.
 */
#ifndef RUNG_OPS_POOL_POOL_H
#define RUNG_OPS_POOL_POOL_H

#include "rung/c/api.h"
#include "rung/ops/gemm/gemm.h" /* rung_activation */

#ifdef __cplusplus
extern "C" {
#endif

typedef enum rung_pooling {
  RUNG_POOLING_MAX = 0,
  RUNG_POOLING_AVERAGE = 1,
  RUNG_POOLING_L2 = 2,      /* the root of the sum of squares */
  RUNG_POOLING_WEIGHTED = 3 /* sum of weights times values, over the sum of weights */
} rung_pooling;

/* Fields may be appended in later versions; `size` is the program's sizeof. Tensors are
 * optional: NULL means none. */
typedef struct rung_pool_options {
  size_t size;
  rung_pooling kind;
  int kernel[2];  /* {height, width}, as the next three */
  int stride[2];  /* 0: as the kernel */
  int padding[2]; /* at both ends */
  int dilation[2];
  int ceil_mode;              /* not 0: partial windows at the end count */
  int count_padding;          /* not 0: averages count the padding */
  int channels_last;          /* not 0: tensors are N x H x W x C */
  const rung_tensor* weights; /* kh x kw; of weighted alone */
  const rung_tensor* bias;    /* C: added to the pooled number */
  rung_activation activation; /* applied last */
  const rung_tensor* indices; /* written: positions of the maxima, h W + w, i32 or i64 */
  const char* rung;           /* one rung by name; NULL: the best */
} rung_pool_options;

/* Sets the first `size` bytes - sizeof(rung_pool_options) - to defaults: max, a kernel of 1 x 1,
 * stride as the kernel, no padding, dilation 1, count_padding 1, all else off. */
RUNG_C_API rung_status rung_pool_options_init(rung_pool_options* options, size_t size);

/* y = act(pooled x + bias). x: N x C x H x W, y: N x C x OH x OW. */
RUNG_C_API rung_status rung_pool(rung_context* context, const rung_tensor* x, const rung_tensor* y,
                                 const rung_pool_options* options);

/* Call rung_pool with the kind in the name; options->kind is ignored. */
RUNG_C_API rung_status rung_max_pool(rung_context* context, const rung_tensor* x,
                                     const rung_tensor* y, const rung_pool_options* options);
RUNG_C_API rung_status rung_average_pool(rung_context* context, const rung_tensor* x,
                                         const rung_tensor* y, const rung_pool_options* options);

/* Stores the number of windows along an axis of x, the extent of y. */
RUNG_C_API rung_status rung_pooled_extent(int64_t extent, int kernel, int stride, int padding,
                                          int dilation, int ceil_mode, int64_t* pooled);

#ifdef __cplusplus
}
#endif

#endif
