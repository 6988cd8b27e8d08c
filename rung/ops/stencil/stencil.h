/* SPDX-License-Identifier: Apache-2.0
 * Correlation and convolution with a small mask, and box filters, in C. Formula, shapes, types,
 * edges, aliasing and errors: rung/ops/stencil/stencil.hpp.
 */
#ifndef RUNG_OPS_STENCIL_STENCIL_H
#define RUNG_OPS_STENCIL_STENCIL_H

#include "rung/c/api.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum rung_stencil_edge {
  RUNG_EDGE_ZERO = 0,
  RUNG_EDGE_CLAMP = 1,
  RUNG_EDGE_MIRROR = 2,
  RUNG_EDGE_WRAP = 3
} rung_stencil_edge;

/* Fields may be appended in later versions; `size` is the program's sizeof. */
typedef struct rung_stencil_options {
  size_t size;
  int window_count;      /* instead of a mask: the number of the window's axes; 0: no window */
  const int64_t* window; /* and its extents */
  int anchor_count;      /* as many as the mask has axes; 0: the middle */
  const int64_t* anchor;
  rung_stencil_edge edge;
  int convolution; /* 0: correlation */
  double scale;
  int iterations;
  const char* rung; /* one rung by name; NULL: the best */
} rung_stencil_options;

/* Sets the first `size` bytes - sizeof(rung_stencil_options) - to defaults: no window, the anchor
 * in the middle, zero edges, correlation, scale 1, one iteration. */
RUNG_C_API rung_status rung_stencil_options_init(rung_stencil_options* options, size_t size);

/* mask may be NULL if the options have a window. NULL options are the defaults. */
RUNG_C_API rung_status rung_stencil(rung_context* context, const rung_tensor* x,
                                    const rung_tensor* mask, const rung_tensor* y,
                                    const rung_stencil_options* options);

/* Applies the mask w[k, j, i] = through[k] down[j] across[i]; through, or down and through, may be
 * NULL. */
RUNG_C_API rung_status rung_stencil_separable(rung_context* context, const rung_tensor* x,
                                              const rung_tensor* across, const rung_tensor* down,
                                              const rung_tensor* through, const rung_tensor* y,
                                              const rung_stencil_options* options);

#ifdef __cplusplus
}
#endif

#endif
