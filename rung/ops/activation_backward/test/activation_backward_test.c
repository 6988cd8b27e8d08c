/* SPDX-License-Identifier: Apache-2.0
 * activation_backward in C: every function against its formula, and wrong calls. */
#include <math.h>

#include "tests/c_api/check.h"

void check_activation_backward(rung_context* context);

static double slope(rung_activation_function function, double v) {
  const double s = 1 / (1 + exp(-v));
  switch (function) {
    case RUNG_ACTIVATION_FUNCTION_SIGN:
      return fabs(v) <= 1;
    case RUNG_ACTIVATION_FUNCTION_SIGMOID:
      return v * (1 - v);
    case RUNG_ACTIVATION_FUNCTION_TANH:
      return 1 - v * v;
    case RUNG_ACTIVATION_FUNCTION_RELU:
      return v > 0;
    case RUNG_ACTIVATION_FUNCTION_GELU:
      return erfc(-v / sqrt(2.0)) / 2 + v * exp(-v * v / 2) / sqrt(8 * atan(1.0));
    case RUNG_ACTIVATION_FUNCTION_SILU:
      return s * (1 + v * (1 - s));
  }
  return 0;
}

typedef rung_status by_name(rung_context*, const rung_tensor*, const rung_tensor*,
                            const rung_tensor*);
static by_name* const named[] = {rung_sign_backward, rung_sigmoid_backward, rung_tanh_backward,
                                 rung_relu_backward, rung_gelu_backward,    rung_silu_backward};

void check_activation_backward(rung_context* context) {
  enum { SIZE = 77 };
  float saved[SIZE], dy[SIZE], dx[SIZE], expected[SIZE];
  const int64_t shape[2] = {7, 11};
  fill(saved, SIZE);
  fill(dy, SIZE);
  dy[0] = 3;
  const rung_tensor ts = tensor_of(saved, RUNG_F32, 2, shape);
  const rung_tensor tdy = tensor_of(dy, RUNG_F32, 2, shape);
  const rung_tensor tdx = tensor_of(dx, RUNG_F32, 2, shape);
  rung_activation_backward_options options;
  CHECK(rung_activation_backward_options_init(&options, sizeof options) == RUNG_OK);
  CHECK(options.function == RUNG_ACTIVATION_FUNCTION_RELU);
  for (int function = 0; function <= RUNG_ACTIVATION_FUNCTION_SILU; ++function) {
    options.function = (rung_activation_function)function;
    CHECK(rung_activation_backward(context, &ts, &tdy, &tdx, &options) == RUNG_OK);
    for (int i = 0; i < SIZE; ++i) expected[i] = (float)(dy[i] * slope(options.function, saved[i]));
    SAME(dx, expected, SIZE, 1e-6);
    memcpy(expected, dx, sizeof dx);
    memset(dx, 0xff, sizeof dx);
    CHECK(named[function](context, &ts, &tdy, &tdx) == RUNG_OK);
    SAME(dx, expected, SIZE, 0);
  }
  CHECK_OPTIONS(rung_activation_backward_options,
                rung_activation_backward(context, &ts, &tdy, &tdx, options));
  options.function = (rung_activation_function)6;
  FAILS(rung_activation_backward(context, &ts, &tdy, &tdx, &options), RUNG_INVALID_ARGUMENT,
        "function is 6", "0 to 5");
  FAILS(rung_activation_backward(NULL, &ts, &tdy, &tdx, NULL), RUNG_INVALID_ARGUMENT, "context",
        "NULL");
  FAILS(rung_activation_backward(context, NULL, &tdy, &tdx, NULL), RUNG_INVALID_ARGUMENT,
        "saved is", "NULL");
  FAILS(rung_activation_backward(context, &ts, NULL, &tdx, NULL), RUNG_INVALID_ARGUMENT, "dy is",
        "NULL");
  FAILS(rung_activation_backward(context, &ts, &tdy, NULL, NULL), RUNG_INVALID_ARGUMENT, "dx is",
        "NULL");
}
