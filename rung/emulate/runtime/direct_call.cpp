// SPDX-License-Identifier: Apache-2.0
// Detects kernels that are called like functions, without <<<>>>.
#include <execinfo.h>

#include <cstdlib>

#include "rung/emulate/runtime/advise.hpp"
#include "rung/emulate/runtime/kernels.hpp"
#include "rung/simt/simulator.hpp"

namespace rung::cuda {
namespace {

/// Returns the line with a call of this function without <<<>>>; 0 if there is none.
int call_of(const SourceTree& tree, const std::string& name) {
  const emulate::TokenStream& tokens = tree.tokens();
  for (std::size_t i = 1; i + 1 < tokens.size(); ++i) {
    if (!tokens[i].is(name)) continue;
    // A name after a type is a declaration, not a call.
    const bool declares = tokens[i - 1].kind == emulate::TokenKind::identifier ||
                          tokens[i - 1].is("*") || tokens[i - 1].is("&");
    std::size_t open = i + 1;
    while (tokens[open].is("<") && !tokens[open].is("(")) {
      while (open < tokens.size() && !tokens[open].is(">") && !tokens[open].is(";")) ++open;
      ++open;
    }
    if (!declares && tokens[open].is("(")) return tree.line(i);
  }
  return 0;
}

}  // namespace

void end_direct_call(const char* kernel) {
  simt::record::Finding finding;
  finding.kind = simt::record::Kind::launch;
  finding.kernel = plain_name(kernel);
  std::string name = finding.kernel.substr(0, finding.kernel.find('<'));
  if (const std::size_t at = name.rfind("::"); at != std::string::npos) name.erase(0, at + 2);
  void* frames[32];
  const int count = backtrace(frames, 32);
  for (int i = 0; i < count && finding.line == 0; ++i) {
    const std::string place = simt::source_line(static_cast<char*>(frames[i]) - 1);
    const SourceTree* const tree = source_tree(place.substr(0, place.rfind(':')));
    if (tree == nullptr) continue;
    finding.file = tree->file();
    finding.line = call_of(*tree, name);
  }
  finding.message = "the kernel " + name + " is called as a function";
  finding.advice = "launch it: " + name + "<<<blocks, threads>>>(...)";
  simt::record::add(finding);
  std::exit(1);
}

}  // namespace rung::cuda
