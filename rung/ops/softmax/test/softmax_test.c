/* SPDX-License-Identifier: Apache-2.0
 * softmax in C: logarithm, scale and axis. */
#include <math.h>

#include "tests/c_api/check.h"

void check_softmax(rung_context* context);

enum { ROWS = 3, COLUMNS = 5, SIZE = ROWS * COLUMNS };

/* Computes the definition along the last axis (step 1) or the first (step COLUMNS). */
static void expect(const float* x, int along_rows, double scale, int log_too, float* y) {
  const int lines = along_rows ? ROWS : COLUMNS, length = along_rows ? COLUMNS : ROWS;
  const int step = along_rows ? 1 : COLUMNS, next = along_rows ? COLUMNS : 1;
  for (int line = 0; line < lines; ++line) {
    double sum = 0;
    for (int i = 0; i < length; ++i) sum += exp(scale * x[line * next + i * step]);
    for (int i = 0; i < length; ++i) {
      const int at = line * next + i * step;
      y[at] = (float)(log_too ? scale * x[at] - log(sum) : exp(scale * x[at]) / sum);
    }
  }
}

void check_softmax(rung_context* context) {
  const int64_t shape[2] = {ROWS, COLUMNS};
  float x[SIZE], y[SIZE], expected[SIZE];
  fill(x, SIZE);
  const rung_tensor tx = tensor_of(x, RUNG_F32, 2, shape), ty = tensor_of(y, RUNG_F32, 2, shape);

  CHECK(rung_softmax(context, &tx, &ty, NULL) == RUNG_OK);
  expect(x, 1, 1, 0, expected);
  SAME(y, expected, SIZE, 1e-5);

  rung_softmax_options options;
  CHECK(rung_softmax_options_init(&options, sizeof options) == RUNG_OK);
  CHECK(options.axis == -1 && options.scale == 1 && options.log == 0);
  options.axis = 0;
  options.scale = 0.5;
  options.log = 1;
  CHECK(rung_softmax(context, &tx, &ty, &options) == RUNG_OK);
  expect(x, 0, 0.5, 1, expected);
  SAME(y, expected, SIZE, 1e-5);
  CHECK_OPTIONS(rung_softmax_options, rung_softmax(context, &tx, &ty, options));
  options.axis = 2;
  FAILS(rung_softmax(context, &tx, &ty, &options), RUNG_INVALID_ARGUMENT, "axis", "2");
  options.axis = 0;
  options.scale = -1;
  FAILS(rung_softmax(context, &tx, &ty, &options), RUNG_INVALID_ARGUMENT, "scale", "-1");
  FAILS(rung_softmax(NULL, &tx, &ty, NULL), RUNG_INVALID_ARGUMENT, "context", "NULL");
  FAILS(rung_softmax(context, NULL, &ty, NULL), RUNG_INVALID_ARGUMENT, "x is", "NULL");
  FAILS(rung_softmax(context, &tx, NULL, NULL), RUNG_INVALID_ARGUMENT, "y is", "NULL");
  rung_tensor bad = ty;
  bad.dtype = RUNG_I32;
  FAILS(rung_softmax(context, &tx, &bad, NULL), RUNG_INVALID_ARGUMENT, "y", "i32");
}
