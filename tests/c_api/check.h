/* SPDX-License-Identifier: Apache-2.0
 * What the tests of the C interface share. An operator's test is <operator>_test.c in its folder,
 * with a function check_<operator>; main.c calls it on every backend that is available. */
#ifndef RUNG_TESTS_C_API_CHECK_H
#define RUNG_TESTS_C_API_CHECK_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rung/rung.h"

/* All end the program with status 1 where something is wrong. */
#define CHECK(condition)                                                             \
  do {                                                                               \
    if (!(condition)) {                                                              \
      fprintf(stderr, "%s:%d: %s\nlast error: %s\n", __FILE__, __LINE__, #condition, \
              rung_last_error());                                                    \
      exit(1);                                                                       \
    }                                                                                \
  } while (0)

/* A failing call: its status, and two strings that its message must contain. */
#define FAILS(call, status, one, other) check_failure(__FILE__, __LINE__, call, status, one, other)
void check_failure(const char* file, int line, rung_status got, rung_status wanted, const char* one,
                   const char* other);

/* Elements that differ by more than the tolerance times (1 + magnitude); NaN equals NaN. */
#define SAME(got, wanted, count, tolerance) \
  check_same(__FILE__, __LINE__, got, wanted, count, tolerance)
void check_same(const char* file, int line, const float* got, const float* wanted, int count,
                double tolerance);

/* What holds for every operator's options: `call` uses `options`, whose other fields are the
 * defaults, and succeeds. */
#define CHECK_OPTIONS(type, call)                                                            \
  do {                                                                                       \
    struct {                                                                                 \
      type known;                                                                            \
      double later; /* of a program compiled against a later rung */                         \
    } newer;                                                                                 \
    type* const options = &newer.known;                                                      \
    memset(&newer, 0xff, sizeof newer);                                                      \
    CHECK(type##_init(options, sizeof *options) == RUNG_OK);                                 \
    CHECK(options->size == sizeof *options && options->rung == NULL && newer.later != 0);    \
    CHECK(call == RUNG_OK);                                                                  \
    CHECK(type##_init(options, sizeof newer) == RUNG_OK);                                    \
    CHECK(options->size == sizeof newer && newer.later == 0);                                \
    CHECK(call == RUNG_OK);                                                                  \
    newer.later = 1;                                                                         \
    FAILS(call, RUNG_UNSUPPORTED, "field", "rung 0.");                                       \
    options->size = sizeof *options - 1;                                                     \
    FAILS(call, RUNG_INVALID_ARGUMENT, "size of options is", #type "_init");                 \
    options->size = 0;                                                                       \
    FAILS(call, RUNG_INVALID_ARGUMENT, "size of options is 0", #type "_init");               \
    FAILS(type##_init(NULL, sizeof *options), RUNG_INVALID_ARGUMENT, "options", "NULL");     \
    FAILS(type##_init(options, 1), RUNG_INVALID_ARGUMENT, "size is 1", "sizeof(" #type ")"); \
    CHECK(type##_init(options, sizeof *options) == RUNG_OK);                                 \
    options->rung = "no_such_rung";                                                          \
    FAILS(call, RUNG_INVALID_ARGUMENT, "no_such_rung", "accepted: ");                        \
  } while (0)

/* A C-contiguous tensor in host memory. `shape` must outlive it. */
rung_tensor tensor_of(void* data, rung_dtype dtype, int rank, const int64_t* shape);

/* count numbers between -2 and 2, of no pattern. */
void fill(float* data, int count);

#endif
