// SPDX-License-Identifier: Apache-2.0
// Maps an access to the kernel parameter through which it is made, by the column of its code in the
// compiled source. g++ gives a write the location of its assignment; a read gets the location of
// its bracket, star or member, or of the assignment, call or variable that receives the value. All
// other forms - a pointer with two origins, a member that is a pointer, a parameter of another
// function - are unknown.
#include "rung/emulate/runtime/restrict_source.hpp"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <memory>
#include <mutex>
#include <thread>

#include "rung/emulate/brackets.hpp"
#include "rung/emulate/runtime/kernels.hpp"

namespace rung::cuda {
namespace {

using emulate::Token;
using emulate::TokenKind;

bool is_cast(const Token& token) {
  return token.is("reinterpret_cast") || token.is("static_cast") || token.is("const_cast");
}

}  // namespace

CompiledSource::CompiledSource(const std::string& text) : tokens_(text) {
  int line = 0, column = 1;
  bool moved = true;
  for (std::size_t i = 0; i + 1 < tokens_.size(); ++i) {
    const auto pass = [&](std::string_view part) {
      for (const char c : part) {
        line += c == '\n' ? 1 : 0;
        column = c == '\n' ? 1 : column + 1;
      }
    };
    pass(tokens_[i].space);
    const bool marker = tokens_[i].kind == TokenKind::verbatim;
    if (moved && !marker) {
      const emulate::SourceLine place = tokens_.line_of(i);
      const std::string file = simt::record::shown_path(place.file);
      if (files_.empty() || files_.back().name != file) files_.push_back({file, i});
      line = place.line;
    }
    moved = marker;
    positions_.push_back({line, column});
    pass(tokens_[i].text);
  }
}

/// Returns the token at the source location; 0 if there is none.
std::size_t CompiledSource::token_at(const simt::record::Source& place) const {
  for (std::size_t f = 0; f < files_.size(); ++f) {
    if (files_[f].name != place.file) continue;
    const std::size_t end = f + 1 < files_.size() ? files_[f + 1].begin : positions_.size();
    for (std::size_t i = files_[f].begin; i < end; ++i) {
      const bool marker = tokens_[i].kind == TokenKind::verbatim;
      if (!marker && positions_[i].line == place.line && positions_[i].column == place.column) {
        return i;
      }
    }
  }
  return 0;
}

std::string_view CompiledSource::parameter_at(const simt::record::Source& place, bool writes,
                                              std::string_view kernel,
                                              const Names& restricted) const {
  const std::size_t token = token_at(place);
  if (token == 0) return {};
  // The outermost enclosing body must belong to the kernel.
  std::size_t body = tokens_.size(), inner = token;
  for (std::size_t i = token; i > 0; --i) {
    if (emulate::closes(tokens_[i - 1]) && tokens_.opening(i - 1) < i) {
      i = tokens_.opening(i - 1) + 1;
    } else if (tokens_[i - 1].is("{")) {
      inner = i - 1;
      if (!emulate::opens_body(tokens_, inner)) break;
      body = inner;
    }
  }
  if (body >= tokens_.size() || !tokens_[body + 2].is("rung_kernel")) return {};
  std::size_t open = body;
  while (open > 0 && !tokens_[open - 1].is(")")) --open;
  open = open == 0 ? tokens_.size() : tokens_.opening(open - 1);
  if (open == 0 || open >= tokens_.size() || !tokens_[open - 1].is(kernel)) return {};
  const Scope scope{body, tokens_.closing(body), restricted};
  const std::size_t base = writes ? base_of_write(token) : base_of_read(token, restricted);
  return base == 0 ? std::string_view() : origin(base, scope, 0);
}

/// Returns the token that names the pointer through which the code at this token writes; 0 if
/// unknown.
std::size_t CompiledSource::base_of_write(std::size_t token) const {
  const Token& here = tokens_[token];
  const bool doubled = (here.is("+") || here.is("-")) && tokens_[token + 1].is(here.text);
  if (doubled)
    return is_operand_end(token - 1) ? base_before(token, false) : base_behind(token + 2);
  const bool assigns =
      here.is("=") || (here.kind == TokenKind::symbol && tokens_[token + 1].is("="));
  if (assigns) return base_before(token, false);
  const std::size_t open = here.is("(") ? token : token + 1;
  return writes_first(open) ? base_behind(open + (tokens_[open + 1].is("&") ? 2 : 1)) : 0;
}

/// Returns the token that names the pointer through which the code at this token reads; 0 if
/// unknown.
std::size_t CompiledSource::base_of_read(std::size_t token, const Names& restricted) const {
  const Token& here = tokens_[token];
  if (here.is("]") || here.is("[")) return base_before(token + (here.is("]") ? 1 : 0), true);
  if (here.is("*")) return is_operand_end(token - 1) ? 0 : base_behind(token + 1);
  const bool member = tokens_[token - 1].is(".") || tokens_[token - 1].is("->");
  if (here.is_identifier() && member) return base_before(token + 1, false);
  // A value that is assigned or passed unchanged gets the location of its read.
  const std::size_t next = here.is_identifier() ? token + 1 : token;
  if (tokens_[next].is("=")) {
    std::size_t end = next + 1;
    while (end < tokens_.size() && !tokens_[end].is(";") && !tokens_[end].is(",")) {
      end = emulate::opens(tokens_[end]) ? tokens_.closing(end) + 1 : end + 1;
    }
    return only_access(next + 1, end, restricted);
  }
  if (!tokens_[next].is("(")) return 0;
  std::size_t begin = next + 1;
  if (tokens_[next - 1].text.starts_with("__ld")) {
    return base_behind(begin + (tokens_[begin].is("&") ? 1 : 0));
  }
  if (writes_first(next)) {
    while (!tokens_[begin].is(",") && begin < tokens_.size()) {
      begin = emulate::opens(tokens_[begin]) ? tokens_.closing(begin) + 1 : begin + 1;
    }
  }
  return only_access(begin, tokens_.closing(next), restricted);
}

/// Returns true if the parenthesis opens the arguments of a function that writes through its first
/// argument.
bool CompiledSource::writes_first(std::size_t open) const {
  const std::string_view name = tokens_[open - 1].text;
  return tokens_[open].is("(") && (name.starts_with("atomic") || name.starts_with("__st"));
}

/// Returns the token that names the pointer of the only access in these tokens; 0 if there are
/// several accesses, or other uses of the parameters.
std::size_t CompiledSource::only_access(std::size_t begin, std::size_t end,
                                        const Names& restricted) const {
  std::size_t only = 0;
  const auto add_access = [&](std::size_t base) {
    const bool first = only == 0 || only == base;
    only = base;
    return base != 0 && first;
  };
  for (std::size_t i = begin; i < end; ++i) {
    if (tokens_[i].is("?") || tokens_[i].is("->")) return 0;
    if (tokens_[i].is("*") && (i == begin || !is_operand_end(i - 1)) && !tokens_[i + 1].is(")") &&
        !add_access(base_behind(i + 1))) {
      return 0;
    }
    if (!tokens_[i].is("[")) continue;
    if (!add_access(base_before(i, true))) return 0;
    i = tokens_.closing(i);
  }
  for (std::size_t i = begin; i < end; ++i) {
    if (i != only && restricted.contains(tokens_[i].text)) return 0;
  }
  return only;
}

bool CompiledSource::is_operand_end(std::size_t token) const {
  const Token& one = tokens_[token];
  if (one.is_identifier()) return !one.is("return");
  return one.kind == TokenKind::number || one.is(")") || one.is("]");
}

/// Returns the token that names the pointer in the expression that ends before `end`: in[i],
/// in[i].x, p->x, *p, *(p + i), (p + i)[j]. `follows`: the pointer before `end` is dereferenced.
std::size_t CompiledSource::base_before(std::size_t end, bool follows) const {
  while (end > 1) {
    const Token& last = tokens_[end - 1];
    if (last.is("]")) {
      end = tokens_.opening(end - 1);
      if (end >= tokens_.size()) return 0;
      follows = true;
    } else if (last.is(")")) {
      const std::size_t open = tokens_.opening(end - 1);
      if (open >= end || open == 0) return 0;
      const bool star = tokens_[open - 1].is("*") && !is_operand_end(open - 2);
      if (!follows && !star) return 0;
      if (tokens_[open - 1].is(">")) {
        const std::size_t angle = emulate::opening_angle(tokens_, open - 1);
        if (angle == 0 || angle >= tokens_.size() || !is_cast(tokens_[angle - 1])) return 0;
      } else if (tokens_[open - 1].is_identifier()) {
        return 0;  // a call
      }
      return base_behind(open + 1);
    } else if (last.is_identifier()) {
      const Token& before = tokens_[end - 2];
      if (before.is("->") || before.is(".")) {
        if (follows) return 0;  // a member that may be a pointer
        follows = before.is("->");
        end -= 2;
        continue;
      }
      if (before.is("::")) return 0;
      const bool star = before.is("*") && !is_operand_end(end - 3);
      return follows || star ? end - 1 : 0;
    } else {
      return 0;
    }
  }
  return 0;
}

/// Returns the token that names the pointer in the expression that begins at `begin`: p, p + i,
/// (T*)p + i, (T*)(p + i), &p[i].
std::size_t CompiledSource::base_behind(std::size_t begin) const {
  std::size_t i = begin;
  while (tokens_[i].is("(")) {
    const std::size_t close = tokens_.closing(i);
    const bool cast = tokens_[close - 1].is("*");
    i = cast ? close + 1 : i + 1;
  }
  if (is_cast(tokens_[i])) {
    while (!tokens_[i].is("(") && !tokens_[i].is(";") && i < tokens_.size()) ++i;
    return base_behind(i + 1);
  }
  if (!tokens_[i].is_identifier()) return 0;
  const Token& next = tokens_[i + 1];
  const bool plain = !next.is("(") && !next.is(".") && !next.is("->") && !next.is("::") &&
                     !next.is("<") && !next.is("?");
  return plain ? i : 0;
}

/// Returns true if the name is an argument of swap(), exchange() or a similar function.
bool CompiledSource::is_swapped(std::size_t word) const {
  std::size_t open = word;
  while (open > 0 && (tokens_[open].is_identifier() || tokens_[open].is(","))) --open;
  if (open == 0 || !tokens_[open].is("(") || !tokens_[open - 1].is_identifier()) return false;
  const std::string_view name = tokens_[open - 1].text;
  return name.find("swap") != std::string_view::npos ||
         name.find("exchange") != std::string_view::npos;
}

/// Returns the parameter from which the pointer `name` is derived; "" if unknown or ambiguous.
std::string_view CompiledSource::origin(std::size_t name, const Scope& scope, int depth) const {
  constexpr int max_depth = 4;  // maximum depth of variables derived from each other
  const std::string_view word = tokens_[name].text;
  if (depth > max_depth) return {};
  const auto parameter = scope.restricted.find(word);
  std::string_view from = parameter != scope.restricted.end() ? std::string_view(*parameter) : "";
  for (std::size_t i = scope.begin; i + 1 < scope.end; ++i) {
    if (!tokens_[i].is(word) || tokens_[i - 1].is(".") || tokens_[i - 1].is("->")) continue;
    // The variable may be changed unobserved by another declaration, a structured binding or a use
    // of its address.
    const bool pointer = tokens_[i - 1].is("*") && is_operand_end(i - 2);  // else a product
    const bool declares = (tokens_[i - 1].is_identifier() && !tokens_[i - 1].is("return")) ||
                          (pointer && !tokens_[i + 1].is("["));
    const bool bound = tokens_[i - 1].is("&") && !is_operand_end(i - 2) && !tokens_[i + 1].is("[");
    const bool reference = tokens_[i - 1].is("&") && is_operand_end(i - 2) &&
                           (tokens_[i + 1].is("=") || tokens_[i + 1].is(":"));
    const bool changes = tokens_[i + 1].is("=");
    if (is_swapped(i) || bound || reference || (declares && !changes)) return {};
    if (!changes) continue;
    const bool pointed = tokens_[i - 1].is("*") && !is_operand_end(i - 2);
    if (pointed) continue;  // *p = ...
    const std::size_t base = base_of_value(i + 2);
    if (base == 0) return {};
    if (tokens_[base].is(word)) continue;  // p = p + 1
    const std::string_view value = origin(base, scope, depth + 1);
    if (value.empty() || (!from.empty() && value != from)) return {};
    from = value;
  }
  return from;
}

/// Returns the token that names the pointer in the value at `begin` that a variable receives; 0 if
/// unknown.
std::size_t CompiledSource::base_of_value(std::size_t begin) const {
  const std::size_t first = begin + (tokens_[begin].is("&") ? 1 : 0);
  const std::size_t base = base_behind(first);
  // An array element is not a pointer.
  if (base == 0 || tokens_[base + 1].is("[") != (first != begin)) return 0;
  for (std::size_t i = base; i < tokens_.size(); ++i) {
    if (tokens_[i].is(";") || tokens_[i].is(",")) break;
    if (tokens_[i].is("?")) return 0;
  }
  return base;
}

namespace {

/// Returns the compiled sources of the program and of the libraries loaded so far.
std::vector<const CompiledSource*> compiled_sources() {
  static std::mutex mutex;
  static auto& all = *new std::map<std::string, std::unique_ptr<CompiledSource>>;
  const std::lock_guard lock(mutex);
  std::vector<const CompiledSource*> sources;
  for (const auto& [name, text] : preprocessed_texts(true)) {
    std::unique_ptr<CompiledSource>& source = all[name];
    if (source == nullptr) source = std::make_unique<CompiledSource>(*text);
    sources.push_back(source.get());
  }
  return sources;
}

}  // namespace

std::vector<const void*> memory_of_several(const LaunchConfig& config, const char* kernel) {
  if (kernel != nullptr && find_restricted(kernel) == nullptr) return {};
  std::vector<const void*> once, several;
  for (const Argument& one : config.arguments) {
    if (one.type == nullptr || one.pointer == nullptr) continue;
    const void* const memory = simt::record::find_memory(one.pointer).begin;
    const bool again = std::find(once.begin(), once.end(), memory) != once.end();
    if (memory != nullptr) (again ? several : once).push_back(memory);
  }
  return several;
}

simt::record::RestrictedParameter parameter_of(const LaunchConfig& config, const char* kernel,
                                               const simt::record::Source& place, bool writes) {
  const Demands* const demands = kernel == nullptr ? nullptr : find_restricted(kernel);
  if (demands == nullptr || place.column == 0) return {};
  Names names;
  for (const char* const name : demands->restricted_names) {
    if (name != nullptr) names.emplace(name);
  }
  std::string plain = plain_name(kernel);
  plain.erase(std::min(plain.find('<'), plain.size()));
  if (const std::size_t at = plain.rfind("::"); at != std::string::npos) plain.erase(0, at + 2);
  simt::record::RestrictedParameter found;
  const auto look = [&] {
    for (const CompiledSource* source : compiled_sources()) {
      found.name = source->parameter_at(place, writes, plain, names);
      if (!found.name.empty()) return;
    }
  };
  std::thread(look).join();  // simulated threads have small stacks
  for (int i = 0; i < Demands::max_restricted && !found.name.empty(); ++i) {
    const char* const name = demands->restricted_names[i];
    if (name == nullptr || found.name != name) continue;
    found.number = i;
    found.pointer = config.arguments[i].pointer;
    found.element_bytes = config.arguments[i].element_bytes;
  }
  return found;
}

}  // namespace rung::cuda
