/* SPDX-License-Identifier: Apache-2.0
 * attention in C: plain, causal with shared heads and lse, key lengths, rules of the scores, packed
 * rows, pages, and wrong calls. */
#include <math.h>
#include <stdlib.h>

#include "tests/c_api/check.h"

void check_attention(rung_context* context);

enum { HEADS = 2, QUERIES = 3, KEYS = 4, WIDTH = 5, VALUES = 2 };

typedef struct {
  double soft_cap; /* 0: none */
  const float *slopes, *bias, *sinks;
} score_rule;

static double ruled(const score_rule* rule, double score, int row, int j) {
  if (rule == NULL) return score;
  if (rule->soft_cap != 0) score = rule->soft_cap * tanh(score / rule->soft_cap);
  score -= rule->slopes[row / QUERIES] * abs(j - (row % QUERIES + KEYS - QUERIES));
  return score + rule->bias[row * KEYS + j];
}

/* One head of k and v; query i sees the last `window` of the first seen[i] keys. */
static void expect(const float* q, const float* k, const float* v, double scale,
                   const score_rule* rule, const int* seen, int window, float* o, float* lse) {
  for (int row = 0; row < HEADS * QUERIES; ++row) {
    double weight[KEYS], sum = rule == NULL ? 0 : exp(rule->sinks[row / QUERIES]);
    const int count = seen[row % QUERIES], first = count > window ? count - window : 0;
    for (int j = first; j < count; ++j) {
      double score = 0;
      for (int d = 0; d < WIDTH; ++d) score += (double)q[row * WIDTH + d] * k[j * WIDTH + d];
      weight[j] = exp(ruled(rule, scale * score, row, j));
      sum += weight[j];
    }
    for (int c = 0; c < VALUES; ++c) {
      double value = 0;
      for (int j = first; j < count; ++j) value += weight[j] * v[j * VALUES + c];
      o[row * VALUES + c] = count == 0 ? 0 : (float)(value / sum);
    }
    lse[row] = (float)log(sum);
  }
}

void check_attention(rung_context* context) {
  const int64_t q_shape[4] = {1, HEADS, QUERIES, WIDTH}, k_shape[4] = {1, 1, KEYS, WIDTH};
  const int64_t v_shape[4] = {1, 1, KEYS, VALUES}, o_shape[4] = {1, HEADS, QUERIES, VALUES};
  const int64_t lse_shape[3] = {1, HEADS, QUERIES}, length_shape[1] = {1};
  const int all[QUERIES] = {KEYS, KEYS, KEYS}, causal[QUERIES] = {2, 3, 4},
            two[QUERIES] = {0, 1, 2};
  float q[HEADS * QUERIES * WIDTH], k[KEYS * WIDTH], v[KEYS * VALUES];
  float o[HEADS * QUERIES * VALUES], expected[HEADS * QUERIES * VALUES];
  float lse[HEADS * QUERIES], expected_lse[HEADS * QUERIES];
  int32_t length = 2;
  fill(q, HEADS * QUERIES * WIDTH);
  fill(k, KEYS * WIDTH);
  fill(v, KEYS * VALUES);
  for (int i = 0; i < KEYS * WIDTH; ++i) k[i] = (float)sin(i);
  const rung_tensor tq = tensor_of(q, RUNG_F32, 4, q_shape),
                    tk = tensor_of(k, RUNG_F32, 4, k_shape);
  const rung_tensor tv = tensor_of(v, RUNG_F32, 4, v_shape),
                    to = tensor_of(o, RUNG_F32, 4, o_shape);
  const rung_tensor tlse = tensor_of(lse, RUNG_F32, 3, lse_shape);
  const rung_tensor tlength = tensor_of(&length, RUNG_I32, 1, length_shape);

  CHECK(rung_attention(context, &tq, &tk, &tv, &to, NULL) == RUNG_OK);
  expect(q, k, v, 1 / sqrt(WIDTH), NULL, all, KEYS, expected, expected_lse);
  SAME(o, expected, HEADS * QUERIES * VALUES, 1e-5);

  rung_attention_options options;
  CHECK(rung_attention_options_init(&options, sizeof options) == RUNG_OK);
  CHECK(options.scale == 0 && options.causal == 0 && options.window == 0 && options.lse == NULL);
  options.scale = 0.5;
  options.causal = 1;
  options.lse = &tlse;
  CHECK(rung_attention(context, &tq, &tk, &tv, &to, &options) == RUNG_OK);
  expect(q, k, v, 0.5, NULL, causal, KEYS, expected, expected_lse);
  SAME(o, expected, HEADS * QUERIES * VALUES, 1e-5);
  SAME(lse, expected_lse, HEADS * QUERIES, 1e-5);

  options.window = 2;
  CHECK(rung_attention(context, &tq, &tk, &tv, &to, &options) == RUNG_OK);
  expect(q, k, v, 0.5, NULL, causal, 2, expected, expected_lse);
  SAME(o, expected, HEADS * QUERIES * VALUES, 1e-5);
  SAME(lse, expected_lse, HEADS * QUERIES, 1e-5);
  options.window = 0;

  options.lse = NULL;
  options.key_lengths = &tlength;
  CHECK(rung_attention(context, &tq, &tk, &tv, &to, &options) == RUNG_OK);
  expect(q, k, v, 0.5, NULL, two, KEYS, expected, expected_lse);
  SAME(o, expected, HEADS * QUERIES * VALUES, 1e-5);

  options.key_lengths = NULL;
  options.causal = 0;

  const int64_t heads_shape[1] = {HEADS}, bias_shape[4] = {1, HEADS, QUERIES, KEYS};
  float slopes[HEADS] = {0.5F, 0.25F}, sinks[HEADS] = {-1, 1}, bias[HEADS * QUERIES * KEYS];
  fill(bias, HEADS * QUERIES * KEYS);
  const rung_tensor tslopes = tensor_of(slopes, RUNG_F32, 1, heads_shape),
                    tsinks = tensor_of(sinks, RUNG_F32, 1, heads_shape);
  const rung_tensor tbias = tensor_of(bias, RUNG_F32, 4, bias_shape);
  const score_rule rule = {2, slopes, bias, sinks};
  options.soft_cap = 2;
  options.slopes = &tslopes;
  options.bias = &tbias;
  options.sinks = &tsinks;
  options.lse = &tlse;
  CHECK(rung_attention(context, &tq, &tk, &tv, &to, &options) == RUNG_OK);
  expect(q, k, v, 0.5, &rule, all, KEYS, expected, expected_lse);
  SAME(o, expected, HEADS * QUERIES * VALUES, 1e-5);
  SAME(lse, expected_lse, HEADS * QUERIES, 1e-5);
  options.soft_cap = 0;
  options.slopes = options.bias = options.sinks = NULL;

  /* Query 0 belongs to the first two keys, queries 1 and 2 to the last two. */
  const int64_t offsets_shape[1] = {3};
  const int first_two[QUERIES] = {2, KEYS, KEYS};
  int32_t query_offsets[3] = {0, 1, 3}, key_offsets[3] = {0, 2, 4};
  const rung_tensor tquery_offsets = tensor_of(query_offsets, RUNG_I32, 1, offsets_shape),
                    tkey_offsets = tensor_of(key_offsets, RUNG_I32, 1, offsets_shape);
  options.query_offsets = &tquery_offsets;
  options.key_offsets = &tkey_offsets;
  CHECK(rung_attention(context, &tq, &tk, &tv, &to, &options) == RUNG_OK);
  expect(q, k, v, 0.5, NULL, first_two, 2, expected, expected_lse);
  SAME(o, expected, HEADS * QUERIES * VALUES, 1e-5);
  SAME(lse, expected_lse, HEADS * QUERIES, 1e-5);
  options.query_offsets = options.key_offsets = NULL;

  /* Pages of two keys; the two that count are in page 1. */
  const int64_t pages_shape[4] = {2, 1, 2, WIDTH}, page_values_shape[4] = {2, 1, 2, VALUES};
  const int64_t table_shape[2] = {1, 2};
  int32_t table[2] = {1, 0};
  const rung_tensor tpages = tensor_of(k, RUNG_F32, 4, pages_shape),
                    tpage_values = tensor_of(v, RUNG_F32, 4, page_values_shape);
  const rung_tensor ttable = tensor_of(table, RUNG_I32, 2, table_shape);
  options.page_table = &ttable;
  options.key_lengths = &tlength;
  CHECK(rung_attention(context, &tq, &tpages, &tpage_values, &to, &options) == RUNG_OK);
  expect(q, k, v, 0.5, NULL, all, 2, expected, expected_lse);
  SAME(o, expected, HEADS * QUERIES * VALUES, 1e-5);
  options.page_table = options.key_lengths = NULL;
  options.lse = NULL;

  options.soft_cap = -3;
  FAILS(rung_attention(context, &tq, &tk, &tv, &to, &options), RUNG_INVALID_ARGUMENT, "soft_cap",
        "-3");
  options.soft_cap = 0;
  options.sinks = &tlse;
  FAILS(rung_attention(context, &tq, &tk, &tv, &to, &options), RUNG_INVALID_ARGUMENT, "sinks",
        "accepted");
  options.sinks = NULL;

  /* Keys and values of e4m3, of which 1, 2 and 4 have the codes 56, 64 and 72. */
  const int64_t scales_shape[2] = {1, 1};
  unsigned char small_k[KEYS * WIDTH], small_v[KEYS * VALUES];
  float k_scale = 0.5F, v_scale = -2;
  for (int i = 0; i < KEYS * WIDTH; ++i) {
    small_k[i] = (unsigned char)(56 + 8 * (i % 3));
    k[i] = 0.5F * (float)(1 << i % 3);
  }
  for (int i = 0; i < KEYS * VALUES; ++i) {
    small_v[i] = (unsigned char)(56 + 8 * (i % 3));
    v[i] = -2 * (float)(1 << i % 3);
  }
  const rung_tensor tsmall_k = tensor_of(small_k, RUNG_E4M3, 4, k_shape),
                    tsmall_v = tensor_of(small_v, RUNG_E4M3, 4, v_shape);
  const rung_tensor tk_scale = tensor_of(&k_scale, RUNG_F32, 2, scales_shape),
                    tv_scale = tensor_of(&v_scale, RUNG_F32, 2, scales_shape);
  options.k_scales = &tk_scale;
  options.v_scales = &tv_scale;
  CHECK(rung_attention(context, &tq, &tsmall_k, &tsmall_v, &to, &options) == RUNG_OK);
  expect(q, k, v, 0.5, NULL, all, KEYS, expected, expected_lse);
  SAME(o, expected, HEADS * QUERIES * VALUES, 1e-5);
  FAILS(rung_attention(context, &tq, &tk, &tv, &to, &options), RUNG_INVALID_ARGUMENT, "k_scales",
        "e4m3");
  options.k_scales = options.v_scales = NULL;

  CHECK_OPTIONS(rung_attention_options, rung_attention(context, &tq, &tk, &tv, &to, options));
  options.window = -2;
  FAILS(rung_attention(context, &tq, &tk, &tv, &to, &options), RUNG_INVALID_ARGUMENT, "window",
        "-2");
  options.scale = -1;
  FAILS(rung_attention(context, &tq, &tk, &tv, &to, &options), RUNG_INVALID_ARGUMENT, "scale",
        "-1");
  FAILS(rung_attention(context, &tq, NULL, &tv, &to, NULL), RUNG_INVALID_ARGUMENT, "k is", "NULL");
  FAILS(rung_attention(context, &tq, &tv, &tv, &to, NULL), RUNG_INVALID_ARGUMENT, "k is",
        "accepted");
}
