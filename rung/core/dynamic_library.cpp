// SPDX-License-Identifier: Apache-2.0
// Tells the leak detector of a build under the sanitizers that others' libraries were loaded. It
// crashes now and then on the threads that they leave running, and their leaks would not be ours:
// such a process is not searched.
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

/// The leak detector calls it at the end of a process, before it looks.
extern "C" int __lsan_is_turned_off() { return rung::any_loaded ? 1 : 0; }

#endif
