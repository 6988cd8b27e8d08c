// SPDX-License-Identifier: Apache-2.0
// Two versions of a source in one object file: with and without hooks at accesses.
#pragma once

#include <string>

namespace rung::emulate {

/// Returns the assembly of a source compiled with hooks, followed by its functions compiled without
/// hooks, under distinct names. Variables exist once: functions without hooks use the variables of
/// the hooked version and take the addresses of hooked functions. A table registers the pairs of
/// functions with the runtime (rung/emulate/runtime/unhooked.cpp). Returns "" if the versions do
/// not match, such as in a variable's name.
std::string add_unhooked(const std::string& hooked, const std::string& unhooked);

}  // namespace rung::emulate
