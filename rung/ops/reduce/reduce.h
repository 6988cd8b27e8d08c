/* SPDX-License-Identifier: Apache-2.0
 * Sums, products, extrema, means, norms and positions of extrema, in C. Shapes, types, NaN,
 * empty reductions, accuracy and errors: rung/ops/reduce/reduce.hpp.
 */
#ifndef RUNG_OPS_REDUCE_REDUCE_H
#define RUNG_OPS_REDUCE_REDUCE_H

#include "rung/c/api.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum rung_reduction {
  RUNG_REDUCE_SUM = 0,
  RUNG_REDUCE_PRODUCT = 1,
  RUNG_REDUCE_MIN = 2,
  RUNG_REDUCE_MAX = 3,
  RUNG_REDUCE_MEAN = 4,
  RUNG_REDUCE_ARGMIN = 5,
  RUNG_REDUCE_ARGMAX = 6,
  RUNG_REDUCE_NORM = 7 /* L2: the square root of the sum of squares */
} rung_reduction;

/* Fields may be appended in later versions; `size` is the program's sizeof. */
typedef struct rung_reduce_options {
  size_t size;
  rung_reduction operation;
  int axes_count;             /* 0: all axes are reduced */
  const int64_t* axes;        /* in any order, negative ones from the end */
  const rung_tensor* offsets; /* n + 1 bounds of segments of the last axis; NULL: none */
  const char* rung;           /* one rung by name; NULL: the best */
} rung_reduce_options;

/* Sets options of `size` bytes, sizeof(rung_reduce_options), to the defaults: the sum over all
 * axes. */
RUNG_C_API rung_status rung_reduce_options_init(rung_reduce_options* options, size_t size);

/* Reduces x over the axes, or over each segment of the last axis, into y. y has the kept axes, or
 * all axes with extent 1 for reduced ones; it must not overlap x (by address ranges: see
 * rung_tensor). NULL options are the defaults. */
RUNG_C_API rung_status rung_reduce(rung_context* context, const rung_tensor* x,
                                   const rung_tensor* y, const rung_reduce_options* options);

/* Stores the default type of y: x's; i64 for sums and products of integers and for positions, f64
 * for means of integers. */
RUNG_C_API rung_status rung_reduced_dtype(rung_reduction operation, rung_dtype x, rung_dtype* y);

#ifdef __cplusplus
}
#endif

#endif
