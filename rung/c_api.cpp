// SPDX-License-Identifier: Apache-2.0
// The C interface over the C++ one: checks what C cannot, and turns exceptions into codes.
#include <algorithm>
#include <cstddef>
#include <cstring>
#include <exception>
#include <new>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "rung/core/context.hpp"
#include "rung/ops/gemm/gemm.hpp"
#include "rung/rung.h"

struct rung_context {
  rung::Context context;
};

namespace {

using rung::Error;
using rung::ErrorCode;

static_assert(RUNG_INVALID_ARGUMENT == static_cast<int>(ErrorCode::invalid_argument));
static_assert(RUNG_INTERNAL == static_cast<int>(ErrorCode::internal));
static_assert(RUNG_U16 == static_cast<int>(rung::DType::u16));
static_assert(RUNG_SIMT == static_cast<int>(rung::Backend::simt));
static_assert(RUNG_ACTIVATION_TANH == static_cast<int>(rung::Activation::tanh));
static_assert(RUNG_PRECISION_TF32 == static_cast<int>(rung::Precision::tf32));

#define RUNG_TEXT_OF(x) #x
#define RUNG_TEXT(x) RUNG_TEXT_OF(x)
constexpr const char* version = RUNG_TEXT(RUNG_VERSION_MAJOR) "." RUNG_TEXT(
    RUNG_VERSION_MINOR) "." RUNG_TEXT(RUNG_VERSION_PATCH);
#undef RUNG_TEXT
#undef RUNG_TEXT_OF

/// The message of this thread's last failure. A string where memory allows, else a literal.
struct LastError {
  std::string text;
  const char* shown = "";
};
thread_local LastError last_error;

rung_status report(ErrorCode code, const char* message) noexcept {
  try {
    last_error.text = message;
    last_error.shown = last_error.text.c_str();
  } catch (...) {
    last_error.shown = "out of memory, and none left to say where";
  }
  return static_cast<rung_status>(code);
}

/// Runs body; no exception leaves. A call that succeeds leaves the last message as it was.
template <class Body>
rung_status guarded(const Body& body) noexcept {
  try {
    body();
    return RUNG_OK;
  } catch (const Error& error) {
    return report(error.code(), error.what());
  } catch (const std::bad_alloc&) {
    return report(ErrorCode::out_of_memory, "the host has no memory left");
  } catch (const std::exception& error) {
    return report(ErrorCode::internal, error.what());
  } catch (...) {
    return report(ErrorCode::internal, "an unknown exception");
  }
}

[[noreturn]] void invalid(const std::string& message) {
  throw Error(ErrorCode::invalid_argument, message);
}

void require(const void* pointer, const char* name) {
  if (pointer == nullptr) invalid(std::string(name) + " is NULL");
}

/// The number in a C enumeration. C may store any, but C++ may only load those near the named ones.
template <class Enum>
int number_in(const Enum& value) {
  int number = 0;
  static_assert(sizeof number == sizeof value);
  std::memcpy(&number, &value, sizeof number);
  return number;
}

/// One of 0 to `last`, or an Error.
template <class To, class From>
To checked_enum(const From& value, To last, const std::string& name) {
  const int number = number_in(value);
  if (number < 0 || number > static_cast<int>(last)) {
    invalid(name + " is " + std::to_string(number) + "; accepted: 0 to " +
            std::to_string(static_cast<int>(last)));
  }
  return static_cast<To>(number);
}

rung::TensorRef reference(const rung_tensor* tensor, const char* name) {
  require(tensor, name);
  const std::string of = std::string(" of ") + name;
  const auto dtype = checked_enum(tensor->dtype, rung::DType::u16, "dtype" + of);
  const auto backend = checked_enum(tensor->device.backend, rung::Backend::simt, "backend" + of);
  if (tensor->rank < 0 || tensor->rank > rung::max_rank) {
    invalid("rank" + of + " is " + std::to_string(tensor->rank) + "; accepted: 0 to " +
            std::to_string(rung::max_rank));
  }
  const auto rank = static_cast<std::size_t>(tensor->rank);
  if (rank > 0) require(tensor->shape, ("shape" + of).c_str());
  const rung::Extents shape(std::span<const std::int64_t>(tensor->shape, rank));
  bool empty = false;
  try {
    empty = shape.product() == 0;
  } catch (const Error& error) {
    invalid(name + std::string(": ") + error.what());
  }
  if (!empty) require(tensor->data, ("data" + of).c_str());
  const rung::Device device{backend, tensor->device.index};
  if (tensor->strides == nullptr) return {tensor->data, dtype, shape, device};
  const rung::Extents strides(std::span<const std::int64_t>(tensor->strides, rank));
  return {tensor->data, dtype, shape, strides, device};
}

rung_gemm_options default_options() {
  rung_gemm_options options{};
  options.size = sizeof options;
  options.alpha = 1.0;
  return options;
}

/// What the program knows of the options, over the defaults of what it does not.
rung_gemm_options complete(const rung_gemm_options* given) {
  rung_gemm_options options = default_options();
  if (given == nullptr) return options;
  // The structure of version 0.1 is the smallest there ever was.
  constexpr std::size_t smallest = offsetof(rung_gemm_options, rung) + sizeof(const char*);
  if (given->size < smallest) {
    invalid("size of options is " + std::to_string(given->size) +
            "; call rung_gemm_options_init first, which sets at least " + std::to_string(smallest));
  }
  if (given->size > sizeof options) {
    // A newer program: what this library does not know must be off.
    const auto* bytes = reinterpret_cast<const unsigned char*>(given);
    for (std::size_t byte = sizeof options; byte < given->size; ++byte) {
      if (bytes[byte] != 0) {
        throw Error(ErrorCode::unsupported, "options use a field that this library, rung " +
                                                std::string(version) + ", does not know");
      }
    }
  }
  std::memcpy(&options, given, std::min(given->size, sizeof options));
  return options;
}

}  // namespace

extern "C" {

const char* rung_version(void) { return version; }

const char* rung_last_error(void) { return last_error.shown; }

const char* rung_status_name(rung_status status) {
  const int number = number_in(status);
  if (number == RUNG_OK) return "ok";
  if (number < RUNG_OK || number > RUNG_INTERNAL) return "unknown status";
  return rung::to_string(static_cast<ErrorCode>(number));
}

rung_status rung_backend_available(rung_backend backend) {
  return guarded([&] {
    const auto checked = checked_enum(backend, rung::Backend::simt, "backend");
    if (const rung::Availability here = rung::available(checked); !here) {
      throw Error(ErrorCode::not_available, here.why);
    }
  });
}

rung_status rung_context_create(rung_backend backend, int device_or_threads, void* stream,
                                rung_context** context) {
  if (context != nullptr) *context = nullptr;
  return guarded([&] {
    require(context, "context");
    const auto checked = checked_enum(backend, rung::Backend::simt, "backend");
    if (checked != rung::Backend::cuda && stream != nullptr) {
      invalid(std::string("stream is given, but backend is ") + rung::to_string(checked) +
              "; only cuda takes one");
    }
    rung::Context made = checked == rung::Backend::cuda
                             ? rung::Context::cuda(device_or_threads, stream)
                             : rung::Context::on(checked, device_or_threads);
    *context = new rung_context{std::move(made)};
  });
}

void rung_context_destroy(rung_context* context) { delete context; }

rung_status rung_context_synchronize(rung_context* context) {
  return guarded([&] {
    require(context, "context");
    context->context.synchronize();
  });
}

rung_status rung_gemm_options_init(rung_gemm_options* options, size_t size) {
  return guarded([&] {
    require(options, "options");
    if (size < sizeof options->size) {
      invalid("size is " + std::to_string(size) + "; pass sizeof(rung_gemm_options)");
    }
    // A newer program's structure may be longer than ours: what we do not know is zero, off.
    rung_gemm_options defaults = default_options();
    defaults.size = size;
    std::memset(options, 0, size);
    std::memcpy(options, &defaults, std::min(size, sizeof defaults));
  });
}

rung_status rung_gemm(rung_context* context, const rung_tensor* a, const rung_tensor* b,
                      const rung_tensor* c, const rung_gemm_options* options) {
  return guarded([&] {
    require(context, "context");
    const rung_gemm_options given = complete(options);
    rung::GemmOptions checked;
    checked.alpha = given.alpha;
    checked.beta = given.beta;
    checked.transpose_a = given.transpose_a != 0;
    checked.transpose_b = given.transpose_b != 0;
    if (given.bias != nullptr) checked.bias = reference(given.bias, "bias");
    checked.activation = checked_enum(given.activation, rung::Activation::tanh, "activation");
    checked.precision = checked_enum(given.precision, rung::Precision::tf32, "precision");
    const rung::Pick pick{given.rung != nullptr ? std::string_view(given.rung)
                                                : std::string_view()};
    rung::gemm(context->context, reference(a, "a"), reference(b, "b"), reference(c, "c"), checked,
               pick);
  });
}

}  // extern "C"
