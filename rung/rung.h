/* SPDX-License-Identifier: Apache-2.0
 * rung's C interface: contexts, tensors by pointer, operators. Plain C99.
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

#include "rung/c/api.h"
#include "rung/core/version.h"
#include "rung/ops/all.h"

#endif
