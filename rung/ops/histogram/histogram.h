/* SPDX-License-Identifier: Apache-2.0
 * Counts of values per bin, in C. Bins, types, values outside, overflow and errors:
 * rung/ops/histogram/histogram.hpp.
 */
#ifndef RUNG_OPS_HISTOGRAM_HISTOGRAM_H
#define RUNG_OPS_HISTOGRAM_HISTOGRAM_H

#include "rung/c/api.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Fields may be appended in later versions; `size` is the program's sizeof. */
typedef struct rung_histogram_options {
  size_t size;
  double low; /* low = high: the range is [0, n), n the number of bins */
  double high;
  const rung_tensor* edges; /* n + 1, ascending; NULL: bins of equal width */
  int accumulate;           /* not 0: add to what counts holds */
  const char* rung;         /* one rung by name; NULL: the best */
} rung_histogram_options;

/* Sets the first `size` bytes - sizeof(rung_histogram_options) - to defaults: the range [0, n). */
RUNG_C_API rung_status rung_histogram_options_init(rung_histogram_options* options, size_t size);

/* counts[b] = the number of elements of x in bin b. counts: n elements of i32 or i64, not
 * overlapping x or edges (by address ranges: see rung_tensor). NULL options are the defaults. */
RUNG_C_API rung_status rung_histogram(rung_context* context, const rung_tensor* x,
                                      const rung_tensor* counts,
                                      const rung_histogram_options* options);

#ifdef __cplusplus
}
#endif

#endif
