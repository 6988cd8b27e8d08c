/* SPDX-License-Identifier: Apache-2.0
 * pool in C: each kind, padding, indices, bias and activation, extents, and wrong calls. */
#include <math.h>

#include "tests/c_api/check.h"

void check_pool(rung_context* context);

enum { CHANNELS = 2, IN = 5, OUT = 3, SIZE = CHANNELS * IN * IN, RESULTS = CHANNELS * OUT * OUT };

/* Pools by definition: 3 x 3, stride 2, padding 1; weights may be NULL. */
static void expect(const float* x, rung_pooling kind, const float* weights, float* y,
                   int64_t* indices) {
  for (int at = 0; at < RESULTS; ++at) {
    const int c = at / (OUT * OUT), oh = at / OUT % OUT, ow = at % OUT;
    double max = -1e30, sum = 0, squares = 0, total = 0;
    for (int i = 0; i < 3; ++i) {
      for (int j = 0; j < 3; ++j) {
        const int h = 2 * oh - 1 + i, w = 2 * ow - 1 + j;
        const double weight = weights != NULL ? weights[3 * i + j] : 1;
        total += weight;
        if (h < 0 || h >= IN || w < 0 || w >= IN) continue;
        const double v = x[(c * IN + h) * IN + w];
        if (v > max) {
          max = v;
          indices[at] = h * IN + w;
        }
        sum += weight * v;
        squares += v * v;
      }
    }
    y[at] = (float)(kind == RUNG_POOLING_MAX  ? max
                    : kind == RUNG_POOLING_L2 ? sqrt(squares)
                                              : sum / total);
  }
}

void check_pool(rung_context* context) {
  const int64_t in[4] = {1, CHANNELS, IN, IN}, out[4] = {1, CHANNELS, OUT, OUT};
  const int64_t window[2] = {3, 3}, channels[1] = {CHANNELS};
  float x[SIZE], y[RESULTS], expected[RESULTS], weights[9], bias[CHANNELS] = {1, -1};
  int64_t indices[RESULTS], positions[RESULTS];
  fill(x, SIZE);
  for (int i = 0; i < 9; ++i) weights[i] = (float)(1 + i % 4);
  const rung_tensor tx = tensor_of(x, RUNG_F32, 4, in), ty = tensor_of(y, RUNG_F32, 4, out);
  const rung_tensor tw = tensor_of(weights, RUNG_F32, 2, window);
  const rung_tensor tb = tensor_of(bias, RUNG_F32, 1, channels);
  const rung_tensor ti = tensor_of(indices, RUNG_I64, 4, out);

  rung_pool_options options;
  CHECK(rung_pool_options_init(&options, sizeof options) == RUNG_OK);
  CHECK(options.kind == RUNG_POOLING_MAX && options.kernel[0] == 1 && options.stride[1] == 0 &&
        options.dilation[1] == 1 && options.count_padding == 1);
  options.kernel[0] = options.kernel[1] = 3;
  options.stride[0] = options.stride[1] = 2;
  options.padding[0] = options.padding[1] = 1;
  for (int kind = RUNG_POOLING_MAX; kind <= RUNG_POOLING_WEIGHTED; ++kind) {
    options.kind = (rung_pooling)kind;
    options.indices = kind == RUNG_POOLING_MAX ? &ti : NULL;
    options.weights = kind == RUNG_POOLING_WEIGHTED ? &tw : NULL;
    CHECK(rung_pool(context, &tx, &ty, &options) == RUNG_OK);
    expect(x, options.kind, options.weights != NULL ? weights : NULL, expected, positions);
    SAME(y, expected, RESULTS, 1e-5);
    if (kind <= RUNG_POOLING_AVERAGE) { /* by its own name, whatever options.kind is */
      memcpy(expected, y, sizeof y);
      memset(y, 0xff, sizeof y);
      options.kind = RUNG_POOLING_L2;
      CHECK((kind == RUNG_POOLING_MAX ? rung_max_pool : rung_average_pool)(context, &tx, &ty,
                                                                           &options) == RUNG_OK);
      SAME(y, expected, RESULTS, 0);
    }
    if (kind != RUNG_POOLING_MAX) continue;
    for (int i = 0; i < RESULTS; ++i) CHECK(indices[i] == positions[i]);
  }

  options.bias = &tb;
  options.activation = RUNG_ACTIVATION_RELU;
  CHECK(rung_pool(context, &tx, &ty, &options) == RUNG_OK);
  for (int i = 0; i < RESULTS; ++i) {
    expected[i] += bias[i / (OUT * OUT)];
    if (expected[i] < 0) expected[i] = 0;
  }
  SAME(y, expected, RESULTS, 1e-5);

  /* Windows of one element: a copy. */
  float same[SIZE];
  const rung_tensor ts = tensor_of(same, RUNG_F32, 4, in);
  CHECK(rung_pool(context, &tx, &ts, NULL) == RUNG_OK);
  SAME(same, x, SIZE, 0);
  CHECK_OPTIONS(rung_pool_options, rung_pool(context, &tx, &ts, options));

  int64_t extent = 0;
  CHECK(rung_pooled_extent(112, 3, 2, 1, 1, 0, &extent) == RUNG_OK && extent == 56);
  CHECK(rung_pooled_extent(7, 2, 0, 0, 1, 1, &extent) == RUNG_OK && extent == 4);
  FAILS(rung_pooled_extent(1, 2, 1, 0, 1, 0, &extent), RUNG_INVALID_ARGUMENT, "span 2", "up to 1");
  FAILS(rung_pooled_extent(7, 2, 1, 0, 1, 0, NULL), RUNG_INVALID_ARGUMENT, "pooled is", "NULL");

  options.padding[1] = 2;
  FAILS(rung_pool(context, &tx, &ty, &options), RUNG_INVALID_ARGUMENT, "padding 2", "span 3");
  options.kind = (rung_pooling)7;
  FAILS(rung_pool(context, &tx, &ty, &options), RUNG_INVALID_ARGUMENT, "kind is 7", "0 to 3");
  FAILS(rung_pool(NULL, &tx, &ty, NULL), RUNG_INVALID_ARGUMENT, "context", "NULL");
  FAILS(rung_pool(context, NULL, &ty, NULL), RUNG_INVALID_ARGUMENT, "x is", "NULL");
  FAILS(rung_pool(context, &tx, NULL, NULL), RUNG_INVALID_ARGUMENT, "y is", "NULL");
}
