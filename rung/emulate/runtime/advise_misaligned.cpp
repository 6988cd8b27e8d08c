// SPDX-License-Identifier: Apache-2.0
// Advice on vector accesses, such as float4, to rows that do not begin at a multiple of the
// vector's size.
#include <cstdio>
#include <string>

#include "rung/emulate/runtime/advise.hpp"
#include "rung/emulate/runtime/index_access.hpp"
#include "rung/emulate/runtime/thread_values.hpp"

namespace rung::cuda {
namespace {

using simt::record::Finding;

struct RowLength {
  std::string name;  // spelled as in the source; "": an array extent
  std::int64_t value = 0;
};

/// Finder of a row length: searches the products in an expression, and in the initializers of its
/// variables, for a uniform factor that is not a multiple of the vector's length.
class RowFinder {
 public:
  RowFinder(const SourceTree& tree, const Function& function, const Finding& finding,
            std::int64_t length)
      : tree_(tree), tokens_(tree.tokens()), values_(tree, function, finding), length_(length) {}

  bool find(TokenRange range, RowLength& row, int depth = 0) const {
    constexpr int deepest = 4;
    if (depth > deepest) return false;
    for (std::size_t i = range.begin; i < range.end; ++i) {
      if (!tokens_[i].is("*")) continue;
      if (take(i + 1, row) || take(i - 1, row)) return true;
    }
    for (std::size_t i = range.begin; i < range.end; ++i) {
      if (!tokens_[i].is_identifier()) continue;
      for (const TokenRange& one : values_.settings(tokens_[i].text)) {
        const bool own = range.begin <= one.begin && one.end <= range.end;
        if (!own && find(one, row, depth + 1)) return true;
      }
    }
    return false;
  }

 private:
  bool take(std::size_t token, RowLength& row) const {
    const TokenRange factor{token, token + 1};
    if (tokens_[token + 1].is(".") || tokens_[token + 1].is("(") || tokens_[token - 1].is(".")) {
      return false;
    }
    const auto value = values_.value(factor);
    if (!value.has_value() || *value <= 1 || *value % length_ == 0) return false;
    if (tokens_[token].is_identifier() && !values_.is_uniform(factor)) return false;
    row = {tokens_[token].is_identifier() ? std::string(tokens_[token].text) : "", *value};
    return true;
  }

  const SourceTree& tree_;
  const emulate::TokenStream& tokens_;
  ThreadValues values_;
  std::int64_t length_;
};

}  // namespace

void advise_misaligned(Finding& finding) {
  const SourceTree* const tree = source_tree(finding.file);
  long long bytes = 0;
  const std::size_t of = finding.message.find(" of ");
  if (tree == nullptr || of == std::string::npos ||
      std::sscanf(finding.message.c_str() + of, " of %lld byte", &bytes) != 1) {
    return;
  }
  const auto size = static_cast<std::int64_t>(finding.object.element_bytes);
  if (size == 0 || bytes <= size || bytes % size != 0) return;
  const std::int64_t length = bytes / size;
  RowLength row;
  const auto& extents = finding.object.extents;
  if (extents.size() > 1 && static_cast<std::int64_t>(extents.back()) % length != 0) {
    row.value = static_cast<std::int64_t>(extents.back());
  }
  for (const SourceTree::Spot& spot : tree->spots(finding.line)) {
    if (row.value != 0) break;
    RowFinder(*tree, *spot.function, finding, length)
        .find({spot.statement->begin, spot.statement->end}, row);
  }
  if (row.value == 0) return;
  const std::int64_t padded = (row.value + length - 1) / length * length;
  const std::string elements = std::to_string(length);
  const bool shared = finding.space == simt::record::Space::shared;
  finding.advice =
      joined({"the row length ", row.name, row.name.empty() ? "" : " = ", std::to_string(row.value),
              " is no multiple of ", elements, ", so that only some rows begin at a multiple of ",
              std::to_string(bytes), " bytes: pad the rows to ", std::to_string(padded),
              shared ? " elements" : " elements (cudaMallocPitch does so)",
              ", or access single elements where a row begins elsewhere"});
  const Function* const function = tree->find(finding.line, finding.object.name).function;
  if (!shared || function == nullptr || extents.size() < 2) return;
  const std::size_t declared = declaration_of(*tree, *function, finding.object.name);
  if (declared == 0) return;
  const emulate::TokenStream& tokens = tree->tokens();
  std::size_t open = declared + 1;
  while (tokens[tokens.closing(open) + 1].is("[")) open = tokens.closing(open) + 1;
  finding.fixes.push_back({"extent", tree->file(), tree->line(declared),
                           tree->text(declared, tokens.closing(open) + 1),
                           joined({tree->text(declared, open), "[", std::to_string(padded), "]"})});
}

}  // namespace rung::cuda
