/* SPDX-License-Identifier: Apache-2.0
 * stencil in C: a mask, a window, vectors, edges, and wrong calls. */
#include "tests/c_api/check.h"

void check_stencil(rung_context* context);

void check_stencil(rung_context* context) {
  float x[4] = {1, 2, 3, 4}, w[3] = {1, 10, 100}, y[4], square[9] = {1, 2, 3, 4, 5, 6, 7, 8, 9};
  float sums[9];
  const float correlated[4] = {210, 321, 432, 43}, convolved[4] = {12, 123, 234, 340};
  const float clamped[4] = {211, 321, 432, 443}, windows[4] = {1, 3, 5, 7};
  const float box[9] = {12, 21, 16, 27, 45, 33, 24, 39, 28};
  const int64_t four[1] = {4}, three[1] = {3}, plane[2] = {3, 3}, two[1] = {2};
  const rung_tensor tx = tensor_of(x, RUNG_F32, 1, four), ty = tensor_of(y, RUNG_F32, 1, four);
  const rung_tensor tw = tensor_of(w, RUNG_F32, 1, three);
  CHECK(rung_stencil(context, &tx, &tw, &ty, NULL) == RUNG_OK);
  SAME(y, correlated, 4, 0);

  rung_stencil_options options;
  CHECK(rung_stencil_options_init(&options, sizeof options) == RUNG_OK);
  CHECK(options.edge == RUNG_EDGE_ZERO && options.scale == 1 && options.iterations == 1);
  options.convolution = 1;
  CHECK(rung_stencil(context, &tx, &tw, &ty, &options) == RUNG_OK);
  SAME(y, convolved, 4, 0);
  options.convolution = 0;
  options.edge = RUNG_EDGE_CLAMP;
  CHECK(rung_stencil(context, &tx, &tw, &ty, &options) == RUNG_OK);
  SAME(y, clamped, 4, 0);

  options.edge = RUNG_EDGE_ZERO;
  options.window = two;
  options.window_count = 1;
  CHECK(rung_stencil(context, &tx, NULL, &ty, &options) == RUNG_OK);
  SAME(y, windows, 4, 0);
  FAILS(rung_stencil(context, &tx, &tw, &ty, &options), RUNG_INVALID_ARGUMENT, "2 of mask",
        "one of them");
  options.window_count = 0;
  FAILS(rung_stencil(context, &tx, NULL, &ty, &options), RUNG_INVALID_ARGUMENT, "none of mask",
        "one of them");

  float ones[3] = {1, 1, 1};
  const rung_tensor tones = tensor_of(ones, RUNG_F32, 1, three);
  const rung_tensor tsquare = tensor_of(square, RUNG_F32, 2, plane);
  const rung_tensor tsums = tensor_of(sums, RUNG_F32, 2, plane);
  CHECK(rung_stencil_separable(context, &tsquare, &tones, &tones, NULL, &tsums, NULL) == RUNG_OK);
  SAME(sums, box, 9, 0);
  FAILS(rung_stencil_separable(context, &tsquare, &tones, NULL, &tones, &tsums, NULL),
        RUNG_INVALID_ARGUMENT, "through is given, down is not", "accepted");

  CHECK_OPTIONS(rung_stencil_options, rung_stencil(context, &tx, &tw, &ty, options));
  options.edge = (rung_stencil_edge)7;
  FAILS(rung_stencil(context, &tx, &tw, &ty, &options), RUNG_INVALID_ARGUMENT, "edge", "7");
  FAILS(rung_stencil(context, &tx, &tw, NULL, NULL), RUNG_INVALID_ARGUMENT, "y is", "NULL");
}
