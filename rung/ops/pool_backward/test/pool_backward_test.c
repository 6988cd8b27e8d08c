/* SPDX-License-Identifier: Apache-2.0
 * pool_backward in C: each kind on windows that do not overlap, and wrong calls. */
#include <math.h>

#include "tests/c_api/check.h"

void check_pool_backward(rung_context* context);

enum { IN = 4, OUT = 2, SIZE = IN * IN, RESULTS = OUT * OUT };

void check_pool_backward(rung_context* context) {
  const int64_t in[4] = {1, 1, IN, IN}, out[4] = {1, 1, OUT, OUT}, window[2] = {2, 2};
  float x[SIZE], y[RESULTS], dy[RESULTS] = {1, -2, 3, 4}, dx[SIZE], expected[SIZE];
  float weights[4] = {1, 2, 3, 4};
  int32_t indices[RESULTS];
  fill(x, SIZE);
  const rung_tensor tx = tensor_of(x, RUNG_F32, 4, in), ty = tensor_of(y, RUNG_F32, 4, out);
  const rung_tensor tdx = tensor_of(dx, RUNG_F32, 4, in), tdy = tensor_of(dy, RUNG_F32, 4, out);
  const rung_tensor ti = tensor_of(indices, RUNG_I32, 4, out);
  const rung_tensor tw = tensor_of(weights, RUNG_F32, 2, window);

  rung_pool_options forward;
  rung_pool_backward_options options;
  CHECK(rung_pool_options_init(&forward, sizeof forward) == RUNG_OK);
  CHECK(rung_pool_backward_options_init(&options, sizeof options) == RUNG_OK);
  CHECK(options.kind == RUNG_POOLING_MAX && options.kernel[1] == 1 && options.count_padding == 1);
  forward.kernel[0] = forward.kernel[1] = 2;
  options.kernel[0] = options.kernel[1] = 2;
  for (int kind = RUNG_POOLING_MAX; kind <= RUNG_POOLING_WEIGHTED; ++kind) {
    forward.kind = options.kind = (rung_pooling)kind;
    forward.indices = options.indices = kind == RUNG_POOLING_MAX ? &ti : NULL;
    forward.weights = options.weights = kind == RUNG_POOLING_WEIGHTED ? &tw : NULL;
    options.x = kind == RUNG_POOLING_L2 ? &tx : NULL;
    options.y = kind == RUNG_POOLING_L2 ? &ty : NULL;
    CHECK(rung_pool(context, &tx, &ty, &forward) == RUNG_OK);
    CHECK(rung_pool_backward(context, &tdy, &tdx, &options) == RUNG_OK);
    for (int at = 0; at < SIZE; ++at) {
      const int h = at / IN, w = at % IN, of = h / 2 * OUT + w / 2;
      const double share = kind == RUNG_POOLING_MAX       ? (x[at] == y[of] ? 1 : 0)
                           : kind == RUNG_POOLING_AVERAGE ? 0.25
                           : kind == RUNG_POOLING_L2      ? x[at] / y[of]
                                                          : weights[h % 2 * 2 + w % 2] / 10;
      expected[at] = (float)(dy[of] * share);
    }
    SAME(dx, expected, SIZE, 1e-5);
    if (kind > RUNG_POOLING_AVERAGE) continue;
    memcpy(expected, dx, sizeof dx); /* by its own name, whatever options.kind is */
    memset(dx, 0xff, sizeof dx);
    options.kind = RUNG_POOLING_L2;
    CHECK((kind == RUNG_POOLING_MAX ? rung_max_pool_backward : rung_average_pool_backward)(
              context, &tdy, &tdx, &options) == RUNG_OK);
    SAME(dx, expected, SIZE, 0);
  }

  /* Windows of one element: a copy. */
  options.kind = RUNG_POOLING_AVERAGE;
  options.weights = NULL;
  options.kernel[0] = options.kernel[1] = 1;
  CHECK(rung_pool_backward(context, &tx, &tdx, &options) == RUNG_OK);
  SAME(dx, x, SIZE, 0);
  int32_t own[SIZE];
  for (int i = 0; i < SIZE; ++i) own[i] = i;
  const rung_tensor to = tensor_of(own, RUNG_I32, 4, in);
  CHECK_OPTIONS(rung_pool_backward_options,
                (options->indices = &to, rung_pool_backward(context, &tx, &tdx, options)));

  options.kind = RUNG_POOLING_MAX;
  FAILS(rung_pool_backward(context, &tx, &tdx, &options), RUNG_INVALID_ARGUMENT, "indices",
        "left out");
  FAILS(rung_pool_backward(NULL, &tx, &tdx, NULL), RUNG_INVALID_ARGUMENT, "context", "NULL");
  FAILS(rung_pool_backward(context, NULL, &tdx, NULL), RUNG_INVALID_ARGUMENT, "dy is", "NULL");
  FAILS(rung_pool_backward(context, &tx, NULL, NULL), RUNG_INVALID_ARGUMENT, "dx is", "NULL");
}
