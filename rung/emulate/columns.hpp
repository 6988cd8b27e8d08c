// SPDX-License-Identifier: Apache-2.0
// Columns of the compiler's messages: it has read a rewritten source, and the user has not.
#pragma once

#include <string>

namespace rung::emulate {

/// Compiler options under which its messages can be read here.
inline constexpr const char* column_options[] = {"-fdiagnostics-column-unit=byte",
                                                 "-fdiagnostics-color=never"};

/// Messages of the compiler about `rewritten`, a source with line markers, with the columns and
/// excerpts of the files that the markers name. `excerpts`: the messages have some.
std::string in_columns_of_files(const std::string& messages, const std::string& rewritten,
                                bool excerpts = true);

/// "error:", "warning:" and "note:" in the colors of g++.
std::string colored(std::string messages);

}  // namespace rung::emulate
