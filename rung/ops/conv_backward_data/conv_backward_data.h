/* SPDX-License-Identifier: Apache-2.0
 * The gradient of conv with respect to x, in C. Shapes, types, accuracy and errors:
 * rung/ops/conv_backward_data/conv_backward_data.hpp.
 */
#ifndef RUNG_OPS_CONV_BACKWARD_DATA_CONV_BACKWARD_DATA_H
#define RUNG_OPS_CONV_BACKWARD_DATA_CONV_BACKWARD_DATA_H

#include "rung/c/api.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Fields may be appended in later versions; `size` is the program's sizeof. Set the other fields
 * as for rung_conv. */
typedef struct rung_conv_backward_data_options {
  size_t size;
  /* One entry per axis of the image, in order: [0] is the height and [1] the width of a 2-D image.
   * Further entries must keep the defaults of the _init function. */
  int stride[3];
  int padding[3]; /* at both ends */
  int dilation[3];
  int groups;
  int channels_last;
  const char* rung; /* one rung by name; NULL: the best */
} rung_conv_backward_data_options;

/* Sets options of `size` bytes, sizeof(rung_conv_backward_data_options), to the defaults: strides,
 * dilations and groups 1, all else 0. */
RUNG_C_API rung_status
rung_conv_backward_data_options_init(rung_conv_backward_data_options* options, size_t size);

/* dx: N x C x H x W, from dy: N x K x OH x OW and w: K x C/G x kh x kw. */
RUNG_C_API rung_status rung_conv_backward_data(rung_context* context, const rung_tensor* dy,
                                               const rung_tensor* w, const rung_tensor* dx,
                                               const rung_conv_backward_data_options* options);

#ifdef __cplusplus
}
#endif

#endif
