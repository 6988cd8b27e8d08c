// SPDX-License-Identifier: Apache-2.0
// Folders of an installation or build tree that compiled programs need.
#pragma once

#include <string>

namespace rung::emulate {

/// Folders of rung's shared libraries and headers, and the path of the program `rung`.
struct Home {
  std::string libraries, include, program;
};

/// Returns the folders. Throws Error(not_available) if the headers are not installed.
Home find_home();

/// Returns the host compiler: $CXX, or g++.
std::string host_compiler();

/// Returns the text between double quotes, as a shell and a C++ literal read it.
std::string shell_quoted(const std::string& text);

}  // namespace rung::emulate
