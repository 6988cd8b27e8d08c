/* SPDX-License-Identifier: Apache-2.0
 * The gradient of conv with respect to w, in C. Shapes, types, accuracy and errors:
 * rung/ops/conv_backward_filter/conv_backward_filter.hpp.
 */
#ifndef RUNG_OPS_CONV_BACKWARD_FILTER_CONV_BACKWARD_FILTER_H
#define RUNG_OPS_CONV_BACKWARD_FILTER_CONV_BACKWARD_FILTER_H

#include "rung/c/api.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Fields may be appended in later versions; `size` is the program's sizeof. Set the other fields
 * as for rung_conv. */
typedef struct rung_conv_backward_filter_options {
  size_t size;
  /* One entry per axis of the image, in order: [0] is the height and [1] the width of a 2-D image.
   * Further entries must keep the defaults of the _init function. */
  int stride[3];
  int padding[3]; /* at both ends */
  int dilation[3];
  int groups;
  int channels_last;
  const char* rung; /* one rung by name; NULL: the best */
} rung_conv_backward_filter_options;

/* Sets options of `size` bytes, sizeof(rung_conv_backward_filter_options), to the defaults:
 * strides, dilations and groups 1, all else 0. */
RUNG_C_API rung_status
rung_conv_backward_filter_options_init(rung_conv_backward_filter_options* options, size_t size);

/* dw: K x C/G x kh x kw, from x: N x C x H x W and dy: N x K x OH x OW. */
RUNG_C_API rung_status rung_conv_backward_filter(rung_context* context, const rung_tensor* x,
                                                 const rung_tensor* dy, const rung_tensor* dw,
                                                 const rung_conv_backward_filter_options* options);

#ifdef __cplusplus
}
#endif

#endif
