/* SPDX-License-Identifier: Apache-2.0
 * A C program of a user of rung: a product, its largest element, a bad call. Exits 0 if all went as
 * documented. */
#include <rung/rung.h>

#include <stdio.h>
#include <string.h>

int main(void) {
  double a_data[] = {1, 2, 3, 4, 5, 6};
  double b_data[] = {7, 8, 9};
  double c_data[] = {-1, -1};
  const int64_t a_shape[] = {2, 3};
  const int64_t b_shape[] = {3, 1};
  const int64_t c_shape[] = {2, 1};
  const rung_tensor a = {a_data, RUNG_F64, 2, a_shape, NULL, {RUNG_CPU, 0}};
  const rung_tensor b = {b_data, RUNG_F64, 2, b_shape, NULL, {RUNG_CPU, 0}};
  const rung_tensor c = {c_data, RUNG_F64, 2, c_shape, NULL, {RUNG_CPU, 0}};
  rung_context* context = NULL;
  rung_gemm_options options;

  if (rung_context_create(RUNG_CPU, 1, NULL, &context) != RUNG_OK ||
      rung_gemm_options_init(&options, sizeof options) != RUNG_OK) {
    puts(rung_last_error());
    return 1;
  }
  options.alpha = 2;
  if (rung_gemm(context, &a, &b, &c, &options) != RUNG_OK) {
    puts(rung_last_error());
    return 1;
  }
  if (c_data[0] != 100 || c_data[1] != 244) {
    printf("got %g %g\n", c_data[0], c_data[1]);
    return 1;
  }
  double largest_data = 0;
  const rung_tensor largest = {&largest_data, RUNG_F64, 0, NULL, NULL, {RUNG_CPU, 0}};
  rung_reduce_options how;
  if (rung_reduce_options_init(&how, sizeof how) != RUNG_OK) return 1;
  how.operation = RUNG_REDUCE_MAX;
  if (rung_reduce(context, &c, &largest, &how) != RUNG_OK || largest_data != 244) {
    printf("the maximum is %g: %s\n", largest_data, rung_last_error());
    return 1;
  }
  if (rung_gemm(context, &b, &a, &c, NULL) != RUNG_INVALID_ARGUMENT ||
      strlen(rung_last_error()) == 0) {
    puts("3x1 times 2x3 was not refused with a message");
    return 1;
  }
  printf("as it should be: %s\n", rung_last_error());
  rung_context_destroy(context);
  return 0;
}
