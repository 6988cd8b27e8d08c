/* SPDX-License-Identifier: Apache-2.0
 * histogram in C: whole numbers, a range, edges, counts that accumulate. */
#include "tests/c_api/check.h"

void check_histogram(rung_context* context);

void check_histogram(rung_context* context) {
  uint8_t pixels[8] = {0, 1, 1, 3, 3, 3, 200, 4};
  float values[5] = {-1, -0.5f, 0, 0.75f, 1};
  float steps[4] = {-1, -0.25f, 0.5f, 1};
  int32_t counts[4] = {9, 9, 9, 9};
  const int64_t eight[1] = {8}, five[1] = {5}, four[1] = {4}, three[1] = {3};
  const rung_tensor x = tensor_of(pixels, RUNG_U8, 1, eight);
  const rung_tensor reals = tensor_of(values, RUNG_F32, 1, five);
  const rung_tensor edges = tensor_of(steps, RUNG_F32, 1, four);
  const rung_tensor y = tensor_of(counts, RUNG_I32, 1, four);
  const rung_tensor y3 = tensor_of(counts, RUNG_I32, 1, three);

  CHECK(rung_histogram(context, &x, &y, NULL) == RUNG_OK);
  CHECK(counts[0] == 1 && counts[1] == 2 && counts[2] == 0 && counts[3] == 3);

  rung_histogram_options options;
  CHECK(rung_histogram_options_init(&options, sizeof options) == RUNG_OK);
  CHECK(options.low == 0 && options.high == 0 && options.edges == NULL && !options.accumulate);
  options.accumulate = 1;
  CHECK(rung_histogram(context, &x, &y, &options) == RUNG_OK);
  CHECK(counts[0] == 2 && counts[1] == 4 && counts[2] == 0 && counts[3] == 6);

  options.accumulate = 0;
  options.low = -1;
  options.high = 1;
  CHECK(rung_histogram(context, &reals, &y, &options) == RUNG_OK);
  CHECK(counts[0] == 1 && counts[1] == 1 && counts[2] == 1 && counts[3] == 2);

  options.low = 0;
  options.high = 0;
  options.edges = &edges;
  CHECK(rung_histogram(context, &reals, &y3, &options) == RUNG_OK);
  CHECK(counts[0] == 2 && counts[1] == 1 && counts[2] == 2);

  CHECK_OPTIONS(rung_histogram_options, rung_histogram(context, &x, &y, options));
  FAILS(rung_histogram(context, &reals, &y, &options), RUNG_INVALID_ARGUMENT, "edges", "4");
  options.edges = NULL;
  options.low = 2;
  FAILS(rung_histogram(context, &reals, &y, &options), RUNG_INVALID_ARGUMENT, "low", "2");
  FAILS(rung_histogram(NULL, &x, &y, NULL), RUNG_INVALID_ARGUMENT, "context", "NULL");
  FAILS(rung_histogram(context, NULL, &y, NULL), RUNG_INVALID_ARGUMENT, "x is", "NULL");
  FAILS(rung_histogram(context, &x, NULL, NULL), RUNG_INVALID_ARGUMENT, "counts is", "NULL");
  rung_tensor bad = y;
  bad.dtype = RUNG_F32;
  FAILS(rung_histogram(context, &x, &bad, NULL), RUNG_INVALID_ARGUMENT, "counts is f32", "i32");
}
