// SPDX-License-Identifier: Apache-2.0
// The compiler's messages about rewritten sources, in the user's terms.
#pragma once

#include <string>
#include <vector>

namespace rung::emulate {

/// All of a file; "": it cannot be read.
std::string read_file(const std::string& path);

/// Throws Error(not_available) where a source cannot be preprocessed because it uses a library that
/// is not here. `command` is the compiler with its options, `stem` the beginning of file names.
void explain_missing_header(std::vector<std::string> command, const std::string& file,
                            const std::string& stem);

/// Throws the same where the system has such a library's header, from a toolkit that is installed;
/// `own` is the folder of ours.
void refuse_libraries(const std::string& file, const std::string& preprocessed,
                      const std::string& own);

/// Of what the compiler wrote about a rewritten source: whether it speaks of what only the rewriter
/// has put there.
bool speaks_of_rewriting(const std::string& messages);

/// One line for each thing that is wrong, from what the compiler says of the source that
/// rewrite_for_messages() has made; only of lines that the other messages mention, too. Empty: it
/// says nothing.
std::string explained(const std::string& messages, const std::string& plain_messages);

}  // namespace rung::emulate
