/* SPDX-License-Identifier: Apache-2.0
 * elementwise in C: every function, operands that are broadcast. */
#include <math.h>

#include "tests/c_api/check.h"

void check_elementwise(rung_context* context);

enum { ROWS = 3, COLUMNS = 4, SIZE = ROWS * COLUMNS };

static double expect(rung_elementwise_function function, double alpha, double x, double y,
                     double w) {
  switch (function) {
    case RUNG_ELEMENTWISE_ADD:
      return x + y;
    case RUNG_ELEMENTWISE_SUB:
      return x - y;
    case RUNG_ELEMENTWISE_MUL:
      return x * y;
    case RUNG_ELEMENTWISE_DIV:
      return x / y;
    case RUNG_ELEMENTWISE_AXPY:
      return alpha * x + y;
    case RUNG_ELEMENTWISE_FMA:
      return x * y + w;
    case RUNG_ELEMENTWISE_RELU:
      return x > 0 ? x : 0;
    case RUNG_ELEMENTWISE_SIGMOID:
      return 1 / (1 + exp(-x));
    case RUNG_ELEMENTWISE_TANH:
      return tanh(x);
    case RUNG_ELEMENTWISE_GELU:
      return 0.5 * x * erfc(-x / sqrt(2));
    case RUNG_ELEMENTWISE_EXP:
      return exp(x);
    case RUNG_ELEMENTWISE_SILU:
      return x / (1 + exp(-x));
    case RUNG_ELEMENTWISE_SIGN:
      return (x > 0) - (x < 0);
  }
  return NAN;
}

/* Calls the function by its own name. */
static rung_status by_name(rung_context* context, int function, const rung_tensor* x,
                           const rung_tensor* y, const rung_tensor* w, const rung_tensor* z) {
  switch ((rung_elementwise_function)function) {
    case RUNG_ELEMENTWISE_ADD:
      return rung_add(context, x, y, z);
    case RUNG_ELEMENTWISE_SUB:
      return rung_subtract(context, x, y, z);
    case RUNG_ELEMENTWISE_MUL:
      return rung_multiply(context, x, y, z);
    case RUNG_ELEMENTWISE_DIV:
      return rung_divide(context, x, y, z);
    case RUNG_ELEMENTWISE_AXPY:
      return rung_axpy(context, -2.5, x, y, z);
    case RUNG_ELEMENTWISE_FMA:
      return rung_multiply_add(context, x, y, w, z);
    case RUNG_ELEMENTWISE_RELU:
      return rung_relu(context, x, z);
    case RUNG_ELEMENTWISE_SIGMOID:
      return rung_sigmoid(context, x, z);
    case RUNG_ELEMENTWISE_TANH:
      return rung_tanh(context, x, z);
    case RUNG_ELEMENTWISE_GELU:
      return rung_gelu(context, x, z);
    case RUNG_ELEMENTWISE_EXP:
      return rung_exp(context, x, z);
    case RUNG_ELEMENTWISE_SILU:
      return rung_silu(context, x, z);
    case RUNG_ELEMENTWISE_SIGN:
      return rung_sign(context, x, z);
  }
  return RUNG_INTERNAL;
}

void check_elementwise(rung_context* context) {
  float x[SIZE], y[COLUMNS], w[1] = {0.75f}, z[SIZE], expected[SIZE];
  const int64_t shape[2] = {ROWS, COLUMNS}, row[1] = {COLUMNS};
  fill(x, SIZE);
  for (int i = 0; i < COLUMNS; ++i) y[i] = (float)i - 1.5f;
  const rung_tensor tx = tensor_of(x, RUNG_F32, 2, shape), ty = tensor_of(y, RUNG_F32, 1, row);
  const rung_tensor tw = tensor_of(w, RUNG_F32, 0, NULL), tz = tensor_of(z, RUNG_F32, 2, shape);

  rung_elementwise_options options;
  CHECK(rung_elementwise_options_init(&options, sizeof options) == RUNG_OK);
  CHECK(options.function == RUNG_ELEMENTWISE_ADD && options.alpha == 1);
  for (int function = 0; function <= (int)RUNG_ELEMENTWISE_SIGN; ++function) {
    options.function = (rung_elementwise_function)function;
    options.alpha = function == RUNG_ELEMENTWISE_AXPY ? -2.5 : 1; /* others have none */
    const rung_tensor* const second = function < RUNG_ELEMENTWISE_RELU ? &ty : NULL;
    const rung_tensor* const third = function == RUNG_ELEMENTWISE_FMA ? &tw : NULL;
    CHECK(rung_elementwise(context, &tx, second, third, &tz, &options) == RUNG_OK);
    for (int i = 0; i < SIZE; ++i) {
      expected[i] = (float)expect(options.function, -2.5, x[i], y[i % COLUMNS], w[0]);
    }
    SAME(z, expected, SIZE, 1e-6);
    memcpy(expected, z, sizeof z);
    memset(z, 0xff, sizeof z);
    CHECK(by_name(context, function, &tx, &ty, &tw, &tz) == RUNG_OK);
    SAME(z, expected, SIZE, 0);
  }
  FAILS(rung_add(NULL, &tx, &ty, &tz), RUNG_INVALID_ARGUMENT, "context", "NULL");
  FAILS(rung_axpy(context, 2, &tx, NULL, &tz), RUNG_INVALID_ARGUMENT, "y is", "NULL");
  FAILS(rung_gelu(context, &tx, NULL), RUNG_INVALID_ARGUMENT, "z is", "NULL");
  CHECK(rung_elementwise(context, &tx, &ty, NULL, &tz, NULL) == RUNG_OK);
  for (int i = 0; i < SIZE; ++i) expected[i] = x[i] + y[i % COLUMNS];
  SAME(z, expected, SIZE, 0);

  CHECK_OPTIONS(rung_elementwise_options, rung_elementwise(context, &tx, &ty, NULL, &tz, options));
  options.function = (rung_elementwise_function)13;
  FAILS(rung_elementwise(context, &tx, NULL, NULL, &tz, &options), RUNG_INVALID_ARGUMENT,
        "function is 13", "0 to 12");
  FAILS(rung_elementwise(context, &tx, NULL, NULL, &tz, NULL), RUNG_INVALID_ARGUMENT, "y", "add");
  FAILS(rung_elementwise(NULL, &tx, &ty, NULL, &tz, NULL), RUNG_INVALID_ARGUMENT, "context",
        "NULL");
  FAILS(rung_elementwise(context, NULL, &ty, NULL, &tz, NULL), RUNG_INVALID_ARGUMENT, "x is",
        "NULL");
  FAILS(rung_elementwise(context, &tx, &ty, NULL, NULL, NULL), RUNG_INVALID_ARGUMENT, "z is",
        "NULL");
  rung_tensor bad = ty;
  bad.dtype = RUNG_I32;
  FAILS(rung_elementwise(context, &tx, &bad, NULL, &tz, NULL), RUNG_INVALID_ARGUMENT, "y is i32",
        "f32");
  /* No elements and no address: nothing is written, nothing is missing. */
  const int64_t none[2] = {0, COLUMNS};
  const rung_tensor empty = tensor_of(NULL, RUNG_F32, 2, none);
  CHECK(rung_elementwise(context, &empty, &ty, NULL, &empty, NULL) == RUNG_OK);
}
