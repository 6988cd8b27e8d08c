// SPDX-License-Identifier: Apache-2.0
// Columns of compiler messages: the compiler reads a rewritten source, but messages must refer to
// the original one.
#pragma once

#include <string>

namespace rung::emulate {

/// Compiler options for messages in the format that in_columns_of_files() parses.
inline constexpr const char* column_options[] = {"-fdiagnostics-column-unit=byte",
                                                 "-fdiagnostics-color=never"};

/// Translates messages about `rewritten`, a source with line markers, to the columns and excerpts
/// of the original files. `excerpts`: the messages contain excerpts.
std::string in_columns_of_files(const std::string& messages, const std::string& rewritten,
                                bool excerpts = true);

/// Colors "error:", "warning:" and "note:" as g++ does.
std::string colored(std::string messages);

}  // namespace rung::emulate
