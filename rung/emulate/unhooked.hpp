// SPDX-License-Identifier: Apache-2.0
// Two versions of the same source in one object: with hooks at accesses and without.
#pragma once

#include <string>

namespace rung::emulate {

/// The assembly of a source compiled with hooks, and behind it the functions of the same source
/// compiled without, under names of their own. Variables exist once: the functions without hooks
/// use those of the others, and take the others' addresses where they take a function's address. A
/// table tells the runtime which belong together (rung/emulate/runtime/unhooked.cpp). "" where the
/// two do not fit: a variable's name is not the same in both.
std::string add_unhooked(const std::string& hooked, const std::string& unhooked);

}  // namespace rung::emulate
