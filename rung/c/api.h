/* SPDX-License-Identifier: Apache-2.0
 * The C interface without its operators: status codes, tensors, contexts. Programs include
 * rung/rung.h, which adds the operators.
 */
#ifndef RUNG_CORE_C_API_H
#define RUNG_CORE_C_API_H

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

/* Existing numbers never change; new ones may be added. */
typedef enum rung_status {
  RUNG_OK = 0,
  RUNG_INVALID_ARGUMENT = 1, /* the call is invalid on every machine */
  RUNG_UNSUPPORTED = 2,      /* the call is valid, but no kernel implements it */
  RUNG_NOT_AVAILABLE = 3,    /* needs a device, driver or library that this machine lacks */
  RUNG_OUT_OF_MEMORY = 4,
  RUNG_IO = 5,
  RUNG_DEVICE = 6,  /* the GPU or the simulated GPU reported a failure */
  RUNG_INTERNAL = 7 /* a bug in rung */
} rung_status;

typedef enum rung_backend {
  RUNG_CPU = 0,
  RUNG_CUDA = 1,
  RUNG_SIMT = 2,
  RUNG_OPENCL = 3
} rung_backend;

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

typedef struct rung_device {
  rung_backend backend;
  int index;
} rung_device;

/* Description of a tensor in the caller's memory, with at most 8 axes. Strides are in elements, may
 * be zero (broadcast) and in any order; NULL strides mean C-contiguous. Overlap is determined from
 * address ranges, from the lowest to the highest byte of a tensor, so that tensors whose elements
 * interleave are rejected. */
typedef struct rung_tensor {
  void* data;
  rung_dtype dtype;
  int rank;
  const int64_t* shape;
  const int64_t* strides;
  rung_device device;
} rung_tensor;

typedef struct rung_context rung_context;
typedef enum rung_choice { RUNG_CHOICE_REPEATABLE = 0, RUNG_CHOICE_FASTEST = 1 } rung_choice;
typedef enum rung_tuning {
  RUNG_TUNING_OFF = 0,
  RUNG_TUNING_REMEMBERED = 1,
  RUNG_TUNING_FIRST_CALL = 2
} rung_tuning;

/* Returns the name of a dtype, such as "f32"; "unknown dtype" for other numbers. */
RUNG_C_API const char* rung_dtype_name(rung_dtype dtype);
/* Returns the bytes of one element; 0 for other numbers. */
RUNG_C_API size_t rung_dtype_size(rung_dtype dtype);

/* Creates a tensor that owns its memory on a device, C-contiguous and uninitialized, aligned to 64
 * bytes (256 on a GPU). Its pointers data, shape and strides are valid until it is destroyed.
 * *tensor is set to NULL on failure. */
RUNG_C_API rung_status rung_tensor_create(rung_dtype dtype, int rank, const int64_t* shape,
                                          rung_device device, rung_tensor** tensor);
/* Destroys a tensor made by rung_tensor_create. Destroying it twice, or using it afterwards, is
 * undefined, as with free(). NULL is allowed and does nothing. Work that uses the tensor must have
 * finished. */
RUNG_C_API void rung_tensor_destroy(rung_tensor* tensor);

/* Copies the elements of `from` to `to`, which must have the same shape and dtype, and must not
 * overlap. Strides and devices are arbitrary, for example host and GPU. The copy is complete on
 * return, but does not wait for work enqueued on a context (rung_context_synchronize). */
RUNG_C_API rung_status rung_copy(const rung_tensor* from, const rung_tensor* to);

/* Returns the version of the loaded library, such as "0.1.0"; the macros have the version of the
 * headers. */
RUNG_C_API const char* rung_version(void);

/* Returns the message of this thread's last failed call; "" if no call failed. Never NULL; valid
 * until this thread's next call. */
RUNG_C_API const char* rung_last_error(void);

/* Returns the name of a status, such as "invalid argument"; "unknown status" for other numbers. */
RUNG_C_API const char* rung_status_name(rung_status status);

/* Returns RUNG_OK if the backend can run on this machine, else RUNG_NOT_AVAILABLE;
 * rung_last_error() returns the reason. */
RUNG_C_API rung_status rung_backend_available(rung_backend backend);

/* Creates a context. device_or_threads: for RUNG_CUDA the index of the GPU, for RUNG_OPENCL the
 * index of the device over all platforms; otherwise the number of threads, 0 for all cores that
 * this process may use. stream: for RUNG_CUDA a cudaStream_t, or NULL for the default stream; must
 * be NULL for other backends. *context is set to NULL on failure. */
RUNG_C_API rung_status rung_context_create(rung_backend backend, int device_or_threads,
                                           void* stream, rung_context** context);
/* Destroys a context made by rung_context_create. Destroying it twice, or using it afterwards, is
 * undefined, as with free(). NULL is allowed and does nothing. Enqueued work must have finished
 * (rung_context_synchronize). */
RUNG_C_API void rung_context_destroy(rung_context* context);
/* Sets the rule by which calls on a CPU choose among kernels, which sum in different orders.
 * RUNG_CHOICE_REPEATABLE (default): by shapes, layouts and options only, so that results are
 * bitwise equal for all thread counts. RUNG_CHOICE_FASTEST: also by the thread count, so that
 * results may differ between thread counts. */
RUNG_C_API rung_status rung_context_set_choice(rung_context* context, rung_choice choice);
/* Sets how a call's kernel is chosen. The initial value is that of the environment variable
 * RUNG_TUNE (off, remembered or first_call; default off). RUNG_TUNING_OFF: by estimates.
 * RUNG_TUNING_REMEMBERED: from the tuning file if it has an entry for the call, else by estimates.
 * RUNG_TUNING_FIRST_CALL: a call without an entry measures the candidates, on copies of its
 * outputs, and writes the entry; this takes up to a quarter of a second besides one or two runs of
 * each candidate, and waits for all work of a GPU. The file is RUNG_TUNE_FILE, else
 * rung/tuning.jsonl in XDG_CACHE_HOME or ~/.cache. Measured kernels may sum in another order than
 * estimated ones. */
RUNG_C_API rung_status rung_context_set_tuning(rung_context* context, rung_tuning tuning);
/* Waits for all work enqueued on the context; returns the error of work that failed. */
RUNG_C_API rung_status rung_context_synchronize(rung_context* context);

#ifdef __cplusplus
}
#endif

#endif
