// SPDX-License-Identifier: Apache-2.0
// Compiler messages about rewritten sources, in terms of the original source.
#pragma once

#include <string>
#include <vector>

namespace rung::emulate {

/// Returns the contents of a file; "" if it cannot be read.
std::string read_file(const std::string& path);

/// Throws Error(not_available) if a source cannot be preprocessed because it uses an unsupported
/// library. `command`: the compiler with its options; `stem`: prefix of temporary file names.
void explain_missing_header(std::vector<std::string> command, const std::string& file,
                            const std::string& stem);

/// Throws Error(not_available) if the preprocessed source includes the header of an unsupported
/// library, from a toolkit installed on this machine. `own`: our include folder.
void refuse_libraries(const std::string& file, const std::string& preprocessed,
                      const std::string& own);

/// Returns true if the compiler's messages mention code inserted by the rewriter.
bool speaks_of_rewriting(const std::string& messages);

/// Returns one line per error in `plain_messages`, the compiler's messages about the result of
/// rewrite_for_messages(), restricted to source lines that are also mentioned in `messages`, those
/// about the result of rewrite(). Empty if there is none.
std::string explained(const std::string& messages, const std::string& plain_messages);

}  // namespace rung::emulate
