/* SPDX-License-Identifier: Apache-2.0
 * What the tests of the C interface share. */
#include "check.h"

#include <math.h>

void check_failure(const char* file, int line, rung_status got, rung_status wanted, const char* one,
                   const char* other) {
  if (got == wanted && strstr(rung_last_error(), one) != NULL &&
      strstr(rung_last_error(), other) != NULL) {
    return;
  }
  fprintf(stderr, "%s:%d: status %s (wanted %s), message without '%s' or '%s': %s\n", file, line,
          rung_status_name(got), rung_status_name(wanted), one, other, rung_last_error());
  exit(1);
}

void check_same(const char* file, int line, const float* got, const float* wanted, int count,
                double tolerance) {
  for (int i = 0; i < count; ++i) {
    if (isnan(got[i]) && isnan(wanted[i])) continue;
    if (got[i] == wanted[i]) continue;
    if (fabs((double)got[i] - wanted[i]) <= tolerance * (1 + fabs((double)wanted[i]))) continue;
    fprintf(stderr, "%s:%d: element %d is %g, expected %g\n", file, line, i, got[i], wanted[i]);
    exit(1);
  }
}

rung_tensor tensor_of(void* data, rung_dtype dtype, int rank, const int64_t* shape) {
  rung_tensor tensor = {NULL, RUNG_F32, 0, NULL, NULL, {RUNG_CPU, 0}};
  tensor.data = data;
  tensor.dtype = dtype;
  tensor.rank = rank;
  tensor.shape = shape;
  return tensor;
}

void fill(float* data, int count) {
  unsigned state = 12345;
  for (int i = 0; i < count; ++i) {
    state = state * 1664525u + 1013904223u;
    data[i] = (float)(state >> 8) / 4194304.0f - 2;
  }
}
