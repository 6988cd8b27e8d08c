// SPDX-License-Identifier: Apache-2.0
// Building blocks of every operator's C functions, which check what C cannot and turn exceptions
// into codes. Internal to the library.
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

/// Keeps the message for rung_last_error().
rung_status report(ErrorCode code, const char* message) noexcept;

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

[[noreturn]] void invalid(const std::string& message);

/// Subject of a check: "context", or "dtype" of "a". Its words are made only for an error, because
/// that takes as long as a small product.
struct Checked {
  const char* what;
  const char* of = nullptr;
  [[nodiscard]] std::string text() const;
};

/// Throws when `pointer` is NULL.
void require(const void* pointer, Checked name);

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
To checked_enum(const From& value, To last, Checked name) {
  const int number = number_in(value);
  if (number < 0 || number > static_cast<int>(last)) {
    invalid(name.text() + " is " + std::to_string(number) + "; accepted: 0 to " +
            std::to_string(static_cast<int>(last)));
  }
  return static_cast<To>(number);
}

/// A tensor as C describes it, checked.
TensorRef reference(const rung_tensor* tensor, const char* name);

/// Copies what a program knows of its options, `given_size` bytes, over the defaults in `options`.
/// Throws where that is less than the first version had, or where a field that this library does
/// not know is not zero. `type` is the structure's name in C.
void complete(void* options, std::size_t size, const void* given, std::size_t given_size,
              std::size_t first_version, const char* type);

/// Copies `defaults` to a program's options of `size` bytes; zero behind what they have.
void initialize(void* options, std::size_t size, const void* defaults, std::size_t known,
                const char* type);

}  // namespace rung::c_api
