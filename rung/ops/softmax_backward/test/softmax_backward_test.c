/* SPDX-License-Identifier: Apache-2.0
 * softmax_backward in C: logarithm, scale and axis. */
#include <math.h>

#include "tests/c_api/check.h"

void check_softmax_backward(rung_context* context);

enum { ROWS = 3, COLUMNS = 5, SIZE = ROWS * COLUMNS };

void check_softmax_backward(rung_context* context) {
  const int64_t shape[2] = {ROWS, COLUMNS};
  float y[SIZE], dy[SIZE], dx[SIZE], expected[SIZE];
  fill(y, SIZE);
  for (int i = 0; i < SIZE; ++i) dy[i] = (float)(i % 4) - 1;
  const rung_tensor ty = tensor_of(y, RUNG_F32, 2, shape), tdy = tensor_of(dy, RUNG_F32, 2, shape);
  const rung_tensor tdx = tensor_of(dx, RUNG_F32, 2, shape);

  CHECK(rung_softmax_backward(context, &ty, &tdy, &tdx, NULL) == RUNG_OK);
  for (int row = 0; row < ROWS; ++row) {
    double dot = 0;
    for (int i = row * COLUMNS; i < (row + 1) * COLUMNS; ++i) dot += (double)dy[i] * y[i];
    for (int i = row * COLUMNS; i < (row + 1) * COLUMNS; ++i) {
      expected[i] = (float)((dy[i] - dot) * y[i]);
    }
  }
  SAME(dx, expected, SIZE, 1e-5);

  rung_softmax_options options;
  CHECK(rung_softmax_options_init(&options, sizeof options) == RUNG_OK);
  options.axis = 0;
  options.scale = 0.5;
  options.log = 1;
  CHECK(rung_softmax_backward(context, &ty, &tdy, &tdx, &options) == RUNG_OK);
  for (int column = 0; column < COLUMNS; ++column) {
    double sum = 0;
    for (int i = column; i < SIZE; i += COLUMNS) sum += dy[i];
    for (int i = column; i < SIZE; i += COLUMNS) {
      expected[i] = (float)(0.5 * (dy[i] - exp(y[i]) * sum));
    }
  }
  SAME(dx, expected, SIZE, 1e-5);

  CHECK_OPTIONS(rung_softmax_options, rung_softmax_backward(context, &ty, &tdy, &tdx, options));
  options.axis = 2;
  FAILS(rung_softmax_backward(context, &ty, &tdy, &tdx, &options), RUNG_INVALID_ARGUMENT, "axis",
        "2");
  FAILS(rung_softmax_backward(context, NULL, &tdy, &tdx, NULL), RUNG_INVALID_ARGUMENT, "y is",
        "NULL");
  FAILS(rung_softmax_backward(context, &ty, NULL, &tdx, NULL), RUNG_INVALID_ARGUMENT, "dy is",
        "NULL");
  FAILS(rung_softmax_backward(context, &ty, &tdy, NULL, NULL), RUNG_INVALID_ARGUMENT, "dx is",
        "NULL");
}
