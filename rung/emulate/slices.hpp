// SPDX-License-Identifier: Apache-2.0
// Time slices in the loops of code without hooks.
#pragma once

#include <string>
#include <vector>

namespace rung::emulate {

/// Returns true if a source compiled with these options of the user may be given slices: they
/// select no other instructions, whose registers the switch would not save.
bool may_slice(const std::vector<std::string>& options);

/// Options for the compilation of an assembly to which add_slices() is applied.
std::vector<std::string> slice_options();

/// Returns the assembly with a countdown at the end of each loop that loads from memory. When it
/// expires, the thread's time slice ends (rung/simt/slices.cpp). Functions that call operations of
/// the simulator, such as barriers and atomics, are left as they are.
std::string add_slices(const std::string& assembly);

}  // namespace rung::emulate
