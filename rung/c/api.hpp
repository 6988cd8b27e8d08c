// SPDX-License-Identifier: Apache-2.0
// Building blocks of the operators' C functions: checks of arguments, and conversion of exceptions
// to status codes. Internal to the library.
#pragma once

#include <cstddef>
#include <cstring>
#include <exception>
#include <new>
#include <string>

#include "rung/c/api.h"
#include "rung/core/context.hpp"
#include "rung/core/error.hpp"
#include "rung/core/operator.hpp"

struct rung_context {
  rung::Context context;
};

namespace rung::c_api {

/// Stores the message for rung_last_error() and returns the status of `code`.
rung_status report(ErrorCode code, const char* message) noexcept;

/// Runs body and converts exceptions to a status. A successful call keeps the last message.
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

[[noreturn]] void invalid(const std::string& message);

/// Subject of a check: "context", or "dtype" of "a". text() is called for errors only, as it takes
/// as long as a small matrix product.
struct Checked {
  const char* what;
  const char* of = nullptr;
  [[nodiscard]] std::string text() const;
};

/// Throws Error(invalid_argument) if `pointer` is NULL.
void require(const void* pointer, Checked name);

/// Returns the number in a C enumeration. C can store any int, but in C++ loading an enumeration
/// outside its range is undefined.
template <class Enum>
int number_in(const Enum& value) {
  int number = 0;
  static_assert(sizeof number == sizeof value);
  std::memcpy(&number, &value, sizeof number);
  return number;
}

/// Converts a C enumerator from 0 to `last`; throws Error(invalid_argument) for other numbers.
template <class To, class From>
To checked_enum(const From& value, To last, Checked name) {
  const int number = number_in(value);
  if (number < 0 || number > static_cast<int>(last)) {
    invalid(name.text() + " is " + std::to_string(number) + "; accepted: 0 to " +
            std::to_string(static_cast<int>(last)));
  }
  return static_cast<To>(number);
}

/// Checks C's description of a tensor and converts it.
TensorRef reference(const rung_tensor* tensor, const char* name);

/// Copies the options of a program, `given_size` bytes, over the defaults in `options`, `size`
/// bytes. Throws if `given_size` is less than the first version's size, or if fields unknown to
/// this library are not zero. `type` is the structure's name in C.
void complete(void* options, std::size_t size, const void* given, std::size_t given_size,
              std::size_t first_version, const char* type);

/// Copies `defaults`, `known` bytes, to a program's options of `size` bytes; zeroes the rest.
void initialize(void* options, std::size_t size, const void* defaults, std::size_t known,
                const char* type);

}  // namespace rung::c_api
