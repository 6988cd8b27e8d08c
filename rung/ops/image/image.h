/* SPDX-License-Identifier: Apache-2.0
 * Filters of pictures in C: grey, box and Gaussian blur, unsharp mask, Sobel. Formulas, shapes,
 * types, alpha, edges, rounding and errors: rung/ops/image/image.hpp.
 */
#ifndef RUNG_OPS_IMAGE_IMAGE_H
#define RUNG_OPS_IMAGE_IMAGE_H

#include "rung/c/api.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum rung_image_filter {
  RUNG_IMAGE_GREY = 0,
  RUNG_IMAGE_BOX = 1,
  RUNG_IMAGE_GAUSSIAN = 2,
  RUNG_IMAGE_UNSHARP = 3,
  RUNG_IMAGE_SOBEL = 4
} rung_image_filter;

typedef enum rung_grey_weights {
  RUNG_GREY_TENTHS = 0, /* 3/10, 6/10, 1/10 */
  RUNG_GREY_BT601 = 1,
  RUNG_GREY_BT709 = 2,
  RUNG_GREY_TENTHS_BY_TERM = 3 /* as tenths; of u8 each term is rounded down */
} rung_grey_weights;

typedef enum rung_image_edge {
  RUNG_IMAGE_EDGE_CLAMP = 0, /* the nearest pixel of the border */
  RUNG_IMAGE_EDGE_ZERO = 1
} rung_image_edge;

/* Fields may be appended in later versions; `size` is the program's sizeof. */
typedef struct rung_image_options {
  size_t size;
  rung_image_filter filter;
  rung_grey_weights weights; /* of grey */
  int radius;                /* of box, gaussian, unsharp: 0 to 15 */
  double sigma;              /* of gaussian, unsharp; 0: one that fits the radius */
  double amount;             /* of unsharp */
  int planar;                /* not 0: pictures are C x H x W */
  const char* rung;          /* one rung by name; NULL: the best */
  rung_image_edge edge;      /* of box: pixels outside of the picture */
  int truncate;              /* of box of u8; not 0: means are rounded down */
} rung_image_options;

/* Sets the first `size` bytes - sizeof(rung_image_options) - to defaults: grey by BT.601, radius 2,
 * sigma 0, amount 1, H x W x C, edges clamped, means rounded to nearest. */
RUNG_C_API rung_status rung_image_options_init(rung_image_options* options, size_t size);

/* Filters the pictures x into y. NULL options are the defaults. */
RUNG_C_API rung_status rung_image(rung_context* context, const rung_tensor* x, const rung_tensor* y,
                                  const rung_image_options* options);

/* Call rung_image with the filter in the name; options->filter is ignored. */
RUNG_C_API rung_status rung_to_grey(rung_context* context, const rung_tensor* x,
                                    const rung_tensor* y, const rung_image_options* options);
RUNG_C_API rung_status rung_box_blur(rung_context* context, const rung_tensor* x,
                                     const rung_tensor* y, const rung_image_options* options);
RUNG_C_API rung_status rung_gaussian_blur(rung_context* context, const rung_tensor* x,
                                          const rung_tensor* y, const rung_image_options* options);
RUNG_C_API rung_status rung_unsharp_mask(rung_context* context, const rung_tensor* x,
                                         const rung_tensor* y, const rung_image_options* options);
RUNG_C_API rung_status rung_sobel(rung_context* context, const rung_tensor* x, const rung_tensor* y,
                                  const rung_image_options* options);

#ifdef __cplusplus
}
#endif

#endif
