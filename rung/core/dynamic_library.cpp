// SPDX-License-Identifier: Apache-2.0
// Disables LeakSanitizer's check at exit once third-party libraries have been loaded: it sometimes
// crashes on threads that they leave running, and their leaks are not rung's.
#include "rung/core/dynamic_library.hpp"

#include <atomic>

#include "rung/core/export.hpp"

namespace rung {
namespace {

std::atomic<bool> any_loaded{false};

}  // namespace

void DynamicLibrary::mark_loaded() { any_loaded = true; }

}  // namespace rung

#if defined(__SANITIZE_ADDRESS__)

extern "C" RUNG_API int __lsan_is_turned_off();

/// Hook that LeakSanitizer calls at exit before it searches for leaks.
extern "C" int __lsan_is_turned_off() { return rung::any_loaded ? 1 : 0; }

#endif
