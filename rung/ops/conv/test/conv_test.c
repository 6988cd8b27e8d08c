/* SPDX-License-Identifier: Apache-2.0
 * conv in C: two dimensions, groups, bias and activation, one dimension, extents, wrong calls. */
#include "tests/c_api/check.h"

void check_conv(rung_context* context);

enum { CHANNELS = 4, IN = 6, FILTERS = 6, OUT = 3, SIZE = CHANNELS * IN * IN };

/* 3 x 3, stride 2, padding 1, two groups, by definition. */
static void expect(const float* x, const float* w, float* y) {
  for (int at = 0; at < FILTERS * OUT * OUT; ++at) {
    const int k = at / (OUT * OUT), oh = at / OUT % OUT, ow = at % OUT;
    double sum = 0;
    for (int c = 0; c < 2; ++c) {
      for (int i = 0; i < 3; ++i) {
        for (int j = 0; j < 3; ++j) {
          const int h = 2 * oh - 1 + i, v = 2 * ow - 1 + j;
          if (h < 0 || h >= IN || v < 0 || v >= IN) continue;
          sum += (double)w[((k * 2 + c) * 3 + i) * 3 + j] * x[((k / 3 * 2 + c) * IN + h) * IN + v];
        }
      }
    }
    y[at] = (float)sum;
  }
}

void check_conv(rung_context* context) {
  const int64_t in[4] = {1, CHANNELS, IN, IN}, filters[4] = {FILTERS, 2, 3, 3};
  const int64_t out[4] = {1, FILTERS, OUT, OUT}, many[1] = {FILTERS};
  float x[SIZE], w[FILTERS * 18], y[FILTERS * OUT * OUT], expected[FILTERS * OUT * OUT];
  float bias[FILTERS] = {1, -1, 0.5f, 2, -2, 0};
  fill(x, SIZE);
  fill(w, FILTERS * 18);
  const rung_tensor tx = tensor_of(x, RUNG_F32, 4, in), tw = tensor_of(w, RUNG_F32, 4, filters);
  const rung_tensor ty = tensor_of(y, RUNG_F32, 4, out), tb = tensor_of(bias, RUNG_F32, 1, many);

  rung_conv_options options;
  CHECK(rung_conv_options_init(&options, sizeof options) == RUNG_OK);
  CHECK(options.stride[1] == 1 && options.padding[0] == 0 && options.dilation[2] == 1 &&
        options.groups == 1 && options.winograd == 0 && options.bias == NULL);
  options.stride[0] = options.stride[1] = 2;
  options.padding[0] = options.padding[1] = 1;
  options.groups = 2;
  CHECK(rung_conv(context, &tx, &tw, &ty, &options) == RUNG_OK);
  expect(x, w, expected);
  SAME(y, expected, FILTERS * OUT * OUT, 1e-5);

  options.bias = &tb;
  options.activation = RUNG_ACTIVATION_RELU;
  CHECK(rung_conv(context, &tx, &tw, &ty, &options) == RUNG_OK);
  for (int i = 0; i < FILTERS * OUT * OUT; ++i) {
    expected[i] += bias[i / (OUT * OUT)];
    if (expected[i] < 0) expected[i] = 0;
  }
  SAME(y, expected, FILTERS * OUT * OUT, 1e-5);

  /* One dimension, a filter of two taps: differences. */
  float line[5] = {1, 4, 9, 16, 25}, taps[2] = {-1, 1}, steps[4];
  const float wanted[4] = {3, 5, 7, 9};
  const int64_t of_line[3] = {1, 1, 5}, of_taps[3] = {1, 1, 2}, of_steps[3] = {1, 1, 4};
  const rung_tensor tl = tensor_of(line, RUNG_F32, 3, of_line);
  const rung_tensor tt = tensor_of(taps, RUNG_F32, 3, of_taps);
  const rung_tensor ts = tensor_of(steps, RUNG_F32, 3, of_steps);
  CHECK(rung_conv(context, &tl, &tt, &ts, NULL) == RUNG_OK);
  SAME(steps, wanted, 4, 0);
  CHECK_OPTIONS(rung_conv_options, rung_conv(context, &tl, &tt, &ts, options));

  int64_t extent = 0;
  CHECK(rung_convolved_extent(224, 7, 2, 3, 1, &extent) == RUNG_OK && extent == 112);
  FAILS(rung_convolved_extent(1, 2, 1, 0, 1, &extent), RUNG_INVALID_ARGUMENT, "spans 2", "up to 1");
  FAILS(rung_convolved_extent(7, 2, 1, 0, 1, NULL), RUNG_INVALID_ARGUMENT, "convolved is", "NULL");

  options.groups = 3;
  FAILS(rung_conv(context, &tx, &tw, &ty, &options), RUNG_INVALID_ARGUMENT, "groups is 3",
        "divisors");
  options.activation = (rung_activation)7;
  FAILS(rung_conv(context, &tx, &tw, &ty, &options), RUNG_INVALID_ARGUMENT, "activation is 7",
        "0 to 4");
  FAILS(rung_conv(NULL, &tx, &tw, &ty, NULL), RUNG_INVALID_ARGUMENT, "context", "NULL");
  FAILS(rung_conv(context, NULL, &tw, &ty, NULL), RUNG_INVALID_ARGUMENT, "x is", "NULL");
  FAILS(rung_conv(context, &tx, NULL, &ty, NULL), RUNG_INVALID_ARGUMENT, "w is", "NULL");
  FAILS(rung_conv(context, &tx, &tw, NULL, NULL), RUNG_INVALID_ARGUMENT, "y is", "NULL");
}
