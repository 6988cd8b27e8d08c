/* SPDX-License-Identifier: Apache-2.0
 * Layer norm and RMS norm in C: every optional tensor, axes, epsilon. */
#include <math.h>

#include "tests/c_api/check.h"

void check_norm(rung_context* context);

enum { ROWS = 3, COLUMNS = 6, SIZE = ROWS * COLUMNS };

typedef struct {
  float y[SIZE], sum[SIZE], mean[ROWS], rstd[ROWS];
} Result;

static void expect(const float* x, const float* residual, const float* gamma, const float* beta,
                   double epsilon, int rms, Result* result) {
  for (int row = 0; row < ROWS; ++row) {
    float* const s = result->sum + row * COLUMNS;
    double mean = 0, squares = 0;
    for (int i = 0; i < COLUMNS; ++i) {
      s[i] = x[row * COLUMNS + i] + (residual != NULL ? residual[row * COLUMNS + i] : 0);
      mean += s[i] / (double)COLUMNS;
    }
    if (rms) mean = 0;
    for (int i = 0; i < COLUMNS; ++i) squares += (s[i] - mean) * (s[i] - mean) / COLUMNS;
    const double rstd = 1 / sqrt(squares + epsilon);
    result->mean[row] = (float)mean;
    result->rstd[row] = (float)rstd;
    for (int i = 0; i < COLUMNS; ++i) {
      result->y[row * COLUMNS + i] = (float)((s[i] - mean) * rstd * (gamma != NULL ? gamma[i] : 1) +
                                             (beta != NULL ? beta[i] : 0));
    }
  }
}

void check_norm(rung_context* context) {
  float x[SIZE], residual[SIZE], gamma[COLUMNS], beta[COLUMNS];
  static Result got, wanted;
  const int64_t shape[2] = {ROWS, COLUMNS}, columns[1] = {COLUMNS}, rows[1] = {ROWS};
  fill(x, SIZE);
  for (int i = 0; i < SIZE; ++i) residual[i] = 0.25f * (float)(i % 5);
  for (int i = 0; i < COLUMNS; ++i) gamma[i] = 1 + (float)i, beta[i] = 3 - (float)i;
  const rung_tensor tx = tensor_of(x, RUNG_F32, 2, shape);
  const rung_tensor ty = tensor_of(got.y, RUNG_F32, 2, shape);
  const rung_tensor tgamma = tensor_of(gamma, RUNG_F32, 1, columns);
  const rung_tensor tbeta = tensor_of(beta, RUNG_F32, 1, columns);
  const rung_tensor tresidual = tensor_of(residual, RUNG_F32, 2, shape);
  const rung_tensor tsum = tensor_of(got.sum, RUNG_F32, 2, shape);
  const rung_tensor tmean = tensor_of(got.mean, RUNG_F32, 1, rows);
  const rung_tensor trstd = tensor_of(got.rstd, RUNG_F32, 1, rows);

  CHECK(rung_layer_norm(context, &tx, &ty, NULL) == RUNG_OK);
  expect(x, NULL, NULL, NULL, 1e-5, 0, &wanted);
  SAME(got.y, wanted.y, SIZE, 1e-5);
  CHECK(rung_rms_norm(context, &tx, &ty, NULL) == RUNG_OK);
  expect(x, NULL, NULL, NULL, 1e-5, 1, &wanted);
  SAME(got.y, wanted.y, SIZE, 1e-5);

  rung_norm_options options;
  CHECK(rung_norm_options_init(&options, sizeof options) == RUNG_OK);
  CHECK(options.axis == -1 && options.axes == 1 && options.epsilon == 1e-5);
  CHECK(options.gamma == NULL && options.beta == NULL && options.residual == NULL);
  CHECK(options.sum == NULL && options.mean == NULL && options.rstd == NULL);
  options.epsilon = 0.5;
  options.gamma = &tgamma;
  options.beta = &tbeta;
  options.residual = &tresidual;
  options.sum = &tsum;
  options.rstd = &trstd;
  for (int rms = 0; rms <= 1; ++rms) {
    options.mean = rms ? NULL : &tmean;
    memset(&got, 0, sizeof got);
    CHECK((rms ? rung_rms_norm : rung_layer_norm)(context, &tx, &ty, &options) == RUNG_OK);
    expect(x, residual, gamma, beta, 0.5, rms, &wanted);
    SAME(got.y, wanted.y, SIZE, 1e-5);
    SAME(got.sum, wanted.sum, SIZE, 0);
    SAME(got.rstd, wanted.rstd, ROWS, 1e-5);
    SAME(got.mean, wanted.mean, ROWS, 1e-5);
  }

  /* Both axes of 3 x 6 together are the last one of 1 x 18. */
  float flat[SIZE];
  const int64_t flat_shape[2] = {1, SIZE};
  const rung_tensor tflat_x = tensor_of(x, RUNG_F32, 2, flat_shape);
  const rung_tensor tflat = tensor_of(flat, RUNG_F32, 2, flat_shape);
  CHECK(rung_norm_options_init(&options, sizeof options) == RUNG_OK);
  CHECK(rung_layer_norm(context, &tflat_x, &tflat, &options) == RUNG_OK);
  options.axis = 0;
  options.axes = 2;
  CHECK(rung_layer_norm(context, &tx, &ty, &options) == RUNG_OK);
  SAME(got.y, flat, SIZE, 1e-5);

  CHECK_OPTIONS(rung_norm_options, rung_layer_norm(context, &tx, &ty, options));
  CHECK_OPTIONS(rung_norm_options, rung_rms_norm(context, &tx, &ty, options));
  options.axes = 3;
  FAILS(rung_layer_norm(context, &tx, &ty, &options), RUNG_INVALID_ARGUMENT, "axes", "3");
  CHECK(rung_norm_options_init(&options, sizeof options) == RUNG_OK);
  options.sum = &tsum;
  FAILS(rung_layer_norm(context, &tx, &ty, &options), RUNG_INVALID_ARGUMENT, "sum", "residual");
  options.sum = NULL;
  options.mean = &tmean;
  FAILS(rung_rms_norm(context, &tx, &ty, &options), RUNG_INVALID_ARGUMENT, "mean", "");
  options.mean = NULL;
  rung_tensor bad = tgamma;
  bad.dtype = (rung_dtype)11;
  options.gamma = &bad;
  FAILS(rung_layer_norm(context, &tx, &ty, &options), RUNG_INVALID_ARGUMENT, "dtype of gamma is 11",
        "0 to 10");
  bad.dtype = RUNG_F64;
  FAILS(rung_layer_norm(context, &tx, &ty, &options), RUNG_INVALID_ARGUMENT, "gamma is f64", "f32");
  FAILS(rung_layer_norm(NULL, &tx, &ty, NULL), RUNG_INVALID_ARGUMENT, "context", "NULL");
  FAILS(rung_layer_norm(context, NULL, &ty, NULL), RUNG_INVALID_ARGUMENT, "x is", "NULL");
  FAILS(rung_rms_norm(context, &tx, NULL, NULL), RUNG_INVALID_ARGUMENT, "y is", "NULL");
}
