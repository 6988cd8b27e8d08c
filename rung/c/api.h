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

/* Numbers never change; new ones may come. */
typedef enum rung_status {
  RUNG_OK = 0,
  RUNG_INVALID_ARGUMENT = 1, /* the call is wrong whatever the machine */
  RUNG_UNSUPPORTED = 2,      /* a valid call that nothing here implements */
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

/* The caller's memory, described. Strides count elements, may be zero (broadcast) and in any
 * order; NULL strides mean C-contiguous. At most 8 axes. Overlap is decided by address ranges, from
 * the lowest to the highest byte that a tensor touches, so that tensors whose elements interleave
 * are refused. */
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

/* "f32" and so on; "unknown dtype" for other numbers. */
RUNG_C_API const char* rung_dtype_name(rung_dtype dtype);
/* Bytes of one element; 0 for other numbers. */
RUNG_C_API size_t rung_dtype_size(rung_dtype dtype);

/* A tensor with memory of its own on a device, C-contiguous and uninitialized: 64-byte aligned, 256
 * on a GPU. Its data, shape and strides stay where they are until it is destroyed. *tensor is set
 * to NULL on failure. */
RUNG_C_API rung_status rung_tensor_create(rung_dtype dtype, int rank, const int64_t* shape,
                                          rung_device device, rung_tensor** tensor);
/* Only what rung_tensor_create made, and once: destroying it twice, or using it afterwards, is
 * undefined, as with free(). NULL is allowed and does nothing. Work that uses it should be done. */
RUNG_C_API void rung_tensor_destroy(rung_tensor* tensor);

/* Copies the elements of `from` to `to`: one shape and dtype, any strides, any devices, a copy
 * between host and GPU too. They must not overlap. Done when it returns; it does not wait for work
 * enqueued on a context, see rung_context_synchronize. */
RUNG_C_API rung_status rung_copy(const rung_tensor* from, const rung_tensor* to);

/* "0.1.0", of the library that is loaded; the macros are those compiled against. */
RUNG_C_API const char* rung_version(void);

/* What went wrong in the last call of this thread that failed; "" when none did. Valid until this
 * thread's next call. Never NULL. */
RUNG_C_API const char* rung_last_error(void);

/* "invalid argument" and so on; "unknown status" for other numbers. */
RUNG_C_API const char* rung_status_name(rung_status status);

/* RUNG_OK when the backend can run here; else RUNG_NOT_AVAILABLE: rung_last_error() says why. */
RUNG_C_API rung_status rung_backend_available(rung_backend backend);

/* device_or_threads: for RUNG_CUDA the index of the GPU, for RUNG_OPENCL of the device, counted
 * over all platforms; otherwise the number of threads, 0 for every core this process may use.
 * stream: a cudaStream_t, or NULL for the default stream; NULL for other backends. *context is set
 * to NULL on failure. */
RUNG_C_API rung_status rung_context_create(rung_backend backend, int device_or_threads,
                                           void* stream, rung_context** context);
/* Only what rung_context_create made, and once: destroying it twice, or using it afterwards, is
 * undefined, as with free(). NULL is allowed and does nothing. Enqueued work should be done: see
 * rung_context_synchronize. */
RUNG_C_API void rung_context_destroy(rung_context* context);
/* Sets the rule by which calls on a CPU choose among kernels, which add in different orders.
 * RUNG_CHOICE_REPEATABLE, the default: by shapes, layouts and options alone, so that any number of
 * threads gives the same bits. RUNG_CHOICE_FASTEST: also by the number of threads, so that another
 * number may give other bits. */
RUNG_C_API rung_status rung_context_set_choice(rung_context* context, rung_choice choice);
/* Sets where a call's kernel comes from; a new context takes the word of the environment variable
 * RUNG_TUNE (off, remembered or first_call; default off). RUNG_TUNING_OFF: from estimates.
 * RUNG_TUNING_REMEMBERED: from the tuning file where it has the call. RUNG_TUNING_FIRST_CALL: what
 * the file does not have is measured, on copies of what the call writes, and written to it; that
 * takes up to a quarter of a second beside one or two runs of each candidate, and waits for all
 * work of a GPU. The file is RUNG_TUNE_FILE, else rung/tuning.jsonl in XDG_CACHE_HOME or ~/.cache.
 * Measured kernels may add in another order than estimated ones. */
RUNG_C_API rung_status rung_context_set_tuning(rung_context* context, rung_tuning tuning);
/* Waits for all enqueued work; returns what went wrong in it. */
RUNG_C_API rung_status rung_context_synchronize(rung_context* context);

#ifdef __cplusplus
}
#endif

#endif
