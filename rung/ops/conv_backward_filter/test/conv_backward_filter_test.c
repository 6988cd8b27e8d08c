/* SPDX-License-Identifier: Apache-2.0
 * conv_backward_filter in C: a line and a filter of two taps, strides, wrong calls. */
#include "tests/c_api/check.h"

void check_conv_backward_filter(rung_context* context);

void check_conv_backward_filter(rung_context* context) {
  float x[5] = {1, 2, 3, 4, 5}, dy[2] = {1, 10}, dw[4];
  const float by_two[3] = {31, 42, 53}, by_one[4] = {21, 32, 43, 54};
  const int64_t of_x[3] = {1, 1, 5}, of_dy[3] = {1, 1, 2}, three[3] = {1, 1, 3};
  const int64_t four[3] = {1, 1, 4};
  const rung_tensor tx = tensor_of(x, RUNG_F32, 3, of_x), tdy = tensor_of(dy, RUNG_F32, 3, of_dy);
  const rung_tensor t3 = tensor_of(dw, RUNG_F32, 3, three), t4 = tensor_of(dw, RUNG_F32, 3, four);

  rung_conv_backward_filter_options options;
  CHECK(rung_conv_backward_filter_options_init(&options, sizeof options) == RUNG_OK);
  CHECK(options.stride[0] == 1 && options.stride[2] == 1 && options.groups == 1);
  options.stride[0] = 2;
  CHECK(rung_conv_backward_filter(context, &tx, &tdy, &t3, &options) == RUNG_OK);
  SAME(dw, by_two, 3, 0);
  CHECK(rung_conv_backward_filter(context, &tx, &tdy, &t4, NULL) == RUNG_OK);
  SAME(dw, by_one, 4, 0);
  CHECK_OPTIONS(rung_conv_backward_filter_options,
                rung_conv_backward_filter(context, &tx, &tdy, &t4, options));

  FAILS(rung_conv_backward_filter(context, &tx, &tdy, &t3, NULL), RUNG_INVALID_ARGUMENT, "dy is",
        "1x1x3");
  FAILS(rung_conv_backward_filter(NULL, &tx, &tdy, &t3, NULL), RUNG_INVALID_ARGUMENT, "context",
        "NULL");
  FAILS(rung_conv_backward_filter(context, NULL, &tdy, &t3, NULL), RUNG_INVALID_ARGUMENT, "x is",
        "NULL");
  FAILS(rung_conv_backward_filter(context, &tx, NULL, &t3, NULL), RUNG_INVALID_ARGUMENT, "dy is",
        "NULL");
  FAILS(rung_conv_backward_filter(context, &tx, &tdy, NULL, NULL), RUNG_INVALID_ARGUMENT, "dw is",
        "NULL");
}
