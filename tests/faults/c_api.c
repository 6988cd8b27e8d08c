/* SPDX-License-Identifier: Apache-2.0
 * A C program that runs out of memory: the shim (shim.c) fails one of its allocations, or all
 * starts of threads, from its first call of rung on. Every call either succeeds or returns
 * RUNG_OUT_OF_MEMORY, and then succeeds when it is made again on the same objects; where no thread
 * can be started, a context of one thread still works. Prints the bytes that are allocated in the
 * end, for c_api.py to compare with those of a run in which nothing fails. Words: what fails, and
 * the number of threads.
 */
#include <fcntl.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rung/rung.h"

static int no_threads; /* starts of threads fail, and go on failing */

static void die(const char* what, rung_status status) {
  fprintf(stderr, "%s: %s (%s)\n", what, rung_status_name(status), rung_last_error());
  exit(1);
}

/* Whether the call succeeded; ends the program unless it did or had no memory. */
static int done(const char* what, rung_status status) {
  if (status == RUNG_OK) return 1;
  if (status != RUNG_OUT_OF_MEMORY) die(what, status);
  if (rung_last_error()[0] == '\0') die("no message", status);
  fprintf(stderr, "no memory: %s\n", what);
  return 0;
}

/* Makes a call, and once more if it fails. */
#define MAKE(call)                             \
  do {                                         \
    if (!done(#call, call)) {                  \
      const rung_status again = call;          \
      if (again != RUNG_OK) die(#call, again); \
    }                                          \
  } while (0)

/* The same of a call that needs threads, which there may be none of: then the context still answers
 * so, and another of one thread does the work. */
#define MAKE_WITH_THREADS(context, call)                                   \
  do {                                                                     \
    rung_context* context = several;                                       \
    if (!done(#call, call)) {                                              \
      const rung_status again = call;                                      \
      if (again != RUNG_OK) {                                              \
        if (!no_threads || again != RUNG_OUT_OF_MEMORY) die(#call, again); \
        context = single;                                                  \
        MAKE(call);                                                        \
      }                                                                    \
    }                                                                      \
  } while (0)

static rung_tensor tensor_of(void* data, rung_dtype dtype, int rank, const int64_t* shape) {
  rung_tensor tensor;
  memset(&tensor, 0, sizeof tensor);
  tensor.data = data;
  tensor.dtype = dtype;
  tensor.rank = rank;
  tensor.shape = shape;
  tensor.device.backend = RUNG_CPU;
  return tensor;
}

#ifdef WITH_gemm
static void check_gemm(rung_context* several, rung_context* single) {
  enum { side = 300, k = 1000 };
  static float a[side * side], c[side * side];
  static int8_t bytes[k];
  int32_t dot = 0;
  const int64_t square[2] = {side, side}, row[2] = {1, k}, column[2] = {k, 1}, one[2] = {1, 1};
  const rung_tensor ta = tensor_of(a, RUNG_F32, 2, square), tc = tensor_of(c, RUNG_F32, 2, square);
  const rung_tensor tx = tensor_of(bytes, RUNG_I8, 2, row),
                    ty = tensor_of(bytes, RUNG_I8, 2, column);
  const rung_tensor tdot = tensor_of(&dot, RUNG_I32, 2, one);
  rung_gemm_options options;
  rung_gemm_problem problems[2];
  int i;
  for (i = 0; i < side * side; ++i) a[i] = 1;
  memset(bytes, 1, sizeof bytes);
  MAKE_WITH_THREADS(context, rung_gemm(context, &ta, &ta, &tc, NULL));
  for (i = 0; i < side * side; ++i) {
    if (c[i] != side) die("a wrong product", RUNG_OK);
  }
  MAKE(rung_gemm_options_init(&options, sizeof options));
  options.rung = "packed_simd";
  MAKE_WITH_THREADS(context, rung_gemm(context, &ta, &ta, &tc, &options));
  options.rung = NULL;
  MAKE_WITH_THREADS(context, rung_gemm(context, &tx, &ty, &tdot, &options));
  if (dot != k) die("a wrong sum of bytes", RUNG_OK);
  memset(problems, 0, sizeof problems);
  problems[0].a = problems[0].b = &ta;
  problems[0].c = &tc;
  problems[1].a = &tx;
  problems[1].b = &ty;
  problems[1].c = &tdot;
  MAKE_WITH_THREADS(context, rung_gemm_grouped(context, problems, 2, NULL));
}
#endif

#ifdef WITH_stencil
static void check_stencil(rung_context* several, rung_context* single) {
  enum { side = 500 };
  static float x[side * side], y[side * side];
  float ones[9] = {1, 1, 1, 1, 1, 1, 1, 1, 1};
  const int64_t square[2] = {side, side}, three[2] = {3, 3};
  const rung_tensor tx = tensor_of(x, RUNG_F32, 2, square), ty = tensor_of(y, RUNG_F32, 2, square);
  const rung_tensor mask = tensor_of(ones, RUNG_F32, 2, three);
  rung_stencil_options options;
  int i;
  for (i = 0; i < side * side; ++i) x[i] = 1;
  MAKE(rung_stencil_options_init(&options, sizeof options));
  options.edge = RUNG_EDGE_WRAP;
  options.iterations = 3;
  MAKE_WITH_THREADS(context, rung_stencil(context, &tx, &mask, &ty, &options));
  for (i = 0; i < side * side; ++i) {
    if (y[i] != 729) die("a wrong sum", RUNG_OK);
  }
  options.iterations = 1;
  options.window = three;
  options.window_count = 2;
  MAKE_WITH_THREADS(context, rung_stencil(context, &tx, NULL, &ty, &options));
}
#endif

#ifdef WITH_softmax
static void check_softmax(rung_context* several, rung_context* single) {
  enum { rows = 300, columns = 1024 };
  static float x[rows * columns], y[rows * columns];
  const int64_t shape[2] = {rows, columns};
  const rung_tensor tx = tensor_of(x, RUNG_F32, 2, shape), ty = tensor_of(y, RUNG_F32, 2, shape);
  rung_softmax_options options;
  int i;
  MAKE(rung_softmax_options_init(&options, sizeof options));
  for (options.axis = 0; options.axis < 2; ++options.axis) {
    MAKE_WITH_THREADS(context, rung_softmax(context, &tx, &ty, &options));
  }
  for (i = 0; i < rows * columns; ++i) {
    if (y[i] != 1.0F / columns) die("a wrong share", RUNG_OK);
  }
}
#endif

int main(int count, char** words) {
  static float numbers[64 * 64];
  const int64_t shape[2] = {64, 64}, turned[2] = {1, 64};
  const rung_device host = {RUNG_CPU, 0};
  rung_tensor* made = NULL;
  rung_tensor from = tensor_of(numbers, RUNG_F32, 2, shape);
  rung_context *several = NULL, *single = NULL;
  rung_status status;
  int tries;
  const int threads = count > 2 ? atoi(words[2]) : 2;
  no_threads = count > 1 && strcmp(words[1], "thread") == 0;
  open("armed", O_RDONLY);

  status = rung_context_create(RUNG_CPU, threads, NULL, &several);
  if (!done("rung_context_create", status)) {
    if (several != NULL) die("a context that is none", status);
    MAKE(rung_context_create(RUNG_CPU, threads, NULL, &several));
  }
  MAKE(rung_context_create(RUNG_CPU, 1, NULL, &single));
  status = rung_tensor_create(RUNG_F32, 2, shape, host, &made);
  if (!done("rung_tensor_create", status)) {
    if (made != NULL) die("a tensor that is none", status);
    MAKE(rung_tensor_create(RUNG_F32, 2, shape, host, &made));
  }
  from.strides = turned;
  MAKE(rung_copy(&from, made));
#ifdef WITH_gemm
  check_gemm(several, single);
#endif
#ifdef WITH_stencil
  check_stencil(several, single);
#endif
#ifdef WITH_softmax
  check_softmax(several, single);
#endif
  MAKE(rung_context_synchronize(several));
  status = RUNG_OK;
  rung_tensor_destroy(made);
  rung_context_destroy(several);
  rung_context_destroy(single);
  /* The last message, which a thread keeps, is the same in all runs. */
  for (tries = 0; status != RUNG_INVALID_ARGUMENT && tries < 2; ++tries) {
    status = rung_context_synchronize(NULL);
  }
  if (status != RUNG_INVALID_ARGUMENT) die("no context", status);
  printf("%zu\n", mallinfo2().uordblks);
  return 0;
}
