/* SPDX-License-Identifier: Apache-2.0
 * A layer norm as a network has it: forward with a residual, backward with the statistics that
 * forward wrote. Prints the mean and the variance of a row, and the gradient of the shift. In C,
 * with tensors that rung allocates, so that RUNG_CUDA in place of RUNG_CPU is all that a GPU needs,
 * once rung_copy has brought the data there. */
#include <rung/rung.h>

#include <stdio.h>
#include <stdlib.h>

enum { ROWS = 4, COLUMNS = 8 };

static void check(rung_status status) {
  if (status == RUNG_OK) return;
  fprintf(stderr, "%s: %s\n", rung_status_name(status), rung_last_error());
  exit(1);
}

/* A tensor in host memory, every element `first` + its index times `step`. */
static rung_tensor* make(int rank, const int64_t* shape, float first, float step) {
  const rung_device host = {RUNG_CPU, 0};
  rung_tensor* tensor;
  check(rung_tensor_create(RUNG_F32, rank, shape, host, &tensor));
  int64_t count = 1;
  for (int axis = 0; axis < rank; ++axis) count *= shape[axis];
  for (int64_t i = 0; i < count; ++i) ((float*)tensor->data)[i] = first + step * (float)i;
  return tensor;
}

int main(void) {
  const int64_t shape[2] = {ROWS, COLUMNS}, rows[1] = {ROWS}, columns[1] = {COLUMNS};
  rung_tensor* const x = make(2, shape, -3, 0.5f);
  rung_tensor* const residual = make(2, shape, 1, 0.25f);
  rung_tensor* const gamma = make(1, columns, 1, 0);
  rung_tensor* const beta = make(1, columns, 0, 0);
  rung_tensor* const sum = make(2, shape, 0, 0);
  rung_tensor* const y = make(2, shape, 0, 0);
  rung_tensor* const mean = make(1, rows, 0, 0);
  rung_tensor* const rstd = make(1, rows, 0, 0);
  rung_tensor* const dy = make(2, shape, 0, 1);
  rung_tensor* const dx = make(2, shape, 0, 0);
  rung_tensor* const dbeta = make(1, columns, 0, 0);

  rung_context* context;
  check(rung_context_create(RUNG_CPU, 0, NULL, &context));
  rung_norm_options forward;
  check(rung_norm_options_init(&forward, sizeof forward));
  forward.gamma = gamma;
  forward.beta = beta;
  forward.residual = residual;
  forward.sum = sum; /* written: what backward needs as its x */
  forward.mean = mean;
  forward.rstd = rstd;
  check(rung_layer_norm(context, x, y, &forward));

  rung_norm_backward_options backward;
  check(rung_norm_backward_options_init(&backward, sizeof backward));
  backward.gamma = gamma;
  backward.mean = mean;
  backward.rstd = rstd;
  backward.dbeta = dbeta;
  check(rung_layer_norm_backward(context, dy, sum, dx, &backward));
  check(rung_context_synchronize(context)); /* of effect on a GPU */

  const float* const row = (const float*)y->data;
  float average = 0, square = 0;
  for (int i = 0; i < COLUMNS; ++i) average += row[i] / COLUMNS;
  for (int i = 0; i < COLUMNS; ++i) square += row[i] * row[i] / COLUMNS;
  printf("row 0: mean %.3f, variance %.3f\n", average < 0 ? -average : average, square);
  printf("dbeta[0] = %g\n", ((const float*)dbeta->data)[0]);

  rung_tensor* const all[] = {x, residual, gamma, beta, sum, y, mean, rstd, dy, dx, dbeta};
  for (size_t i = 0; i < sizeof all / sizeof *all; ++i) rung_tensor_destroy(all[i]);
  rung_context_destroy(context);
  return 0;
}
