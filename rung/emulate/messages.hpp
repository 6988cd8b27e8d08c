// SPDX-License-Identifier: Apache-2.0
// The compiler's messages about rewritten sources, in the user's terms.
#pragma once

#include <string>
#include <vector>

namespace rung::emulate {

/// Of what the compiler wrote about a rewritten source: whether it speaks of what only the rewriter
/// has put there.
bool speaks_of_rewriting(const std::string& messages);

/// One line for each thing that is wrong, from what the compiler says of the source that
/// rewrite_for_messages() has made; only of lines that the other messages mention, too. Empty: it
/// says nothing.
std::string explained(const std::string& messages, const std::string& plain_messages);

}  // namespace rung::emulate
