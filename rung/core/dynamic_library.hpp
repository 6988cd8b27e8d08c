// SPDX-License-Identifier: Apache-2.0
// DynamicLibrary: a third-party library, loaded on first use and never linked.
//
// Peers are loaded this way for three reasons: librung must start without them; OpenBLAS and BLIS
// export the same cblas symbols, of which a static link would resolve only one set; and each
// selects its kernels by an environment variable that it reads while it is loaded. RTLD_LOCAL hides
// the symbols of each library from the next.
#pragma once

#include <dlfcn.h>

#include <cstdlib>
#include <initializer_list>
#include <string>
#include <vector>

#include "rung/core/operator.hpp"

namespace rung {

/// Sets an environment variable and restores the old value at the end of the scope, so that child
/// processes do not inherit it. Must not run while other threads read the environment: libraries
/// are opened once, from a function-local static.
class ScopedEnvironment {
 public:
  ScopedEnvironment(const char* name, const char* value) : name_(name) {
    if (const char* old = std::getenv(name); old != nullptr) {
      old_ = old;
      was_set_ = true;
    }
    if (value != nullptr) setenv(name, value, 1);
  }
  ScopedEnvironment(const ScopedEnvironment&) = delete;
  ScopedEnvironment& operator=(const ScopedEnvironment&) = delete;
  ~ScopedEnvironment() {
    if (was_set_) {
      setenv(name_, old_.c_str(), 1);
    } else {
      unsetenv(name_);
    }
  }

 private:
  const char* name_;
  std::string old_;
  bool was_set_ = false;
};

/// Library that stays loaded until the process exits: libraries with thread pools do not survive
/// dlclose.
class DynamicLibrary {
 public:
  /// Loads the file that the environment variable `override_variable` names, else the first of
  /// `names` that the loader finds.
  DynamicLibrary(const char* override_variable, std::initializer_list<std::string> names) {
    std::vector<std::string> candidates = names;
    if (const char* path = std::getenv(override_variable); path != nullptr && *path != '\0') {
      candidates = {path};
    }
    for (const std::string& candidate : candidates) {
      handle_ = dlopen(candidate.c_str(), RTLD_NOW | RTLD_LOCAL);
      if (handle_ != nullptr) {
        name_ = candidate;
        why_.clear();
        mark_loaded();
        return;
      }
      // If a file exists but does not load (wrong architecture, say), the loader's message is
      // reported.
      const char* reason = dlerror();
      const std::string said = reason != nullptr ? reason : "";
      const bool missing = said.find("No such file") != std::string::npos;
      why_ +=
          (why_.empty() ? "" : "; ") + (missing || said.empty() ? candidate + " not found" : said);
    }
  }
  DynamicLibrary(const DynamicLibrary&) = delete;
  DynamicLibrary& operator=(const DynamicLibrary&) = delete;
  ~DynamicLibrary() = default;

  /// Sets `function` to the symbol of this name. A missing symbol makes the library unusable.
  template <class Function>
  void require(Function*& function, const char* symbol) {
    optional(function, symbol);
    if (function == nullptr && why_.empty()) why_ = name_ + " lacks " + symbol;
  }
  /// Sets `function` to a symbol that only some versions have; null if it is missing.
  template <class Function>
  void optional(Function*& function, const char* symbol) {
    function = handle_ == nullptr ? nullptr : reinterpret_cast<Function*>(dlsym(handle_, symbol));
  }

  /// Returns whether the library was loaded and has every required symbol; the reason lives as long
  /// as this object.
  [[nodiscard]] Support present() const {
    return handle_ != nullptr && why_.empty() ? supported : unsupported(why_.c_str());
  }

 private:
  /// Disables LeakSanitizer's check at exit (dynamic_library.cpp).
  static void mark_loaded();

  void* handle_ = nullptr;
  std::string name_;
  std::string why_;
};

}  // namespace rung
