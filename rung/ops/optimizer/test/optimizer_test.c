/* SPDX-License-Identifier: Apache-2.0
 * optimizer in C: steps of SGD with momentum and of AdamW against their formulas, clipping, and
 * wrong calls. */
#include <math.h>

#include "tests/c_api/check.h"

void check_optimizer(rung_context* context);

void check_optimizer(rung_context* context) {
  enum { SIZE = 50 };
  const int64_t shape[2] = {5, 10};
  float p[SIZE], g[SIZE], m[SIZE] = {0}, v[SIZE] = {0}, expected[SIZE], norm = 0;
  fill(p, SIZE);
  fill(g, SIZE);
  const rung_tensor tp = tensor_of(p, RUNG_F32, 2, shape), tg = tensor_of(g, RUNG_F32, 2, shape);
  const rung_tensor tm = tensor_of(m, RUNG_F32, 2, shape), tv = tensor_of(v, RUNG_F32, 2, shape);
  const rung_tensor tn = tensor_of(&norm, RUNG_F32, 0, NULL);
  double square = 0;
  for (int i = 0; i < SIZE; ++i) square += (double)g[i] * g[i];

  rung_optimizer_options options;
  CHECK(rung_optimizer_options_init(&options, sizeof options) == RUNG_OK);
  CHECK(options.kind == RUNG_OPTIMIZER_SGD && options.beta2 == 0.999 && options.step == 1);
  options.learning_rate = 0.5;
  options.momentum = 0.75;
  options.max_norm = 1;
  options.first_moment = &tm;
  options.norm = &tn;
  for (int i = 0; i < SIZE; ++i) {
    const double clipped = g[i] / sqrt(square); /* two steps: m is clipped, then 1.75 of that */
    expected[i] = (float)(p[i] - 0.5 * clipped - 0.5 * 1.75 * clipped);
  }
  CHECK(rung_optimizer(context, &tp, &tg, &options) == RUNG_OK);
  CHECK(rung_optimizer(context, &tp, &tg, &options) == RUNG_OK);
  SAME(p, expected, SIZE, 1e-6);
  options.kind = RUNG_OPTIMIZER_ADAM; /* the name decides */
  for (int i = 0; i < SIZE; ++i)
    expected[i] = (float)(p[i] - 0.5 * (0.75 * m[i] + g[i] / sqrt(square)));
  CHECK(rung_sgd_step(context, &tp, &tg, &options) == RUNG_OK);
  SAME(p, expected, SIZE, 1e-6);
  const float expected_norm = (float)sqrt(square);
  SAME(&norm, &expected_norm, 1, 1e-6);

  CHECK(rung_optimizer_options_init(&options, sizeof options) == RUNG_OK);
  options.kind = RUNG_OPTIMIZER_ADAM;
  options.learning_rate = 0.125;
  options.weight_decay = 0.5;
  options.decoupled = 1;
  options.first_moment = &tm;
  options.second_moment = &tv;
  memset(m, 0, sizeof m);
  for (int i = 0; i < SIZE; ++i) { /* adam's first step has the gradient's sign */
    const double step = g[i] / (fabs((double)g[i]) + 1e-8);
    expected[i] = (float)(p[i] * (1 - 0.125 * 0.5) - 0.125 * step);
  }
  CHECK(rung_optimizer(context, &tp, &tg, &options) == RUNG_OK);
  SAME(p, expected, SIZE, 1e-5);
  options.kind = RUNG_OPTIMIZER_SGD; /* the name decides */
  memset(m, 0, sizeof m);
  memset(v, 0, sizeof v);
  for (int i = 0; i < SIZE; ++i) {
    const double step = g[i] / (fabs((double)g[i]) + 1e-8);
    expected[i] = (float)(p[i] * (1 - 0.125 * 0.5) - 0.125 * step);
  }
  CHECK(rung_adam_step(context, &tp, &tg, &options) == RUNG_OK);
  SAME(p, expected, SIZE, 1e-5);
  options.kind = RUNG_OPTIMIZER_ADAM;

  CHECK_OPTIONS(rung_optimizer_options, rung_optimizer(context, &tp, &tg, options));
  options.second_moment = NULL;
  FAILS(rung_optimizer(context, &tp, &tg, &options), RUNG_INVALID_ARGUMENT, "second_moment",
        "left out");
  FAILS(rung_optimizer(NULL, &tp, &tg, NULL), RUNG_INVALID_ARGUMENT, "context", "NULL");
  FAILS(rung_optimizer(context, NULL, &tg, NULL), RUNG_INVALID_ARGUMENT, "parameters is", "NULL");
  FAILS(rung_optimizer(context, &tp, NULL, NULL), RUNG_INVALID_ARGUMENT, "gradients is", "NULL");
}
