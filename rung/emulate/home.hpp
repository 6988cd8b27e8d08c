// SPDX-License-Identifier: Apache-2.0
// Folders of rung's installation or build tree, needed to compile programs.
#pragma once

#include <string>

namespace rung::emulate {

/// Folders of rung's shared libraries and headers, and the path of the program `rung`.
struct Home {
  std::string libraries, include, program;
};

/// Returns the folders. Throws Error(not_available) if the headers are missing.
Home find_home();

/// Returns the host compiler: $CXX, or g++.
std::string host_compiler();

/// Returns the text in double quotes, with quotes and backslashes escaped as in a C++ literal.
std::string shell_quoted(const std::string& text);

}  // namespace rung::emulate
