/* SPDX-License-Identifier: Apache-2.0
 * scan in C: every operation, both directions, segments. */
#include <math.h>

#include "tests/c_api/check.h"

void check_scan(rung_context* context);

enum { LENGTH = 7, LINES = 2 };

/* Scans one line by definition; segments begin at 0 and at `start`. */
static void expect(rung_scan_operation operation, const float* x, int step, int exclusive,
                   int reverse, int start, float* y) {
  const double identity[4] = {0, 1, INFINITY, -INFINITY};
  double value = identity[operation];
  for (int n = 0; n < LENGTH; ++n) {
    const int i = reverse ? LENGTH - 1 - n : n;
    if (i == (reverse ? start - 1 : start)) value = identity[operation];
    const double before = value, element = x[i * step];
    if (operation == RUNG_SCAN_SUM) value += element;
    if (operation == RUNG_SCAN_PRODUCT) value *= element;
    if (operation == RUNG_SCAN_MIN && element < value) value = element;
    if (operation == RUNG_SCAN_MAX && element > value) value = element;
    y[i * step] = (float)(exclusive ? before : value);
  }
}

void check_scan(rung_context* context) {
  const int64_t shape[2] = {LENGTH, LINES}, one[1] = {1};
  float x[LENGTH * LINES], y[LENGTH * LINES], expected[LENGTH * LINES];
  int64_t start[1] = {3};
  fill(x, LENGTH * LINES);
  const rung_tensor tx = tensor_of(x, RUNG_F32, 2, shape), ty = tensor_of(y, RUNG_F32, 2, shape);
  const rung_tensor offsets = tensor_of(start, RUNG_I64, 1, one);

  CHECK(rung_scan(context, &tx, &ty, NULL) == RUNG_OK); /* along the last axis, of two */
  for (int i = 0; i < LENGTH * LINES; ++i) expected[i] = x[i] + (i % 2 == 1 ? x[i - 1] : 0);
  SAME(y, expected, LENGTH * LINES, 1e-6);

  rung_scan_options options;
  CHECK(rung_scan_options_init(&options, sizeof options) == RUNG_OK);
  CHECK(options.operation == RUNG_SCAN_SUM && options.axis == -1);
  CHECK(!options.exclusive && !options.reverse && options.offsets == NULL);
  options.axis = 0;
  for (int kind = 0; kind < 4 * 8; ++kind) {
    options.operation = (rung_scan_operation)(kind / 8);
    options.exclusive = kind & 1;
    options.reverse = kind & 2;
    options.offsets = (kind & 4) != 0 ? &offsets : NULL;
    CHECK(rung_scan(context, &tx, &ty, &options) == RUNG_OK);
    for (int line = 0; line < LINES; ++line) {
      expect(options.operation, x + line, LINES, kind & 1, kind & 2, (kind & 4) != 0 ? 3 : 0,
             expected + line);
    }
    SAME(y, expected, LENGTH * LINES, 1e-5);
  }

  CHECK_OPTIONS(rung_scan_options, rung_scan(context, &tx, &ty, options));
  options.operation = (rung_scan_operation)4;
  FAILS(rung_scan(context, &tx, &ty, &options), RUNG_INVALID_ARGUMENT, "operation is 4", "0 to 3");
  options.operation = RUNG_SCAN_SUM;
  options.axis = -3;
  FAILS(rung_scan(context, &tx, &ty, &options), RUNG_INVALID_ARGUMENT, "axis", "-3");
  FAILS(rung_scan(NULL, &tx, &ty, NULL), RUNG_INVALID_ARGUMENT, "context", "NULL");
  FAILS(rung_scan(context, NULL, &ty, NULL), RUNG_INVALID_ARGUMENT, "x is", "NULL");
  FAILS(rung_scan(context, &tx, NULL, NULL), RUNG_INVALID_ARGUMENT, "y is", "NULL");
  rung_tensor bad = ty;
  bad.dtype = RUNG_F64;
  FAILS(rung_scan(context, &tx, &bad, NULL), RUNG_INVALID_ARGUMENT, "y is f64", "f32");
}
