/* SPDX-License-Identifier: Apache-2.0
 * gemm in C: products, bias, strides, and every kind of wrong tensor. */
#include <math.h>

#include "tests/c_api/check.h"

void check_gemm(rung_context* context);

enum { M = 3, N = 4, K = 5 };

static const int64_t a_shape[2] = {M, K};
static const int64_t b_shape[2] = {K, N};
static const int64_t c_shape[2] = {M, N};

static rung_tensor matrix(void* data, const int64_t* shape) {
  return tensor_of(data, RUNG_F32, 2, shape);
}

/* alpha a b + beta c + bias of the column, by definition. */
static void expect_product(const float* a, const float* b, const float* before, const float* bias,
                           double alpha, double beta, const float* c) {
  for (int i = 0; i < M; ++i) {
    for (int j = 0; j < N; ++j) {
      double sum = 0;
      for (int k = 0; k < K; ++k) sum += (double)a[i * K + k] * b[k * N + j];
      sum = alpha * sum + beta * before[i * N + j] + (bias != NULL ? bias[j] : 0);
      CHECK(fabs(c[i * N + j] - sum) <= 1e-5 * (1 + fabs(sum)));
    }
  }
}

static void multiply(rung_context* context) {
  float a[M * K], b[K * N], c[M * N], before[M * N], bias[N], at[K * M];
  for (int i = 0; i < M * K; ++i) a[i] = (float)(i % 7) - 2.5f;
  for (int i = 0; i < K * N; ++i) b[i] = (float)(i % 5) * 0.5f - 1;
  for (int i = 0; i < M * N; ++i) before[i] = (float)i;
  for (int i = 0; i < N; ++i) bias[i] = 10.0f * (float)i;
  for (int i = 0; i < M; ++i) {
    for (int k = 0; k < K; ++k) at[k * M + i] = a[i * K + k];
  }
  const rung_tensor ta = matrix(a, a_shape), tb = matrix(b, b_shape);
  rung_tensor tc = matrix(c, c_shape);

  for (int i = 0; i < M * N; ++i) c[i] = NAN; /* beta = 0 must not read it */
  CHECK(rung_gemm(context, &ta, &tb, &tc, NULL) == RUNG_OK);
  CHECK(rung_context_synchronize(context) == RUNG_OK);
  expect_product(a, b, before, NULL, 1, 0, c);

  rung_gemm_options options;
  memset(&options, 0xff, sizeof options);
  CHECK(rung_gemm_options_init(&options, sizeof options) == RUNG_OK);
  CHECK(options.size == sizeof options && options.alpha == 1 && options.beta == 0);
  CHECK(options.bias == NULL && options.rung == NULL && options.transpose_a == 0);
  const int64_t bias_shape[1] = {N};
  rung_tensor tbias = matrix(bias, bias_shape);
  tbias.rank = 1;
  options.alpha = -2;
  options.beta = 0.5;
  options.bias = &tbias;
  memcpy(c, before, sizeof c);
  CHECK(rung_gemm(context, &ta, &tb, &tc, &options) == RUNG_OK);
  expect_product(a, b, before, bias, -2, 0.5, c);

  /* The same a, given transposed: once by the option, once by strides. */
  const int64_t at_shape[2] = {K, M}, at_strides[2] = {1, M};
  rung_tensor tat = matrix(at, at_shape);
  CHECK(rung_gemm_options_init(&options, sizeof options) == RUNG_OK);
  options.transpose_a = 1;
  CHECK(rung_gemm(context, &tat, &tb, &tc, &options) == RUNG_OK);
  expect_product(a, b, before, NULL, 1, 0, c);
  rung_tensor strided = matrix(at, a_shape);
  strided.strides = at_strides;
  CHECK(rung_gemm(context, &strided, &tb, &tc, NULL) == RUNG_OK);
  expect_product(a, b, before, NULL, 1, 0, c);

  options.transpose_a = 0;
  options.activation = RUNG_ACTIVATION_RELU;
  CHECK(rung_gemm(context, &ta, &tb, &tc, &options) == RUNG_OK);
  int zeros = 0;
  for (int i = 0; i < M * N; ++i) {
    CHECK(c[i] >= 0);
    zeros += c[i] == 0;
  }
  CHECK(zeros > 0);

  /* Empty tensors without data. */
  const int64_t empty_shape[2] = {0, N}, empty_a_shape[2] = {0, K};
  const rung_tensor empty_a = matrix(NULL, empty_a_shape), empty_c = matrix(NULL, empty_shape);
  CHECK(rung_gemm(context, &empty_a, &tb, &empty_c, NULL) == RUNG_OK);
}

/* A residual; block scales; integers; a list. */
static void multiply_more(rung_context* context) {
  float a[M * K], b[K * N], c[M * N], residual[M * N];
  for (int i = 0; i < M * K; ++i) a[i] = (float)(i % 3) - 1;
  for (int i = 0; i < K * N; ++i) b[i] = (float)(i % 4) - 1;
  for (int i = 0; i < M * N; ++i) residual[i] = (float)(100 + i);
  const rung_tensor ta = matrix(a, a_shape), tb = matrix(b, b_shape), tc = matrix(c, c_shape);
  const rung_tensor tresidual = matrix(residual, c_shape);
  rung_gemm_options options;
  CHECK(rung_gemm_options_init(&options, sizeof options) == RUNG_OK);
  CHECK(options.residual == NULL && options.scale_a == NULL && options.scale_b == NULL);
  options.residual = &tresidual;
  CHECK(rung_gemm(context, &ta, &tb, &tc, &options) == RUNG_OK);
  CHECK(rung_context_synchronize(context) == RUNG_OK);
  for (int i = 0; i < M * N; ++i) c[i] -= residual[i];
  expect_product(a, b, residual, NULL, 1, 0, c);

  /* 0x38 is 1 in e4m3, 0x40 is 2 in e5m2. */
  unsigned char left[M * K], right[K * N];
  memset(left, 0x38, sizeof left);
  memset(right, 0x40, sizeof right);
  rung_tensor tleft = matrix(left, a_shape), tright = matrix(right, b_shape);
  tleft.dtype = RUNG_E4M3;
  tright.dtype = RUNG_E5M2;
  float of_a[M] = {1, 2, 4}, of_b[1] = {0.5f};
  const int64_t of_a_shape[2] = {M, 1}, of_b_shape[2] = {1, 1};
  const rung_tensor tof_a = matrix(of_a, of_a_shape), tof_b = matrix(of_b, of_b_shape);
  CHECK(rung_gemm_options_init(&options, sizeof options) == RUNG_OK);
  options.scale_a = &tof_a;
  options.scale_b = &tof_b;
  CHECK(rung_gemm(context, &tleft, &tright, &tc, &options) == RUNG_OK);
  CHECK(rung_context_synchronize(context) == RUNG_OK);
  for (int i = 0; i < M * N; ++i) CHECK(c[i] == 2 * K * 0.5f * of_a[i / N]);

  int sums[M * N];
  rung_tensor tsums = matrix(sums, c_shape);
  tsums.dtype = RUNG_I32;
  tleft.dtype = tright.dtype = RUNG_I8;
  CHECK(rung_gemm(context, &tleft, &tright, &tsums, NULL) == RUNG_OK);
  CHECK(rung_context_synchronize(context) == RUNG_OK);
  for (int i = 0; i < M * N; ++i) CHECK(sums[i] == K * 0x38 * 0x40);

  rung_gemm_problem list[2] = {{&ta, &tb, &tc, NULL, NULL}, {&tleft, &tright, &tsums, NULL, NULL}};
  memset(c, 0xff, sizeof c);
  memset(sums, 0xff, sizeof sums);
  CHECK(rung_gemm_grouped(context, list, 2, NULL) == RUNG_OK);
  CHECK(rung_context_synchronize(context) == RUNG_OK);
  expect_product(a, b, residual, NULL, 1, 0, c);
  for (int i = 0; i < M * N; ++i) CHECK(sums[i] == K * 0x38 * 0x40);
  CHECK(rung_gemm_grouped(context, NULL, 0, NULL) == RUNG_OK);
  FAILS(rung_gemm_grouped(context, NULL, 1, NULL), RUNG_INVALID_ARGUMENT, "problems", "NULL");
  list[1].b = NULL;
  FAILS(rung_gemm_grouped(context, list, 2, NULL), RUNG_INVALID_ARGUMENT, "b is", "NULL");
  list[1].b = list[1].a;
  FAILS(rung_gemm_grouped(context, list, 2, NULL), RUNG_INVALID_ARGUMENT, "product 1", "3x5");
}

static void provoke_errors(rung_context* context) {
  float data[64] = {0};
  const rung_tensor a = matrix(data, a_shape), b = matrix(data + 16, b_shape);
  const rung_tensor c = matrix(data + 40, c_shape);
  rung_tensor bad = a;
  rung_gemm_options options;
  CHECK(rung_gemm_options_init(&options, sizeof options) == RUNG_OK);

  FAILS(rung_gemm(NULL, &a, &b, &c, NULL), RUNG_INVALID_ARGUMENT, "context", "NULL");
  FAILS(rung_gemm(context, NULL, &b, &c, NULL), RUNG_INVALID_ARGUMENT, "a is", "NULL");
  FAILS(rung_gemm(context, &a, NULL, &c, NULL), RUNG_INVALID_ARGUMENT, "b is", "NULL");
  FAILS(rung_gemm(context, &a, &b, NULL, NULL), RUNG_INVALID_ARGUMENT, "c is", "NULL");
  bad.data = NULL;
  FAILS(rung_gemm(context, &bad, &b, &c, NULL), RUNG_INVALID_ARGUMENT, "data of a", "NULL");
  bad = a;
  bad.shape = NULL;
  FAILS(rung_gemm(context, &a, &bad, &c, NULL), RUNG_INVALID_ARGUMENT, "shape of b", "NULL");
  bad = a;
  bad.dtype = (rung_dtype)99;
  FAILS(rung_gemm(context, &bad, &b, &c, NULL), RUNG_INVALID_ARGUMENT, "dtype of a is 99",
        "0 to 10");
  bad = a;
  bad.dtype = (rung_dtype)-1;
  FAILS(rung_gemm(context, &bad, &b, &c, NULL), RUNG_INVALID_ARGUMENT, "dtype of a is -1",
        "0 to 10");
  bad = a;
  bad.rank = 9;
  FAILS(rung_gemm(context, &bad, &b, &c, NULL), RUNG_INVALID_ARGUMENT, "rank of a is 9", "0 to 8");
  bad.rank = -1;
  FAILS(rung_gemm(context, &bad, &b, &c, NULL), RUNG_INVALID_ARGUMENT, "rank of a is -1", "0 to 8");
  bad = a;
  bad.device.backend = (rung_backend)7;
  FAILS(rung_gemm(context, &bad, &b, &c, NULL), RUNG_INVALID_ARGUMENT, "backend of a is 7",
        "0 to 3");
  const int64_t negative[2] = {-3, K};
  bad = a;
  bad.shape = negative;
  FAILS(rung_gemm(context, &bad, &b, &c, NULL), RUNG_INVALID_ARGUMENT, "a: ", "negative");
  const int64_t huge[2] = {INT64_MAX, INT64_MAX};
  bad.shape = huge;
  FAILS(rung_gemm(context, &bad, &b, &c, NULL), RUNG_INVALID_ARGUMENT, "a: ", "2^63");
  FAILS(rung_gemm(context, &b, &b, &c, NULL), RUNG_INVALID_ARGUMENT, "5x4", "");
  FAILS(rung_gemm(context, &a, &b, &a, NULL), RUNG_INVALID_ARGUMENT, "c", "");

  options.activation = (rung_activation)55;
  FAILS(rung_gemm(context, &a, &b, &c, &options), RUNG_INVALID_ARGUMENT, "activation is 55",
        "0 to 4");
  options.activation = RUNG_ACTIVATION_NONE;
  options.precision = (rung_precision)3;
  FAILS(rung_gemm(context, &a, &b, &c, &options), RUNG_INVALID_ARGUMENT, "precision is 3",
        "0 to 2");
  options.precision = RUNG_PRECISION_FULL;
  CHECK_OPTIONS(rung_gemm_options, rung_gemm(context, &a, &b, &c, options));
}

void check_gemm(rung_context* context) {
  multiply(context);
  multiply_more(context);
  provoke_errors(context);
  multiply(context); /* an error leaves a context as it was */
}
