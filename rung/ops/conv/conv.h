/* SPDX-License-Identifier: Apache-2.0
 * conv in C: the convolution layer. Shapes, types, options, accuracy and errors:
 * rung/ops/conv/conv.hpp.
 */
#ifndef RUNG_OPS_CONV_CONV_H
#define RUNG_OPS_CONV_CONV_H

#include "rung/c/api.h"
#include "rung/ops/gemm/gemm.h" /* rung_activation */

#ifdef __cplusplus
extern "C" {
#endif

/* Fields may be appended in later versions; `size` is the program's sizeof. Tensors are
 * optional: NULL means none. */
typedef struct rung_conv_options {
  size_t size;
  /* One entry per axis of the image, in order: [0] is the height and [1] the width of a 2-D image.
   * Further entries must keep the defaults of the _init function. */
  int stride[3];
  int padding[3]; /* at both ends */
  int dilation[3];
  int groups;
  int channels_last;          /* not 0: tensors are N x H x W x C */
  int winograd;               /* not 0: 3 x 3 layers may lose digits */
  const rung_tensor* bias;    /* K: added to the sums */
  rung_activation activation; /* applied last */
  const char* rung;           /* one rung by name; NULL: the best */
} rung_conv_options;

/* Sets options of `size` bytes, sizeof(rung_conv_options), to the defaults: strides,
 * dilations and groups 1, all else 0. */
RUNG_C_API rung_status rung_conv_options_init(rung_conv_options* options, size_t size);

/* y = act(w * x + bias). x: N x C x H x W, w: K x C/G x kh x kw, y: N x K x OH x OW; also of one
 * and three dimensions. NULL options are the defaults. */
RUNG_C_API rung_status rung_conv(rung_context* context, const rung_tensor* x, const rung_tensor* w,
                                 const rung_tensor* y, const rung_conv_options* options);

/* Stores the number of positions of a filter along an axis of x, the extent of y. */
RUNG_C_API rung_status rung_convolved_extent(int64_t extent, int64_t kernel, int stride,
                                             int padding, int dilation, int64_t* convolved);

#ifdef __cplusplus
}
#endif

#endif
