/* SPDX-License-Identifier: Apache-2.0
 * Running sums, products, minima and maxima along an axis, in C. Segments, types, NaN, accuracy and
 * errors: rung/ops/scan/scan.hpp.
 */
#ifndef RUNG_OPS_SCAN_SCAN_H
#define RUNG_OPS_SCAN_SCAN_H

#include "rung/c/api.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum rung_scan_operation {
  RUNG_SCAN_SUM = 0,
  RUNG_SCAN_PRODUCT = 1,
  RUNG_SCAN_MIN = 2,
  RUNG_SCAN_MAX = 3
} rung_scan_operation;

/* Fields may be appended in later versions; `size` is the program's sizeof. */
typedef struct rung_scan_options {
  size_t size;
  rung_scan_operation operation;
  int axis;                   /* negative: counted from the end */
  int exclusive;              /* not 0: result i excludes element i */
  int reverse;                /* not 0: from the end of the axis to its beginning */
  const rung_tensor* offsets; /* i32 or i64: starts of segments; NULL: one segment */
  const char* rung;           /* one rung by name; NULL: the best */
} rung_scan_options;

/* Sets options of `size` bytes, sizeof(rung_scan_options), to the defaults: the inclusive sum along
 * axis -1. */
RUNG_C_API rung_status rung_scan_options_init(rung_scan_options* options, size_t size);

/* Computes y[i] = x[0] + ... + x[i] along the axis, where + is the operation. y has x's shape and
 * type and may be x itself. NULL options are the defaults. */
RUNG_C_API rung_status rung_scan(rung_context* context, const rung_tensor* x, const rung_tensor* y,
                                 const rung_scan_options* options);

#ifdef __cplusplus
}
#endif

#endif
