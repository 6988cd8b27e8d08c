// SPDX-License-Identifier: Apache-2.0
// Turns C++ exceptions into Python's: rung.Error with the same text and its code.
#pragma once

#include <exception>
#include <new>
#include <string>

#include "python/module/python.hpp"
#include "rung/core/error.hpp"

namespace rung::python {

/// Loads the classes of rung/_errors.py; called once, by the module's initialization.
void load_errors();
/// Sets rung.Error, or rung.OutOfMemoryError, which is a MemoryError too.
void set_error(ErrorCode code, const char* message) noexcept;
/// Sets TypeError and throws PythonError.
[[noreturn]] void throw_type_error(const std::string& message);

/// Calls f(), which returns a new reference; returns null with a Python exception set where it
/// throws.
template <class F>
PyObject* guarded(F&& f) noexcept {
  try {
    return f();
  } catch (const PythonError&) {
    return nullptr;
  } catch (const Error& error) {
    set_error(error.code(), error.what());
  } catch (const std::bad_alloc&) {
    set_error(ErrorCode::out_of_memory, "out of memory");
  } catch (const std::exception& error) {
    set_error(ErrorCode::internal, error.what());
  }
  return nullptr;
}

}  // namespace rung::python
