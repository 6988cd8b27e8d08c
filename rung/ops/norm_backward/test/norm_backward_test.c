/* SPDX-License-Identifier: Apache-2.0
 * Gradients of layer norm and RMS norm in C, with every optional tensor. */
#include <math.h>

#include "tests/c_api/check.h"

void check_norm_backward(rung_context* context);

enum { ROWS = 3, COLUMNS = 6, SIZE = ROWS * COLUMNS };

static float x[SIZE], dy[SIZE], gamma_data[COLUMNS], mean[ROWS], rstd[ROWS];
static float wanted_dx[SIZE], wanted_dgamma[COLUMNS], wanted_dbeta[COLUMNS];

/* Applies the formulas of norm_backward.hpp; `with_gamma` 0: ones. Fills mean and rstd too. */
static void expect(double epsilon, int rms, int with_gamma) {
  memset(wanted_dgamma, 0, sizeof wanted_dgamma);
  memset(wanted_dbeta, 0, sizeof wanted_dbeta);
  for (int row = 0; row < ROWS; ++row) {
    const float* const s = x + row * COLUMNS;
    double average = 0, squares = 0, mean_g = 0, mean_gz = 0, z[COLUMNS], g[COLUMNS];
    for (int i = 0; i < COLUMNS; ++i) average += rms ? 0 : s[i] / (double)COLUMNS;
    for (int i = 0; i < COLUMNS; ++i) squares += (s[i] - average) * (s[i] - average) / COLUMNS;
    const double scale = 1 / sqrt(squares + epsilon);
    mean[row] = (float)average;
    rstd[row] = (float)scale;
    for (int i = 0; i < COLUMNS; ++i) {
      const double gradient = dy[row * COLUMNS + i];
      z[i] = (s[i] - average) * scale;
      g[i] = gradient * (with_gamma ? gamma_data[i] : 1);
      mean_g += rms ? 0 : g[i] / COLUMNS;
      mean_gz += g[i] * z[i] / COLUMNS;
      wanted_dgamma[i] += (float)(gradient * z[i]);
      wanted_dbeta[i] += (float)gradient;
    }
    for (int i = 0; i < COLUMNS; ++i) {
      wanted_dx[row * COLUMNS + i] = (float)(scale * (g[i] - mean_g - z[i] * mean_gz));
    }
  }
}

void check_norm_backward(rung_context* context) {
  float dx[SIZE], dgamma[COLUMNS], dbeta[COLUMNS];
  const int64_t shape[2] = {ROWS, COLUMNS}, columns[1] = {COLUMNS}, rows[1] = {ROWS};
  fill(x, SIZE);
  for (int i = 0; i < SIZE; ++i) dy[i] = (float)(i % 7) * 0.5f - 1;
  for (int i = 0; i < COLUMNS; ++i) gamma_data[i] = 2 - 0.5f * (float)i;
  const rung_tensor tx = tensor_of(x, RUNG_F32, 2, shape), tdy = tensor_of(dy, RUNG_F32, 2, shape);
  const rung_tensor tdx = tensor_of(dx, RUNG_F32, 2, shape);
  const rung_tensor tgamma = tensor_of(gamma_data, RUNG_F32, 1, columns);
  const rung_tensor tdgamma = tensor_of(dgamma, RUNG_F32, 1, columns);
  const rung_tensor tdbeta = tensor_of(dbeta, RUNG_F32, 1, columns);
  const rung_tensor tmean = tensor_of(mean, RUNG_F32, 1, rows);
  const rung_tensor trstd = tensor_of(rstd, RUNG_F32, 1, rows);

  for (int rms = 0; rms <= 1; ++rms) {
    expect(1e-5, rms, 0);
    CHECK((rms ? rung_rms_norm_backward : rung_layer_norm_backward)(context, &tdy, &tx, &tdx,
                                                                    NULL) == RUNG_OK);
    SAME(dx, wanted_dx, SIZE, 1e-5);
  }

  rung_norm_backward_options options;
  CHECK(rung_norm_backward_options_init(&options, sizeof options) == RUNG_OK);
  CHECK(options.axis == -1 && options.axes == 1 && options.epsilon == 1e-5);
  CHECK(options.gamma == NULL && options.mean == NULL && options.rstd == NULL);
  CHECK(options.dgamma == NULL && options.dbeta == NULL);
  options.epsilon = 0.5;
  options.gamma = &tgamma;
  options.dgamma = &tdgamma;
  options.dbeta = &tdbeta;
  for (int kind = 0; kind < 4; ++kind) { /* with and without mean and rstd */
    const int rms = kind & 1, given = kind & 2;
    expect(0.5, rms, 1);
    options.mean = given && !rms ? &tmean : NULL;
    options.rstd = given ? &trstd : NULL;
    options.epsilon = given ? 1e-5 : 0.5; /* of no effect where rstd is given */
    CHECK((rms ? rung_rms_norm_backward : rung_layer_norm_backward)(context, &tdy, &tx, &tdx,
                                                                    &options) == RUNG_OK);
    SAME(dx, wanted_dx, SIZE, 1e-5);
    SAME(dgamma, wanted_dgamma, COLUMNS, 1e-5);
    SAME(dbeta, wanted_dbeta, COLUMNS, 1e-5);
  }

  CHECK_OPTIONS(rung_norm_backward_options,
                rung_layer_norm_backward(context, &tdy, &tx, &tdx, options));
  CHECK_OPTIONS(rung_norm_backward_options,
                rung_rms_norm_backward(context, &tdy, &tx, &tdx, options));
  options.axis = 2;
  FAILS(rung_layer_norm_backward(context, &tdy, &tx, &tdx, &options), RUNG_INVALID_ARGUMENT, "axis",
        "2");
  options.axis = -1;
  options.mean = &tmean;
  options.rstd = NULL;
  FAILS(rung_layer_norm_backward(context, &tdy, &tx, &tdx, &options), RUNG_INVALID_ARGUMENT, "mean",
        "rstd");
  FAILS(rung_layer_norm_backward(NULL, &tdy, &tx, &tdx, NULL), RUNG_INVALID_ARGUMENT, "context",
        "NULL");
  FAILS(rung_layer_norm_backward(context, NULL, &tx, &tdx, NULL), RUNG_INVALID_ARGUMENT, "dy is",
        "NULL");
  FAILS(rung_rms_norm_backward(context, &tdy, NULL, &tdx, NULL), RUNG_INVALID_ARGUMENT, "x is",
        "NULL");
  FAILS(rung_rms_norm_backward(context, &tdy, &tx, NULL, NULL), RUNG_INVALID_ARGUMENT, "dx is",
        "NULL");
  rung_tensor bad = tdy;
  bad.dtype = RUNG_F16;
  FAILS(rung_layer_norm_backward(context, &bad, &tx, &tdx, NULL), RUNG_INVALID_ARGUMENT, "dy",
        "f16");
}
