/* SPDX-License-Identifier: Apache-2.0
 * reduce in C: every operation, axes, segments, types of results. */
#include <math.h>

#include "tests/c_api/check.h"

void check_reduce(rung_context* context);

enum { ROWS = 3, COLUMNS = 4, SIZE = ROWS * COLUMNS };

static const float values[SIZE] = {3, -1, 2, 0.5f, 4, 4, -6, 1, 0.25f, 2, 2, -1};

/* Reduces one row of `values`, by definition; the index for argmin and argmax. */
static double expect(rung_reduction operation, const float* row) {
  double sum = 0, product = 1, squares = 0;
  int least = 0, greatest = 0;
  for (int i = 0; i < COLUMNS; ++i) {
    sum += row[i];
    product *= row[i];
    squares += (double)row[i] * row[i];
    if (row[i] < row[least]) least = i;
    if (row[i] > row[greatest]) greatest = i;
  }
  switch (operation) {
    case RUNG_REDUCE_SUM:
      return sum;
    case RUNG_REDUCE_PRODUCT:
      return product;
    case RUNG_REDUCE_MIN:
      return row[least];
    case RUNG_REDUCE_MAX:
      return row[greatest];
    case RUNG_REDUCE_MEAN:
      return sum / COLUMNS;
    case RUNG_REDUCE_ARGMIN:
      return least;
    case RUNG_REDUCE_ARGMAX:
      return greatest;
    case RUNG_REDUCE_NORM:
      return sqrt(squares);
  }
  return NAN;
}

static void operations(rung_context* context, const rung_tensor* x) {
  const int64_t rows_shape[1] = {ROWS}, last[1] = {-1};
  rung_reduce_options options;
  CHECK(rung_reduce_options_init(&options, sizeof options) == RUNG_OK);
  CHECK(options.operation == RUNG_REDUCE_SUM && options.axes_count == 0 && options.axes == NULL);
  CHECK(options.offsets == NULL);
  options.axes = last;
  options.axes_count = 1;
  for (int operation = 0; operation <= (int)RUNG_REDUCE_NORM; ++operation) {
    float y[ROWS] = {0}, expected[ROWS];
    int64_t index[ROWS];
    rung_dtype type;
    options.operation = (rung_reduction)operation;
    CHECK(rung_reduced_dtype(options.operation, RUNG_F32, &type) == RUNG_OK);
    const int is_index = operation == RUNG_REDUCE_ARGMIN || operation == RUNG_REDUCE_ARGMAX;
    CHECK(type == (is_index ? RUNG_I64 : RUNG_F32));
    const rung_tensor ty = tensor_of(is_index ? (void*)index : (void*)y, type, 1, rows_shape);
    CHECK(rung_reduce(context, x, &ty, &options) == RUNG_OK);
    for (int row = 0; row < ROWS; ++row) {
      if (is_index) y[row] = (float)index[row];
      expected[row] = (float)expect(options.operation, values + row * COLUMNS);
    }
    SAME(y, expected, ROWS, 1e-6);
  }
}

static void provoke_errors(rung_context* context, const rung_tensor* x, const rung_tensor* y) {
  rung_reduce_options options;
  rung_dtype type;
  CHECK(rung_reduce_options_init(&options, sizeof options) == RUNG_OK);
  CHECK_OPTIONS(rung_reduce_options, rung_reduce(context, x, y, options));
  options.operation = (rung_reduction)8;
  FAILS(rung_reduce(context, x, y, &options), RUNG_INVALID_ARGUMENT, "operation is 8", "0 to 7");
  options.operation = RUNG_REDUCE_SUM;
  options.axes_count = 9;
  FAILS(rung_reduce(context, x, y, &options), RUNG_INVALID_ARGUMENT, "axes_count is 9", "0 to 8");
  options.axes_count = -1;
  FAILS(rung_reduce(context, x, y, &options), RUNG_INVALID_ARGUMENT, "axes_count is -1", "0 to 8");
  options.axes_count = 1;
  FAILS(rung_reduce(context, x, y, &options), RUNG_INVALID_ARGUMENT, "axes is", "NULL");
  FAILS(rung_reduce(NULL, x, y, NULL), RUNG_INVALID_ARGUMENT, "context", "NULL");
  FAILS(rung_reduce(context, NULL, y, NULL), RUNG_INVALID_ARGUMENT, "x is", "NULL");
  FAILS(rung_reduce(context, x, NULL, NULL), RUNG_INVALID_ARGUMENT, "y is", "NULL");
  rung_tensor bad = *y;
  bad.dtype = RUNG_U8;
  FAILS(rung_reduce(context, x, &bad, NULL), RUNG_INVALID_ARGUMENT, "y is u8", "f32");
  FAILS(rung_reduced_dtype((rung_reduction)-1, RUNG_F32, &type), RUNG_INVALID_ARGUMENT,
        "operation is -1", "0 to 7");
  FAILS(rung_reduced_dtype(RUNG_REDUCE_SUM, (rung_dtype)50, &type), RUNG_INVALID_ARGUMENT,
        "x is 50", "0 to 10");
  FAILS(rung_reduced_dtype(RUNG_REDUCE_SUM, RUNG_F32, NULL), RUNG_INVALID_ARGUMENT, "y", "NULL");
}

void check_reduce(rung_context* context) {
  float data[SIZE], total[1] = {0}, expected[1] = {0};
  const int64_t shape[2] = {ROWS, COLUMNS}, one[1] = {1};
  memcpy(data, values, sizeof data);
  const rung_tensor x = tensor_of(data, RUNG_F32, 2, shape), y = tensor_of(total, RUNG_F32, 1, one);
  CHECK(rung_reduce(context, &x, &y, NULL) == RUNG_OK);
  for (int i = 0; i < SIZE; ++i) expected[0] += values[i];
  SAME(total, expected, 1, 1e-6);
  operations(context, &x);
  provoke_errors(context, &x, &y);

  /* The last axis in segments of 1, 0 and 3 elements. */
  int32_t starts[4] = {0, 1, 1, 4};
  const int64_t four[1] = {4}, segments_shape[2] = {ROWS, 3};
  float sums[ROWS * 3], wanted[ROWS * 3];
  const rung_tensor offsets = tensor_of(starts, RUNG_I32, 1, four);
  const rung_tensor ty = tensor_of(sums, RUNG_F32, 2, segments_shape);
  rung_reduce_options options;
  const int64_t last[1] = {1};
  CHECK(rung_reduce_options_init(&options, sizeof options) == RUNG_OK);
  options.offsets = &offsets;
  options.axes = last;
  options.axes_count = 1;
  CHECK(rung_reduce(context, &x, &ty, &options) == RUNG_OK);
  for (int row = 0; row < ROWS; ++row) {
    const float* const at = values + row * COLUMNS;
    wanted[row * 3] = at[0];
    wanted[row * 3 + 1] = 0;
    wanted[row * 3 + 2] = at[1] + at[2] + at[3];
  }
  SAME(sums, wanted, ROWS * 3, 1e-6);
  /* Empty offsets are invalid; NULL would mean that there are none. */
  const int64_t nothing[1] = {0};
  const rung_tensor empty = tensor_of(NULL, RUNG_I32, 1, nothing);
  options.offsets = &empty;
  FAILS(rung_reduce(context, &x, &ty, &options), RUNG_INVALID_ARGUMENT, "offsets", "");
}
