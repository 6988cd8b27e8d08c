/* SPDX-License-Identifier: Apache-2.0
 * conv_backward_data in C: a line and a filter of two taps, strides, wrong calls. */
#include "tests/c_api/check.h"

void check_conv_backward_data(rung_context* context);

void check_conv_backward_data(rung_context* context) {
  float dy[2] = {2, 3}, w[3] = {1, 10, 100}, dx[5];
  const float wanted[5] = {2, 20, 203, 30, 300}, apart[4] = {2, 23, 230, 300};
  const int64_t of_dy[3] = {1, 1, 2}, of_w[3] = {1, 1, 3}, of_dx[3] = {1, 1, 5};
  const int64_t of_four[3] = {1, 1, 4};
  const rung_tensor tdy = tensor_of(dy, RUNG_F32, 3, of_dy), tw = tensor_of(w, RUNG_F32, 3, of_w);
  const rung_tensor tdx = tensor_of(dx, RUNG_F32, 3, of_dx);
  const rung_tensor four = tensor_of(dx, RUNG_F32, 3, of_four);

  rung_conv_backward_data_options options;
  CHECK(rung_conv_backward_data_options_init(&options, sizeof options) == RUNG_OK);
  CHECK(options.stride[0] == 1 && options.stride[2] == 1 && options.groups == 1);
  options.stride[0] = 2;
  CHECK(rung_conv_backward_data(context, &tdy, &tw, &tdx, &options) == RUNG_OK);
  SAME(dx, wanted, 5, 0);
  CHECK(rung_conv_backward_data(context, &tdy, &tw, &four, NULL) == RUNG_OK);
  SAME(dx, apart, 4, 0);
  CHECK_OPTIONS(rung_conv_backward_data_options,
                rung_conv_backward_data(context, &tdy, &tw, &four, options));

  FAILS(rung_conv_backward_data(context, &tdy, &tw, &tdx, NULL), RUNG_INVALID_ARGUMENT, "dy is",
        "1x1x3");
  FAILS(rung_conv_backward_data(NULL, &tdy, &tw, &tdx, NULL), RUNG_INVALID_ARGUMENT, "context",
        "NULL");
  FAILS(rung_conv_backward_data(context, NULL, &tw, &tdx, NULL), RUNG_INVALID_ARGUMENT, "dy is",
        "NULL");
  FAILS(rung_conv_backward_data(context, &tdy, NULL, &tdx, NULL), RUNG_INVALID_ARGUMENT, "w is",
        "NULL");
  FAILS(rung_conv_backward_data(context, &tdy, &tw, NULL, NULL), RUNG_INVALID_ARGUMENT, "dx is",
        "NULL");
}
