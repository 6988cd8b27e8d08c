// SPDX-License-Identifier: Apache-2.0
// Contexts, tensors and errors of the C interface.
#include "rung/c/api.hpp"

#include <pthread.h>

#include <cstdlib>
#include <cstring>
#include <span>
#include <utility>

namespace rung::c_api {
namespace {

static_assert(RUNG_INVALID_ARGUMENT == static_cast<int>(ErrorCode::invalid_argument));
static_assert(RUNG_INTERNAL == static_cast<int>(ErrorCode::internal));
static_assert(RUNG_U16 == static_cast<int>(DType::u16));
static_assert(RUNG_SIMT == static_cast<int>(Backend::simt));
static_assert(RUNG_OPENCL == static_cast<int>(Backend::opencl));

/// Message of this thread's last failure: a copy if memory allows, else a literal. It has no
/// destructor: the C library aborts the process if it lacks memory to register one.
struct LastError {
  char* text = nullptr;
  const char* shown = "";
};
constinit thread_local LastError last_error;

/// Key whose destructor frees the copy of an exiting thread, and clears last_error, since
/// destructors of other keys may call this library later.
struct Copies {
  pthread_key_t key{};
  bool known = pthread_key_create(&key, [](void*) {
                 last_error.shown = "";
                 std::free(std::exchange(last_error.text, nullptr));
               }) == 0;
};

/// Returns a copy of the message that is freed when the thread exits; null if there is no memory.
char* kept_copy(const char* message) noexcept {
  static const Copies copies;
  char* const copy = copies.known ? strdup(message) : nullptr;
  if (copy != nullptr && pthread_setspecific(copies.key, copy) != 0) {
    std::free(copy);
    return nullptr;
  }
  return copy;
}

}  // namespace

rung_status report(ErrorCode code, const char* message) noexcept {
  if (char* const copy = kept_copy(message); copy != nullptr) {
    std::free(std::exchange(last_error.text, copy));
    last_error.shown = copy;
  } else {
    last_error.shown = "out of memory, and none left to say where";
  }
  return static_cast<rung_status>(code);
}

void invalid(const std::string& message) { throw Error(ErrorCode::invalid_argument, message); }

std::string Checked::text() const { return of == nullptr ? what : what + std::string(" of ") + of; }

void require(const void* pointer, Checked name) {
  if (pointer == nullptr) invalid(name.text() + " is NULL");
}

TensorRef reference(const rung_tensor* tensor, const char* name) {
  require(tensor, {name});
  const auto dtype = checked_enum(tensor->dtype, DType::u16, {"dtype", name});
  const auto backend = checked_enum(tensor->device.backend, Backend::opencl, {"backend", name});
  if (tensor->rank < 0 || tensor->rank > max_rank) {
    invalid(Checked{"rank", name}.text() + " is " + std::to_string(tensor->rank) +
            "; accepted: 0 to " + std::to_string(max_rank));
  }
  const auto rank = static_cast<std::size_t>(tensor->rank);
  if (rank > 0) require(tensor->shape, {"shape", name});
  const Extents shape(std::span<const std::int64_t>(tensor->shape, rank));
  const Device device{backend, tensor->device.index};
  TensorRef made;
  try {
    made = tensor->strides == nullptr
               ? TensorRef(tensor->data, dtype, shape, device)
               : TensorRef(tensor->data, dtype, shape,
                           Extents(std::span<const std::int64_t>(tensor->strides, rank)), device);
    static_cast<void>(made.size());  // throws for negative and overflowing extents
  } catch (const Error& error) {
    invalid(name + std::string(": ") + error.what());
  }
  if (!made.empty()) require(tensor->data, {"data", name});
  return made;
}

}  // namespace rung::c_api

using namespace rung::c_api;
using rung::Error;
using rung::ErrorCode;

extern "C" {

const char* rung_version(void) { return RUNG_VERSION; }

const char* rung_last_error(void) { return last_error.shown; }

const char* rung_status_name(rung_status status) {
  const int number = number_in(status);
  if (number == RUNG_OK) return "ok";
  if (number < RUNG_OK || number > RUNG_INTERNAL) return "unknown status";
  return rung::to_string(static_cast<ErrorCode>(number));
}

rung_status rung_backend_available(rung_backend backend) {
  return guarded([&] {
    const auto checked = checked_enum(backend, rung::Backend::opencl, {"backend"});
    if (const rung::Availability here = rung::available(checked); !here) {
      throw Error(ErrorCode::not_available, here.why);
    }
  });
}

rung_status rung_context_create(rung_backend backend, int device_or_threads, void* stream,
                                rung_context** context) {
  if (context != nullptr) *context = nullptr;
  return guarded([&] {
    require(context, {"context"});
    const auto checked = checked_enum(backend, rung::Backend::opencl, {"backend"});
    if (checked != rung::Backend::cuda && stream != nullptr) {
      invalid(std::string("stream is given, but backend is ") + rung::to_string(checked) +
              "; only cuda takes one");
    }
    const auto make = [&] {
      if (checked == rung::Backend::cuda) return rung::Context::cuda(device_or_threads, stream);
      if (rung::in_host_memory(checked)) return rung::Context::on(checked, device_or_threads);
      return rung::Context::on_device({checked, device_or_threads});
    };
    *context = new rung_context{make()};
  });
}

void rung_context_destroy(rung_context* context) { delete context; }

rung_status rung_context_set_choice(rung_context* context, rung_choice choice) {
  return guarded([&] {
    require(context, {"context"});
    context->context.set_choice(checked_enum(choice, rung::Choice::fastest, {"choice"}));
  });
}

rung_status rung_context_set_tuning(rung_context* context, rung_tuning tuning) {
  return guarded([&] {
    require(context, {"context"});
    context->context.set_tuning(checked_enum(tuning, rung::Tuning::first_call, {"tuning"}));
  });
}

rung_status rung_context_synchronize(rung_context* context) {
  return guarded([&] {
    require(context, {"context"});
    context->context.synchronize();
  });
}

}  // extern "C"
