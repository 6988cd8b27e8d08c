// SPDX-License-Identifier: Apache-2.0
// Advice on launches with too little dynamic shared memory.
#include "rung/emulate/brackets.hpp"
#include "rung/emulate/runtime/advise.hpp"

namespace rung::cuda {

namespace record = simt::record;
using emulate::TokenStream;
using record::Finding;

std::int64_t elements_needed(const Finding& finding, std::int64_t index) {
  const auto& block = finding.block_extent;
  const auto& at = finding.thread;
  const std::int64_t threads = std::int64_t{1} * block.x * block.y * block.z;
  const std::int64_t thread = at.x + std::int64_t{block.x} * (at.y + std::int64_t{block.y} * at.z);
  return index + threads - thread;
}

void advise_launch(Finding& finding) {
  const record::Object& object = finding.object;
  const auto size = static_cast<std::int64_t>(object.element_bytes);
  const std::string bytes = std::to_string(elements_needed(finding, object.offset / size)) +
                            " * sizeof(" + object.type + ")";
  finding.advice = "launch with " + bytes + " bytes of dynamic shared memory (";
  if (finding.launch_line != 0) {
    finding.advice += "in line " + std::to_string(finding.launch_line) + " ";
  }
  finding.advice += "with " + std::to_string(object.bytes) + ")";
  const SourceTree* const tree = source_tree(finding.launch_file);
  if (tree == nullptr) return;
  const TokenStream& tokens = tree->tokens();
  for (std::size_t i = 0; i + 3 < tokens.size(); ++i) {
    if (tree->line(i) != finding.launch_line || !tokens[i].is("<<") || !tokens[i + 1].is("<")) {
      continue;
    }
    std::vector<std::size_t> commas;
    std::size_t end = i + 2;
    for (; end < tokens.size() && !(tokens[end].is(">>") && tokens[end + 1].is(">")); ++end) {
      if (tokens[end].is(",")) commas.push_back(end);
      if (emulate::opens(tokens[end])) end = tokens.closing(end);
    }
    if (commas.empty() || end >= tokens.size()) return;
    const std::size_t shape_end = commas.size() > 1 ? commas[1] : end;
    const std::string stream = commas.size() > 2 ? ", " + tree->text(commas[2] + 1, end) : "";
    finding.fixes.push_back({"shared_bytes", tree->file(), tree->line(i), tree->text(i, end + 2),
                             joined({tree->text(i, shape_end), ", ", bytes, stream, ">>>"})});
    return;
  }
}

}  // namespace rung::cuda
