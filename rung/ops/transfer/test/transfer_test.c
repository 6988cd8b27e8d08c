/* SPDX-License-Identifier: Apache-2.0
 * transfer in C: on the simulated GPU or a real one; a CPU has none. */
#include <math.h>

#include "tests/c_api/check.h"

void check_transfer(rung_context* context);

void check_transfer(rung_context* context) {
  float x[100], y[100], expected[100];
  const int64_t shape[1] = {100};
  fill(x, 100);
  const rung_tensor tx = tensor_of(x, RUNG_F32, 1, shape), ty = tensor_of(y, RUNG_F32, 1, shape);
  rung_transfer_options options;
  CHECK(rung_transfer_options_init(&options, sizeof options) == RUNG_OK);
  CHECK(options.function == RUNG_ELEMENTWISE_RELU);
  if (rung_transfer(context, &tx, &ty, NULL) == RUNG_UNSUPPORTED) {
    CHECK(strstr(rung_last_error(), "cpu") != NULL);
  } else {
    for (int i = 0; i < 100; ++i) expected[i] = x[i] > 0 ? x[i] : 0;
    SAME(y, expected, 100, 0);
    options.function = RUNG_ELEMENTWISE_EXP;
    CHECK(rung_transfer(context, &tx, &ty, &options) == RUNG_OK);
    for (int i = 0; i < 100; ++i) expected[i] = expf(x[i]);
    SAME(y, expected, 100, 1e-6);
    CHECK_OPTIONS(rung_transfer_options, rung_transfer(context, &tx, &ty, options));
  }
  options.function = RUNG_ELEMENTWISE_ADD;
  FAILS(rung_transfer(context, &tx, &ty, &options), RUNG_INVALID_ARGUMENT, "add", "relu");
  options.function = (rung_elementwise_function)-1;
  FAILS(rung_transfer(context, &tx, &ty, &options), RUNG_INVALID_ARGUMENT, "function is -1",
        "0 to 12");
  FAILS(rung_transfer(NULL, &tx, &ty, NULL), RUNG_INVALID_ARGUMENT, "context", "NULL");
  FAILS(rung_transfer(context, NULL, &ty, NULL), RUNG_INVALID_ARGUMENT, "x is", "NULL");
  FAILS(rung_transfer(context, &tx, NULL, NULL), RUNG_INVALID_ARGUMENT, "y is", "NULL");
  rung_tensor bad = ty;
  bad.dtype = RUNG_F64;
  FAILS(rung_transfer(context, &tx, &bad, NULL), RUNG_INVALID_ARGUMENT, "f32", "f64");
}
