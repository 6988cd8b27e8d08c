/* SPDX-License-Identifier: Apache-2.0
 * rung's C interface: contexts, tensors by pointer, gemm. Plain C99.
 *
 * Every function that can fail returns a rung_status; rung_last_error() then says, in words, which
 * argument was wrong, what it was and what is accepted. Nothing is thrown, and NULL where a pointer
 * is needed is RUNG_INVALID_ARGUMENT. A context serves one thread at a time; contexts are cheap.
 *
 *   rung_context* context;
 *   int64_t shape[2] = {4, 4};
 *   rung_tensor a = {a_data, RUNG_F32, 2, shape, NULL, {RUNG_CPU, 0}};
 *   ...
 *   if (rung_context_create(RUNG_CPU, 0, NULL, &context) != RUNG_OK) puts(rung_last_error());
 *   if (rung_gemm(context, &a, &b, &c, NULL) != RUNG_OK) puts(rung_last_error());
 *   rung_context_destroy(context);
 */
#ifndef RUNG_RUNG_H
#define RUNG_RUNG_H

#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define RUNG_C_API __attribute__((visibility("default")))
#else
#define RUNG_C_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

#define RUNG_VERSION_MAJOR 0
#define RUNG_VERSION_MINOR 1
#define RUNG_VERSION_PATCH 0

/* Numbers never change; new ones may come. */
typedef enum rung_status {
  RUNG_OK = 0,
  RUNG_INVALID_ARGUMENT = 1, /* the call is wrong whatever the machine */
  RUNG_UNSUPPORTED = 2,      /* a valid call that nothing here implements */
  RUNG_NOT_AVAILABLE = 3,    /* needs a device, driver or library that this machine lacks */
  RUNG_OUT_OF_MEMORY = 4,
  RUNG_IO = 5,
  RUNG_DEVICE = 6,  /* the GPU or the simulated GPU reported a failure */
  RUNG_INTERNAL = 7 /* a bug in rung */
} rung_status;

typedef enum rung_backend { RUNG_CPU = 0, RUNG_CUDA = 1, RUNG_SIMT = 2 } rung_backend;

typedef enum rung_dtype {
  RUNG_F32 = 0,
  RUNG_F64 = 1,
  RUNG_F16 = 2,
  RUNG_BF16 = 3,
  RUNG_E4M3 = 4,
  RUNG_E5M2 = 5,
  RUNG_I8 = 6,
  RUNG_U8 = 7,
  RUNG_I32 = 8,
  RUNG_I64 = 9,
  RUNG_U16 = 10
} rung_dtype;

typedef enum rung_activation {
  RUNG_ACTIVATION_NONE = 0,
  RUNG_ACTIVATION_RELU = 1,
  RUNG_ACTIVATION_GELU = 2, /* the exact one, with the error function */
  RUNG_ACTIVATION_SIGMOID = 3,
  RUNG_ACTIVATION_TANH = 4
} rung_activation;

/* What may happen to f32 operands on tensor cores. */
typedef enum rung_precision { RUNG_PRECISION_FULL = 0, RUNG_PRECISION_TF32 = 1 } rung_precision;

typedef struct rung_device {
  rung_backend backend;
  int index;
} rung_device;

/* The caller's memory, described. Strides count elements, may be zero (broadcast) and in any
 * order; NULL strides mean C-contiguous. At most 8 axes. */
typedef struct rung_tensor {
  void* data;
  rung_dtype dtype;
  int rank;
  const int64_t* shape;
  const int64_t* strides;
  rung_device device;
} rung_tensor;

typedef struct rung_context rung_context;

/* "0.1.0", of the library that is loaded; the macros are those compiled against. */
RUNG_C_API const char* rung_version(void);

/* What went wrong in the last call of this thread that failed; "" when none did. Valid until this
 * thread's next call. Never NULL. */
RUNG_C_API const char* rung_last_error(void);

/* "invalid argument" and so on; "unknown status" for other numbers. */
RUNG_C_API const char* rung_status_name(rung_status status);

/* RUNG_OK when the backend can run here; else RUNG_NOT_AVAILABLE: rung_last_error() says why. */
RUNG_C_API rung_status rung_backend_available(rung_backend backend);

/* device_or_threads: for RUNG_CUDA the index of the GPU; otherwise the number of threads, 0 for
 * every core this process may use. stream: a cudaStream_t, or NULL for the default stream; NULL for
 * other backends. *context is set to NULL on failure. */
RUNG_C_API rung_status rung_context_create(rung_backend backend, int device_or_threads,
                                           void* stream, rung_context** context);
/* NULL is allowed. Enqueued work should be done: see rung_context_synchronize. */
RUNG_C_API void rung_context_destroy(rung_context* context);
/* Waits for all enqueued work; returns what went wrong in it. */
RUNG_C_API rung_status rung_context_synchronize(rung_context* context);

/* May grow at its end; `size` tells a library how much of it the program knows. */
typedef struct rung_gemm_options {
  size_t size;
  double alpha;
  double beta;
  int transpose_a;         /* not 0: a is given k x m */
  int transpose_b;         /* not 0: b is given n x k */
  const rung_tensor* bias; /* n, m x 1 or m x n; NULL: none */
  rung_activation activation;
  rung_precision precision;
  const char* rung; /* one rung by name; NULL: the best */
} rung_gemm_options;

/* Sets the first `size` bytes - sizeof(rung_gemm_options) - to defaults: alpha 1, all else off. */
RUNG_C_API rung_status rung_gemm_options_init(rung_gemm_options* options, size_t size);

/* c = activation(alpha op(a) op(b) + beta c + bias); with a leading axis, for each matrix of a
 * batch. NULL options are the defaults. c's elements are written, though c itself is const. On a
 * GPU the work is enqueued. */
RUNG_C_API rung_status rung_gemm(rung_context* context, const rung_tensor* a, const rung_tensor* b,
                                 const rung_tensor* c, const rung_gemm_options* options);

#ifdef __cplusplus
}
#endif

#endif
