/* SPDX-License-Identifier: Apache-2.0
 * attention_backward in C: causal with shared heads, key lengths, and wrong calls. */
#include <math.h>

#include "tests/c_api/check.h"

void check_attention_backward(rung_context* context);

enum { HEADS = 2, QUERIES = 3, KEYS = 4, WIDTH = 5, VALUES = 2, ROWS = HEADS * QUERIES };

typedef struct {
  float q[ROWS * WIDTH], k[KEYS * WIDTH], v[KEYS * VALUES];
  float o[ROWS * VALUES], lse[ROWS], dout[ROWS * VALUES];
} operands;
typedef struct {
  float dq[ROWS * WIDTH], dk[KEYS * WIDTH], dv[KEYS * VALUES];
} gradients;

/* One head of k and v; query i sees the first seen[i] keys. */
static void expect(const operands* x, double scale, const int* seen, int window, gradients* g) {
  for (int i = 0; i < ROWS * WIDTH; ++i) g->dq[i] = 0;
  for (int i = 0; i < KEYS * WIDTH; ++i) g->dk[i] = 0;
  for (int i = 0; i < KEYS * VALUES; ++i) g->dv[i] = 0;
  for (int row = 0; row < ROWS; ++row) {
    const int end = seen[row % QUERIES];
    for (int j = end > window ? end - window : 0; j < end; ++j) {
      double score = 0, difference = 0;
      for (int d = 0; d < WIDTH; ++d) score += (double)x->q[row * WIDTH + d] * x->k[j * WIDTH + d];
      for (int c = 0; c < VALUES; ++c) {
        difference +=
            x->dout[row * VALUES + c] * ((double)x->v[j * VALUES + c] - x->o[row * VALUES + c]);
      }
      const double p = exp(scale * score - x->lse[row]);
      for (int d = 0; d < WIDTH; ++d) {
        g->dq[row * WIDTH + d] += (float)(scale * p * difference * x->k[j * WIDTH + d]);
        g->dk[j * WIDTH + d] += (float)(scale * p * difference * x->q[row * WIDTH + d]);
      }
      for (int c = 0; c < VALUES; ++c) {
        g->dv[j * VALUES + c] += (float)(p * x->dout[row * VALUES + c]);
      }
    }
  }
}

void check_attention_backward(rung_context* context) {
  const int64_t q_shape[4] = {1, HEADS, QUERIES, WIDTH}, k_shape[4] = {1, 1, KEYS, WIDTH};
  const int64_t v_shape[4] = {1, 1, KEYS, VALUES}, o_shape[4] = {1, HEADS, QUERIES, VALUES};
  const int64_t lse_shape[3] = {1, HEADS, QUERIES}, length_shape[1] = {1};
  const int all[QUERIES] = {KEYS, KEYS, KEYS}, two[QUERIES] = {0, 1, 2};
  int32_t length = 2;
  operands x;
  gradients got, expected;
  fill(x.q, ROWS * WIDTH);
  fill(x.v, KEYS * VALUES);
  for (int i = 0; i < KEYS * WIDTH; ++i) x.k[i] = (float)sin(i);
  for (int i = 0; i < ROWS * VALUES; ++i) x.dout[i] = (float)cos(i);
  const rung_tensor q = tensor_of(x.q, RUNG_F32, 4, q_shape),
                    k = tensor_of(x.k, RUNG_F32, 4, k_shape);
  const rung_tensor v = tensor_of(x.v, RUNG_F32, 4, v_shape),
                    o = tensor_of(x.o, RUNG_F32, 4, o_shape);
  const rung_tensor lse = tensor_of(x.lse, RUNG_F32, 3, lse_shape),
                    dout = tensor_of(x.dout, RUNG_F32, 4, o_shape);
  const rung_tensor dq = tensor_of(got.dq, RUNG_F32, 4, q_shape),
                    dk = tensor_of(got.dk, RUNG_F32, 4, k_shape);
  const rung_tensor dv = tensor_of(got.dv, RUNG_F32, 4, v_shape);
  const rung_tensor lengths = tensor_of(&length, RUNG_I32, 1, length_shape);

  /* The formulas hold for any o and lse. */
  fill(x.o, ROWS * VALUES);
  for (int i = 0; i < ROWS; ++i) x.lse[i] = 2;
  CHECK(rung_attention_backward(context, &q, &k, &v, &o, &lse, &dout, &dq, &dk, &dv, NULL) ==
        RUNG_OK);
  expect(&x, 1 / sqrt(WIDTH), all, KEYS, &expected);
  SAME(got.dq, expected.dq, ROWS * WIDTH, 1e-5);
  SAME(got.dk, expected.dk, KEYS * WIDTH, 1e-5);
  SAME(got.dv, expected.dv, KEYS * VALUES, 1e-5);

  rung_attention_backward_options options;
  CHECK(rung_attention_backward_options_init(&options, sizeof options) == RUNG_OK);
  CHECK(options.scale == 0 && options.causal == 0 && options.window == 0);
  CHECK(options.key_lengths == NULL);
  options.scale = 0.5;
  options.causal = 1;
  options.key_lengths = &lengths;
  CHECK(rung_attention_backward(context, &q, &k, &v, &o, &lse, &dout, &dq, &dk, &dv, &options) ==
        RUNG_OK);
  expect(&x, 0.5, two, KEYS, &expected);
  SAME(got.dq, expected.dq, ROWS * WIDTH, 1e-5);
  SAME(got.dk, expected.dk, KEYS * WIDTH, 1e-5);
  SAME(got.dv, expected.dv, KEYS * VALUES, 1e-5);

  options.window = 1;
  CHECK(rung_attention_backward(context, &q, &k, &v, &o, &lse, &dout, &dq, &dk, &dv, &options) ==
        RUNG_OK);
  expect(&x, 0.5, two, 1, &expected);
  SAME(got.dq, expected.dq, ROWS * WIDTH, 1e-5);
  SAME(got.dk, expected.dk, KEYS * WIDTH, 1e-5);
  SAME(got.dv, expected.dv, KEYS * VALUES, 1e-5);
  options.window = 0;

  /* lse contains the sinks; the gradient of one is -sum exp(sink - lse) (dout o). */
  float sink[HEADS] = {-1, 1}, dsink[HEADS] = {0}, wanted[HEADS] = {0};
  const int64_t head_shape[] = {HEADS};
  const rung_tensor sinks = tensor_of(sink, RUNG_F32, 1, head_shape);
  const rung_tensor dsinks = tensor_of(dsink, RUNG_F32, 1, head_shape);
  options.sinks = &sinks;
  options.dsinks = &dsinks;
  CHECK(rung_attention_backward(context, &q, &k, &v, &o, &lse, &dout, &dq, &dk, &dv, &options) ==
        RUNG_OK);
  for (int i = 0; i < ROWS * VALUES; ++i) {
    const int head = i / (QUERIES * VALUES), query = i / VALUES % QUERIES;
    if (query < QUERIES - 2) continue; /* sees none of the two keys */
    wanted[head] -= (float)exp(sink[head] - 2.0) * x.dout[i] * x.o[i];
  }
  SAME(dsink, wanted, HEADS, 1e-5);
  options.dsinks = NULL;
  FAILS(rung_attention_backward(context, &q, &k, &v, &o, &lse, &dout, &dq, &dk, &dv, &options),
        RUNG_INVALID_ARGUMENT, "sinks alone", "dsinks");
  options.sinks = NULL;

  CHECK_OPTIONS(
      rung_attention_backward_options,
      rung_attention_backward(context, &q, &k, &v, &o, &lse, &dout, &dq, &dk, &dv, options));
  options.scale = -1;
  FAILS(rung_attention_backward(context, &q, &k, &v, &o, &lse, &dout, &dq, &dk, &dv, &options),
        RUNG_INVALID_ARGUMENT, "scale", "-1");
  FAILS(rung_attention_backward(context, &q, &k, &v, &o, NULL, &dout, &dq, &dk, &dv, NULL),
        RUNG_INVALID_ARGUMENT, "lse is", "NULL");
  FAILS(rung_attention_backward(context, &q, &k, &v, &o, &lse, &dout, &dq, &dv, &dk, NULL),
        RUNG_INVALID_ARGUMENT, "dk is", "accepted");
}
