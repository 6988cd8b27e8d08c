/* SPDX-License-Identifier: Apache-2.0
 * loss in C: cross entropy and its gradient against their formulas, the other kinds, and wrong
 * calls. */
#include <math.h>

#include "tests/c_api/check.h"

void check_loss(rung_context* context);

enum { ROWS = 5, CLASSES = 7, SIZE = ROWS * CLASSES };

void check_loss(rung_context* context) {
  const int64_t shape[2] = {ROWS, CLASSES}, rows[1] = {ROWS};
  int32_t labels[ROWS] = {3, 0, 6, 255, 1};
  float x[SIZE], target[SIZE], dx[SIZE], losses[ROWS], result, expected[SIZE],
      expected_losses[ROWS];
  fill(x, SIZE);
  fill(target, SIZE);
  const rung_tensor tx = tensor_of(x, RUNG_F32, 2, shape), tdx = tensor_of(dx, RUNG_F32, 2, shape);
  const rung_tensor tt = tensor_of(target, RUNG_F32, 2, shape);
  const rung_tensor tl = tensor_of(labels, RUNG_I32, 1, rows);
  const rung_tensor tr = tensor_of(&result, RUNG_F32, 0, NULL);
  const rung_tensor tlosses = tensor_of(losses, RUNG_F32, 1, rows);

  rung_loss_options options;
  CHECK(rung_loss_options_init(&options, sizeof options) == RUNG_OK);
  CHECK(options.kind == RUNG_LOSS_CROSS_ENTROPY && options.reduction == RUNG_LOSS_MEAN);
  CHECK(options.axis == -1 && options.margin == 1 && options.ignored_label == RUNG_NO_LABEL);
  options.smoothing = 0.25;
  options.ignored_label = 255;
  options.dx = &tdx;
  options.losses = &tlosses;
  CHECK(rung_loss(context, &tx, &tl, &tr, &options) == RUNG_OK);
  double mean = 0;
  for (int row = 0; row < ROWS; ++row) {
    double sum = 0, loss = 0;
    for (int c = 0; c < CLASSES; ++c) sum += exp(x[row * CLASSES + c]);
    for (int c = 0; c < CLASSES; ++c) {
      const int at = row * CLASSES + c;
      const double q = (c == labels[row] ? 0.75 : 0) + 0.25 / CLASSES, p = exp(x[at]) / sum;
      loss -= q * log(p);
      expected[at] = (float)(labels[row] == 255 ? 0 : (p - q) / (ROWS - 1));
    }
    expected_losses[row] = (float)(labels[row] == 255 ? 0 : loss);
    mean += expected_losses[row] / (ROWS - 1);
  }
  const float expected_result = (float)mean;
  SAME(&result, &expected_result, 1, 1e-5);
  SAME(losses, expected_losses, ROWS, 1e-5);
  SAME(dx, expected, SIZE, 1e-5);

  CHECK(rung_loss_options_init(&options, sizeof options) == RUNG_OK);
  options.kind = RUNG_LOSS_SQUARED;
  options.reduction = RUNG_LOSS_SUM;
  options.dx = &tdx;
  CHECK(rung_loss(context, &tx, &tt, &tr, &options) == RUNG_OK);
  for (int i = 0; i < SIZE; ++i) expected[i] = 2 * (x[i] - target[i]) / CLASSES;
  SAME(dx, expected, SIZE, 1e-5);

  /* Every kind by its own name, whatever options.kind is. */
  labels[3] = 2;
  typedef rung_status by_name(rung_context*, const rung_tensor*, const rung_tensor*,
                              const rung_tensor*, const rung_loss_options*);
  by_name* const named[] = {rung_cross_entropy, rung_hinge_loss, rung_squared_error};
  for (int kind = RUNG_LOSS_CROSS_ENTROPY; kind <= RUNG_LOSS_SQUARED; ++kind) {
    const rung_tensor* const wanted = kind == RUNG_LOSS_SQUARED ? &tt : &tl;
    options.kind = (rung_loss_kind)kind;
    CHECK(rung_loss(context, &tx, wanted, &tr, &options) == RUNG_OK);
    const float general = result;
    memcpy(expected, dx, sizeof dx);
    memset(dx, 0xff, sizeof dx);
    options.kind = (rung_loss_kind)((kind + 1) % 3);
    CHECK(named[kind](context, &tx, wanted, &tr, &options) == RUNG_OK);
    SAME(&result, &general, 1, 0);
    SAME(dx, expected, SIZE, 0);
  }
  CHECK(rung_loss_options_init(&options, sizeof options) == RUNG_OK);

  CHECK_OPTIONS(rung_loss_options, rung_loss(context, &tx, &tl, &tr, options));
  options.kind = (rung_loss_kind)3;
  FAILS(rung_loss(context, &tx, &tl, &tr, &options), RUNG_INVALID_ARGUMENT, "kind is 3", "0 to 2");
  FAILS(rung_loss(context, &tx, &tt, &tr, NULL), RUNG_INVALID_ARGUMENT, "target", "5");
  FAILS(rung_loss(NULL, &tx, &tl, &tr, NULL), RUNG_INVALID_ARGUMENT, "context", "NULL");
  FAILS(rung_loss(context, NULL, &tl, &tr, NULL), RUNG_INVALID_ARGUMENT, "x is", "NULL");
  FAILS(rung_loss(context, &tx, NULL, &tr, NULL), RUNG_INVALID_ARGUMENT, "target is", "NULL");
  FAILS(rung_loss(context, &tx, &tl, NULL, NULL), RUNG_INVALID_ARGUMENT, "result is", "NULL");
}
