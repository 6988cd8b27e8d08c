// SPDX-License-Identifier: Apache-2.0
// What the C functions of every operator are made of: they check what C cannot, and turn exceptions
// into codes. Internal to the library.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <exception>
#include <new>
#include <string>
#include <string_view>

#include "rung/core/c_api.h"
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

/// What is checked: "context", or "dtype" of "a". Put into words only when it is wrong, for that
/// takes as long as a small product.
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

/// The rung that a program names; NULL: the best.
inline Pick pick_of(const char* rung) {
  return {rung != nullptr ? std::string_view(rung) : std::string_view()};
}

namespace detail {
[[noreturn]] void throw_too_small(std::size_t given, std::size_t smallest, const char* type);
/// Throws unless all bytes behind what this library knows are zero, which means off.
void require_unknown_off(const void* options, std::size_t known, std::size_t given);
}  // namespace detail

/// What a program knows of an operator's options, over the defaults of what it does not. Options
/// begin with their size; `smallest` is that of the first version; `type` is their name in C.
template <class Options>
Options complete(const Options* given, const Options& defaults, std::size_t smallest,
                 const char* type) {
  Options options = defaults;
  if (given == nullptr) return options;
  if (given->size < smallest) detail::throw_too_small(given->size, smallest, type);
  if (given->size > sizeof options) {
    detail::require_unknown_off(given, sizeof options, given->size);
  }
  std::memcpy(&options, given, std::min(given->size, sizeof options));
  return options;
}

/// Sets the first `size` bytes of a program's options. Its structure may be longer than ours: what
/// we do not know is zero, off.
template <class Options>
void initialise(Options* options, std::size_t size, Options defaults, const char* type) {
  require(options, {"options"});
  if (size < sizeof options->size) {
    invalid("size is " + std::to_string(size) + "; pass sizeof(" + type + ")");
  }
  defaults.size = size;
  std::memset(static_cast<void*>(options), 0, size);
  std::memcpy(static_cast<void*>(options), &defaults, std::min(size, sizeof defaults));
}

}  // namespace rung::c_api
