/* SPDX-License-Identifier: Apache-2.0
 * gemm in C; rung/ops/gemm/gemm.hpp states shapes, types, accuracy and errors.
 */
#ifndef RUNG_OPS_GEMM_GEMM_H
#define RUNG_OPS_GEMM_GEMM_H

#include "rung/c/api.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum rung_activation {
  RUNG_ACTIVATION_NONE = 0,
  RUNG_ACTIVATION_RELU = 1,
  RUNG_ACTIVATION_GELU = 2, /* exact, by the error function */
  RUNG_ACTIVATION_SIGMOID = 3,
  RUNG_ACTIVATION_TANH = 4
} rung_activation;

/* Permitted conversion of f32 operands on tensor cores. */
typedef enum rung_precision {
  RUNG_PRECISION_FULL = 0,
  RUNG_PRECISION_TF32 = 1,
  RUNG_PRECISION_SPLIT = 2
} rung_precision;

/* Fields may be appended in later versions; `size` is the program's sizeof. */
typedef struct rung_gemm_options {
  size_t size;
  double alpha;
  double beta;
  int transpose_a;         /* not 0: a is k x m */
  int transpose_b;         /* not 0: b is n x k */
  const rung_tensor* bias; /* n, m x 1 or m x n; NULL: none */
  rung_activation activation;
  rung_precision precision;
  const char* rung;            /* one rung by name; NULL: the best */
  const rung_tensor* residual; /* added last, as bias; NULL: none */
  const rung_tensor* scale_a;  /* e4m3, e5m2: m x ceil(k / 128), f32; NULL: none */
  const rung_tensor* scale_b;  /* e4m3, e5m2: ceil(k / 128) x ceil(n / 128), f32; NULL: none */
} rung_gemm_options;

/* Sets options of `size` bytes, sizeof(rung_gemm_options), to the defaults: alpha 1, the rest 0. */
RUNG_C_API rung_status rung_gemm_options_init(rung_gemm_options* options, size_t size);

/* Computes c = activation(alpha op(a) op(b) + beta c + bias) + residual; with a leading axis, for
 * each matrix of a batch. NULL options are the defaults. The description of c is const; its
 * elements are written. On a GPU the work is enqueued. */
RUNG_C_API rung_status rung_gemm(rung_context* context, const rung_tensor* a, const rung_tensor* b,
                                 const rung_tensor* c, const rung_gemm_options* options);

/* A product of a list; bias and residual may be NULL. */
typedef struct rung_gemm_problem {
  const rung_tensor* a;
  const rung_tensor* b;
  const rung_tensor* c;
  const rung_tensor* bias;
  const rung_tensor* residual;
} rung_gemm_problem;

/* Computes `count` products, each as rung_gemm; on a GPU small products share launches. Options
 * apply to all and have no bias, residual or scales. With `rung` "grouped" all share launches. */
RUNG_C_API rung_status rung_gemm_grouped(rung_context* context, const rung_gemm_problem* problems,
                                         size_t count, const rung_gemm_options* options);

#ifdef __cplusplus
}
#endif

#endif
