// SPDX-License-Identifier: Apache-2.0
// Parses the statements of functions. Unknown constructs are parsed as simple statements.
#include "rung/emulate/runtime/source_tree.hpp"

#include <algorithm>
#include <utility>

#include "rung/emulate/brackets.hpp"

namespace rung::cuda {
namespace {

using emulate::Token;
using emulate::TokenKind;
using emulate::TokenStream;

bool is_assignment(const TokenStream& tokens, std::size_t i) {
  if (!tokens[i].is("=")) return false;
  const Token& before = tokens[i - 1];
  return !before.is("!") && !before.is("<") && !before.is(">") && !tokens[i + 1].is("=");
}

}  // namespace

SourceTree::SourceTree(std::string file, const std::string& text)
    : file_(std::move(file)), tokens_(text) {
  int line = 1;
  for (std::size_t i = 0; i < tokens_.size(); ++i) {
    const auto breaks = [](std::string_view part) {
      return static_cast<int>(std::count(part.begin(), part.end(), '\n'));
    };
    line += breaks(tokens_[i].space);
    lines_.push_back(line);
    line += breaks(tokens_[i].text);
  }
  find_functions();
}

void SourceTree::find_functions() {
  for (std::size_t i = 1; i < tokens_.size(); ++i) {
    if (!tokens_[i].is("{") || !emulate::opens_body(tokens_, i)) continue;
    const std::size_t close = tokens_.closing(i);
    if (close >= tokens_.size()) return;
    // The parameter list is the last parenthesis before the body that does not belong to an
    // attribute.
    std::size_t at = i;
    while (at > 0 && !tokens_[at - 1].is(";") && !tokens_[at - 1].is("}")) {
      --at;
      if (!tokens_[at].is(")")) continue;
      const std::size_t open = tokens_.opening(at);
      if (open == 0 || open >= tokens_.size()) break;
      const Token& name = tokens_[open - 1];
      const bool attribute = name.is("__launch_bounds__") || name.is("__attribute__") ||
                             name.is("noexcept") || name.is("decltype") ||
                             name.is("__cluster_dims__");
      if (!attribute && name.kind == TokenKind::identifier) {
        auto one = std::make_unique<Function>();
        one->name = name.text;
        one->parameters_begin = open + 1;
        one->parameters_end = at;
        std::size_t head = open;
        while (head > 0 && !tokens_[head - 1].is(";") && !tokens_[head - 1].is("}") &&
               !tokens_[head - 1].is("{")) {
          --head;
          one->kernel |= tokens_[head].is("__global__");
        }
        Statement outer;
        parse(i, outer);
        one->body = std::move(*outer.parts.front());
        one->body.parent = nullptr;
        for (const auto& part : one->body.parts) part->parent = &one->body;
        find_varying(*one);
        functions_.push_back(std::move(one));
        break;
      }
      at = open;
    }
    i = close;
  }
}

/// Parses the statement that begins at this token and adds it to the parent. Returns the token
/// after the statement.
std::size_t SourceTree::parse(std::size_t at, Statement& parent) {
  parent.parts.push_back(std::make_unique<Statement>());
  Statement& one = *parent.parts.back();
  one.parent = &parent;
  one.begin = at;
  const auto end_at = [&](std::size_t end) { return one.end = std::min(end, tokens_.size()); };
  if (tokens_[at].is("{")) {
    one.kind = Statement::Kind::block;
    const std::size_t close = tokens_.closing(at);
    for (std::size_t i = at + 1; i < close;) i = parse(i, one);
    return end_at(close + 1);
  }
  const bool loop = tokens_[at].is("for") || tokens_[at].is("while");
  if (loop || tokens_[at].is("if") || tokens_[at].is("switch")) {
    one.kind = loop ? Statement::Kind::loop : Statement::Kind::branch;
    const std::size_t open = at + (tokens_[at + 1].is("constexpr") ? 2 : 1);
    one.header_begin = open + 1;
    one.header_end = tokens_.closing(open);
    if (one.header_end >= tokens_.size()) return end_at(tokens_.size());
    std::size_t next = parse(one.header_end + 1, one);
    if (!loop && tokens_[next].is("else")) next = parse(next + 1, one);
    return end_at(next);
  }
  if (tokens_[at].is("do")) {
    one.kind = Statement::Kind::loop;
    const std::size_t next = parse(at + 1, one);
    one.header_begin = next + 2;  // first token after while (
    one.header_end = tokens_.closing(next + 1);
    return end_at(one.header_end + 2);
  }
  std::size_t i = at;
  while (i < tokens_.size() && !tokens_[i].is(";") && !tokens_[i].is("}")) {
    if (tokens_[i].kind == TokenKind::verbatim && i > at) break;
    if (tokens_[i].kind == TokenKind::verbatim) return end_at(i + 1);
    i = emulate::opens(tokens_[i]) ? tokens_.closing(i) + 1 : i + 1;
  }
  return end_at(i + (tokens_[i].is(";") || i == at ? 1 : 0));
}

void SourceTree::find_varying(Function& function) const {
  static constexpr std::string_view sources[] = {"threadIdx", "thread_rank", "thread_index",
                                                 "__laneid"};
  function.varying.insert(std::begin(sources), std::end(sources));
  if (!function.kernel) {  // usual names of thread indices in kernels, passed as parameters
    for (const std::string& name : parameters(function)) {
      for (const char* usual : {"t", "tid", "tx", "ty", "tz", "lane", "i", "idx", "thread"}) {
        if (name == usual) function.varying.insert(name);
      }
    }
  }
  for (std::size_t before = 0; before != function.varying.size();) {
    before = function.varying.size();
    Names varies;
    for (std::size_t i = function.body.begin; i < function.body.end; ++i) {
      if (!is_assignment(tokens_, i)) continue;
      std::size_t name = i - 1;
      const bool compound = tokens_[name].kind == TokenKind::symbol && !tokens_[name].is("]") &&
                            !tokens_[name].is(")");
      if (compound && i >= 2) --name;  // skip the + of +=
      if (tokens_[name].kind != TokenKind::identifier) continue;
      for (std::size_t at = i + 1; at < function.body.end; ++at) {
        const Token& token = tokens_[at];
        if (token.is(";") || token.is(",") || token.is(")") || token.is("}")) break;
        // Values in memory may be uniform even if their addresses depend on the thread.
        if (token.is("[")) {
          at = tokens_.closing(at);
        } else if (token.is("(")) {
          const std::size_t close = tokens_.closing(at);
          if (mentions_any(at, close, function.varying))
            varies.insert(std::string(tokens_[name].text));
          at = close;
        } else if (function.varying.contains(token.text)) {
          varies.insert(std::string(tokens_[name].text));
        }
      }
    }
    function.varying.insert(varies.begin(), varies.end());
  }
}

bool SourceTree::mentions_any(std::size_t begin, std::size_t end, const Names& names) const {
  for (std::size_t i = begin; i < end; ++i) {
    if (names.contains(tokens_[i].text)) return true;
  }
  return false;
}

const Function* SourceTree::function(std::string_view name) const {
  const Function* found = nullptr;
  for (const auto& one : functions_) {
    if (one->name != name) continue;
    if (found != nullptr) return nullptr;
    found = one.get();
  }
  return found;
}

const Function* SourceTree::called_at(std::size_t token) const {
  const Token& next = tokens_[token + 1];
  if (tokens_[token].kind != TokenKind::identifier || !(next.is("(") || next.is("<"))) {
    return nullptr;
  }
  return function(tokens_[token].text);
}

const Statement& SourceTree::statement_at(const Function& function, std::size_t token) {
  const Statement* one = &function.body;
  for (const Statement* inner = one; inner != nullptr;) {
    one = inner;
    inner = nullptr;
    for (const auto& part : one->parts) {
      if (part->begin <= token && token < part->end) inner = part.get();
    }
  }
  return *one;
}

std::string SourceTree::text(std::size_t begin, std::size_t end) const {
  const std::string all = tokens_.text(begin, end);
  const std::size_t first = all.find_first_not_of(" \t\n");
  return first == std::string::npos ? "" : all.substr(first);
}

bool SourceTree::mentions(std::size_t begin, std::size_t end, std::string_view word) const {
  for (std::size_t i = begin; i < end; ++i) {
    if (tokens_[i].is(word)) return true;
  }
  return false;
}

bool SourceTree::is_barrier(std::size_t token, bool warp) const {
  const Token& one = tokens_[token];
  if (one.kind != TokenKind::identifier || !tokens_[token + 1].is("(")) return false;
  if (one.text.starts_with("__syncthreads")) return true;
  if (one.is("arrive_and_wait") || one.is("wait")) return true;
  if (one.is("__syncwarp")) return warp;
  if (one.is("sync")) {
    const bool member = tokens_[token - 1].is(".") || tokens_[token - 1].is("->");
    const std::string_view group = tokens_[member ? token - 2 : token + 2].text;
    const bool small = group.find("tile") != std::string_view::npos ||
                       group.find("warp") != std::string_view::npos || group == "active";
    return warp || !small;
  }
  // The function is only declared before the call, or is recursive.
  const Function* const called = function(one.text);
  if (called == nullptr || called->body.end > token) return false;
  for (std::size_t i = called->body.begin; i < called->body.end; ++i) {
    if (is_barrier(i, warp)) return true;
  }
  return false;
}

bool SourceTree::uniform(const Function& function, const Statement& one, bool warp) const {
  for (std::size_t i = one.header_begin; i < one.header_end; ++i) {
    if (!function.varying.contains(tokens_[i].text)) continue;
    // Comparisons with multiples of the warp size, such as threadIdx.x < 32, are uniform within
    // each warp.
    const auto compares = [&](std::size_t at) {
      return tokens_[at].is("<") || tokens_[at].is(">=");
    };
    std::size_t at = i + 1;
    if (tokens_[at].is(".")) at += 2;
    const int bound = std::atoi(std::string(tokens_[at + 1].text).c_str());
    const bool whole_warps = compares(at) && bound > 0 && bound % 32 == 0;
    const bool named = tokens_[i].text.find("warp") != std::string_view::npos;
    if (!warp || (!whole_warps && !named)) return false;
  }
  return true;
}

std::vector<std::string> SourceTree::parameters(const Function& function) const {
  std::vector<std::string> names;
  std::string_view last;
  int depth = 0;
  bool done = false;  // the name is complete: an array extent or a default value follows
  for (std::size_t i = function.parameters_begin; i <= function.parameters_end; ++i) {
    const Token& token = tokens_[i];
    if (depth == 0 && (token.is(",") || i == function.parameters_end)) {
      if (!last.empty()) names.emplace_back(last);
      last = {};
      done = false;
    } else if (token.is("<") || emulate::opens(token)) {
      ++depth;
    } else if (token.is(">") || emulate::closes(token)) {
      --depth;
    } else if (token.is("=")) {
      done = true;
    } else if (depth == 0 && !done && token.kind == TokenKind::identifier) {
      last = token.text;
    }
  }
  return names;
}

std::vector<SourceTree::Spot> SourceTree::spots(int line) const {
  std::vector<Spot> found;
  const auto in_line = [&](std::size_t begin, std::size_t end) {
    return begin < end && lines_[begin] <= line && line <= lines_[end - 1];
  };
  for (const auto& function : functions_) {
    std::vector<const Statement*> open = {&function->body};
    while (!open.empty()) {
      const Statement& one = *open.back();
      open.pop_back();
      if (!in_line(one.begin, one.end)) continue;
      if (one.kind == Statement::Kind::simple || in_line(one.header_begin, one.header_end)) {
        found.push_back({function.get(), &one});
      }
      for (auto part = one.parts.rbegin(); part != one.parts.rend(); ++part) {
        open.push_back(part->get());
      }
    }
  }
  return found;
}

SourceTree::Spot SourceTree::find(int line, std::string_view array) const {
  Spot best;
  int best_score = -1;
  for (const Spot& spot : spots(line)) {
    const Statement& one = *spot.statement;
    const bool simple = one.kind == Statement::Kind::simple;
    const std::size_t begin = simple ? one.begin : one.header_begin;
    const std::size_t end = simple ? one.end : one.header_end;
    int score = 0;
    if (mentions(begin, end, "[") || mentions(begin, end, "*")) score = 1;
    if (!array.empty() && mentions(begin, end, array)) score = 2;
    // Prefers a simple statement to the branch around it in the same line.
    if (score > best_score ||
        (score == best_score && simple && best.statement->kind != Statement::Kind::simple)) {
      best = spot;
      best_score = score;
    }
  }
  return best;
}

}  // namespace rung::cuda
