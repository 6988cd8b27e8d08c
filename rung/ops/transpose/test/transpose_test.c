/* SPDX-License-Identifier: Apache-2.0
 * transpose in C: matrices, any order of axes. */
#include "tests/c_api/check.h"

void check_transpose(rung_context* context);

void check_transpose(rung_context* context) {
  float x[24], y[24], expected[24];
  const int64_t shape[3] = {2, 3, 4}, swapped[3] = {2, 4, 3}, turned[3] = {4, 2, 3};
  const int64_t order[3] = {2, 0, 1};
  fill(x, 24);
  const rung_tensor tx = tensor_of(x, RUNG_F32, 3, shape), ty = tensor_of(y, RUNG_F32, 3, swapped);
  const rung_tensor tz = tensor_of(y, RUNG_F32, 3, turned);

  CHECK(rung_transpose(context, &tx, &ty, NULL) == RUNG_OK);
  for (int i = 0; i < 24; ++i) expected[i / 12 * 12 + i % 4 * 3 + i / 4 % 3] = x[i];
  SAME(y, expected, 24, 0);

  rung_transpose_options options;
  CHECK(rung_transpose_options_init(&options, sizeof options) == RUNG_OK);
  CHECK(options.order == NULL && options.order_count == 0);
  options.order = order;
  options.order_count = 3;
  CHECK(rung_transpose(context, &tx, &tz, &options) == RUNG_OK);
  for (int i = 0; i < 24; ++i) expected[i % 4 * 6 + i / 4] = x[i];
  SAME(y, expected, 24, 0);

  CHECK_OPTIONS(rung_transpose_options, rung_transpose(context, &tx, &ty, options));
  FAILS(rung_transpose(context, &tx, &ty, &options), RUNG_INVALID_ARGUMENT, "y is 2x4x3", "4x2x3");
  options.order_count = 9;
  FAILS(rung_transpose(context, &tx, &tz, &options), RUNG_INVALID_ARGUMENT, "order_count is 9",
        "0 to 8");
  options.order_count = 3;
  options.order = NULL;
  FAILS(rung_transpose(context, &tx, &tz, &options), RUNG_INVALID_ARGUMENT, "order is", "NULL");
  const int64_t twice[3] = {2, 0, 2};
  options.order = twice;
  FAILS(rung_transpose(context, &tx, &tz, &options), RUNG_INVALID_ARGUMENT, "order", "2");
  FAILS(rung_transpose(NULL, &tx, &ty, NULL), RUNG_INVALID_ARGUMENT, "context", "NULL");
  FAILS(rung_transpose(context, NULL, &ty, NULL), RUNG_INVALID_ARGUMENT, "x is", "NULL");
  FAILS(rung_transpose(context, &tx, NULL, NULL), RUNG_INVALID_ARGUMENT, "y is", "NULL");
  rung_tensor bad = ty;
  bad.dtype = RUNG_I32;
  FAILS(rung_transpose(context, &tx, &bad, NULL), RUNG_INVALID_ARGUMENT, "i32", "f32");
}
