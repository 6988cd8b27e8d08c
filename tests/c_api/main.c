/* SPDX-License-Identifier: Apache-2.0
 * A C99 program as a user would write one: uses every function of the C interface, checks the
 * results, and provokes errors to see that they come back as a status with a message that helps.
 * Exits 1 at the first thing that is wrong. */
#include "check.h"

#define OPERATOR(name) void check_##name(rung_context*);
#include "operators.inc" /* OPERATOR(gemm) ...; written by the build */
#undef OPERATOR

static void names(void) {
  CHECK(strcmp(rung_last_error(), "") == 0);
  char version[32];
  snprintf(version, sizeof version, "%d.%d.%d", RUNG_VERSION_MAJOR, RUNG_VERSION_MINOR,
           RUNG_VERSION_PATCH);
  CHECK(strcmp(rung_version(), version) == 0);
  CHECK(strcmp(rung_status_name(RUNG_OK), "ok") == 0);
  CHECK(strcmp(rung_status_name(RUNG_IO), "input/output error") == 0);
  CHECK(strcmp(rung_status_name((rung_status)1000), "unknown status") == 0);
  CHECK(strcmp(rung_dtype_name(RUNG_F32), "f32") == 0);
  CHECK(strcmp(rung_dtype_name(RUNG_U16), "u16") == 0);
  CHECK(strcmp(rung_dtype_name((rung_dtype)11), "unknown dtype") == 0);
  CHECK(rung_dtype_size(RUNG_BF16) == 2 && rung_dtype_size(RUNG_F64) == 8);
  CHECK(rung_dtype_size((rung_dtype)-1) == 0);
}

static void contexts(void) {
  rung_context* context = (rung_context*)&context;
  FAILS(rung_context_create((rung_backend)9, 0, NULL, &context), RUNG_INVALID_ARGUMENT,
        "backend is 9", "0 to 3");
  CHECK(context == NULL);
  FAILS(rung_context_create(RUNG_CPU, 0, NULL, NULL), RUNG_INVALID_ARGUMENT, "context", "NULL");
  FAILS(rung_context_create(RUNG_CPU, -5, NULL, &context), RUNG_INVALID_ARGUMENT, "threads is -5",
        "");
  FAILS(rung_context_create(RUNG_CPU, 0, &context, &context), RUNG_INVALID_ARGUMENT, "stream",
        "cpu");
  FAILS(rung_context_synchronize(NULL), RUNG_INVALID_ARGUMENT, "context", "NULL");
  rung_context_destroy(NULL);
  CHECK(rung_context_create(RUNG_CPU, 1, NULL, &context) == RUNG_OK);
  CHECK(rung_context_set_choice(context, RUNG_CHOICE_FASTEST) == RUNG_OK);
  FAILS(rung_context_set_choice(context, (rung_choice)2), RUNG_INVALID_ARGUMENT, "choice is 2",
        "0 to 1");
  FAILS(rung_context_set_choice(NULL, RUNG_CHOICE_FASTEST), RUNG_INVALID_ARGUMENT, "context",
        "NULL");
  CHECK(rung_context_set_tuning(context, RUNG_TUNING_REMEMBERED) == RUNG_OK);
  CHECK(rung_context_set_tuning(context, RUNG_TUNING_OFF) == RUNG_OK);
  FAILS(rung_context_set_tuning(context, (rung_tuning)3), RUNG_INVALID_ARGUMENT, "tuning is 3",
        "0 to 2");
  FAILS(rung_context_set_tuning(NULL, RUNG_TUNING_OFF), RUNG_INVALID_ARGUMENT, "context",
        "NULL");
  rung_context_destroy(context);
  CHECK(rung_backend_available(RUNG_CPU) == RUNG_OK);
  if (rung_backend_available(RUNG_CUDA) != RUNG_OK) {
    CHECK(strlen(rung_last_error()) > 5);
    FAILS(rung_context_create(RUNG_CUDA, 0, NULL, &context), RUNG_NOT_AVAILABLE, "", "");
  }
}

/* Owned tensors and copies between them and the program's memory, on one device. */
static void tensors(rung_device device) {
  const int64_t shape[2] = {2, 3}, turned_shape[2] = {3, 2}, turned_strides[2] = {1, 3};
  float values[6] = {0, 1, 2, 3, 4, 5}, back[6];
  rung_tensor* owned = NULL;
  CHECK(rung_tensor_create(RUNG_F32, 2, shape, device, &owned) == RUNG_OK && owned != NULL);
  CHECK(owned->data != NULL && owned->dtype == RUNG_F32 && owned->rank == 2);
  CHECK(owned->shape[0] == 2 && owned->shape[1] == 3);
  CHECK(owned->strides[0] == 3 && owned->strides[1] == 1);
  CHECK(owned->device.backend == device.backend && owned->device.index == device.index);
  CHECK(((uintptr_t)owned->data & 63) == 0);

  const rung_tensor x = tensor_of(values, RUNG_F32, 2, shape);
  CHECK(rung_copy(&x, owned) == RUNG_OK);
  rung_tensor turned = *owned;
  turned.shape = turned_shape;
  turned.strides = turned_strides;
  rung_tensor y = tensor_of(back, RUNG_F32, 2, turned_shape);
  CHECK(rung_copy(&turned, &y) == RUNG_OK);
  const float expected[6] = {0, 3, 1, 4, 2, 5};
  SAME(back, expected, 6, 0);

  FAILS(rung_copy(NULL, &y), RUNG_INVALID_ARGUMENT, "from", "NULL");
  FAILS(rung_copy(&x, NULL), RUNG_INVALID_ARGUMENT, "to", "NULL");
  FAILS(rung_copy(&x, &y), RUNG_INVALID_ARGUMENT, "shapes differ", "2x3");
  y = tensor_of(back, RUNG_F64, 2, shape);
  FAILS(rung_copy(&x, &y), RUNG_INVALID_ARGUMENT, "dtypes differ", "f64");
  rung_tensor_destroy(owned);

  /* No elements, and one: an address and a shape all the same. */
  const int64_t none[1] = {0};
  CHECK(rung_tensor_create(RUNG_I64, 1, none, device, &owned) == RUNG_OK && owned->shape[0] == 0);
  rung_tensor_destroy(owned);
  CHECK(rung_tensor_create(RUNG_U8, 0, NULL, device, &owned) == RUNG_OK && owned->rank == 0);
  CHECK(owned->data != NULL);
  rung_tensor_destroy(owned);
  rung_tensor_destroy(NULL);

  const int64_t negative[1] = {-1};
  owned = (rung_tensor*)&owned;
  FAILS(rung_tensor_create(RUNG_F32, 1, negative, device, &owned), RUNG_INVALID_ARGUMENT,
        "negative", "");
  CHECK(owned == NULL);
  FAILS(rung_tensor_create(RUNG_F32, 2, shape, device, NULL), RUNG_INVALID_ARGUMENT, "tensor",
        "NULL");
  FAILS(rung_tensor_create(RUNG_F32, 2, NULL, device, &owned), RUNG_INVALID_ARGUMENT, "shape",
        "NULL");
  FAILS(rung_tensor_create(RUNG_F32, 9, shape, device, &owned), RUNG_INVALID_ARGUMENT, "rank is 9",
        "0 to 8");
  FAILS(rung_tensor_create((rung_dtype)77, 2, shape, device, &owned), RUNG_INVALID_ARGUMENT,
        "dtype is 77", "0 to 10");
  device.backend = (rung_backend)4;
  FAILS(rung_tensor_create(RUNG_F32, 2, shape, device, &owned), RUNG_INVALID_ARGUMENT,
        "backend of device is 4", "0 to 3");
  device.backend = RUNG_CPU;
  device.index = 5;
  FAILS(rung_tensor_create(RUNG_F32, 2, shape, device, &owned), RUNG_INVALID_ARGUMENT,
        "device 5 does not exist", "accepted");
}

static void operators(rung_backend backend, int threads) {
  rung_context* context = NULL;
  CHECK(rung_context_create(backend, threads, NULL, &context) == RUNG_OK && context != NULL);
#define OPERATOR(name) check_##name(context);
#include "operators.inc"
#undef OPERATOR
  CHECK(rung_context_synchronize(context) == RUNG_OK);
  rung_context_destroy(context);
}

int main(void) {
  names();
  contexts();
  const rung_device host = {RUNG_CPU, 0}, simulated = {RUNG_SIMT, 0};
  tensors(host);
  operators(RUNG_CPU, 1);
  operators(RUNG_CPU, 2);
  if (rung_backend_available(RUNG_SIMT) == RUNG_OK) {
    tensors(simulated);
    operators(RUNG_SIMT, 0);
  }
  puts("the C interface works");
  return 0;
}
