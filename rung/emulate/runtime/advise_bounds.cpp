// SPDX-License-Identifier: Apache-2.0
// Advice about indices that an array does not have: the comparison that lets them through, the
// guard that is missing, or more elements.
#include <algorithm>
#include <cstdio>

#include "rung/emulate/brackets.hpp"
#include "rung/emulate/runtime/advise.hpp"

namespace rung::cuda {
namespace {

namespace record = simt::record;
using emulate::TokenStream;
using record::Finding;

/// array[index], or array[a][b] of which `begin` and `end` are the brackets of the wrong one.
struct Access {
  std::size_t name = 0, begin = 0, end = 0;
};

struct Scene {
  const SourceTree& tree;
  const TokenStream& tokens;
  SourceTree::Spot spot;
  Access access;
  [[nodiscard]] std::string index() const { return tree.text(access.begin + 1, access.end); }
};

/// Where the function declares an array of this name, with its bracket; the token of the name.
std::size_t declaration_of(const SourceTree& tree, const Function& function,
                           std::string_view name) {
  const TokenStream& tokens = tree.tokens();
  for (std::size_t i = function.body.begin + 1; i < function.body.end; ++i) {
    if (!tokens[i].is(name)) continue;
    const bool declares = tokens[i - 1].kind == emulate::TokenKind::identifier ||
                          tokens[i - 1].is(",") || tokens[i - 1].is(">");
    return declares && tokens[i + 1].is("[") ? i : 0;
  }
  return 0;
}

/// The accesses of the array of this name; "": of those that the function declares, else of all. In
/// their last but `inner` dimensions.
std::vector<Access> accesses(const SourceTree& tree, const SourceTree::Spot& spot,
                             const std::string& array, std::size_t inner) {
  const TokenStream& tokens = tree.tokens();
  const Statement& one = *spot.statement;
  const bool simple = one.kind == Statement::Kind::simple;
  const std::size_t end = simple ? one.end : one.header_end;
  std::vector<Access> declared, others;
  for (std::size_t i = (simple ? one.begin : one.header_begin) + 1; i < end; ++i) {
    if (!tokens[i].is("[") || tokens[i - 1].kind != emulate::TokenKind::identifier) continue;
    const std::string_view name = tokens[i - 1].text;
    if (!array.empty() && name != array) continue;
    std::vector<std::size_t> brackets = {i};
    while (tokens[tokens.closing(brackets.back()) + 1].is("[")) {
      brackets.push_back(tokens.closing(brackets.back()) + 1);
    }
    const std::size_t which = brackets[brackets.size() - std::min(inner, brackets.size())];
    auto& list = declaration_of(tree, *spot.function, name) != 0 ? declared : others;
    list.push_back({i - 1, which, tokens.closing(which)});
  }
  return declared.empty() ? others : declared;
}

/// Of several accesses the one whose index goes the way that it goes too far.
bool find_access(const SourceTree& tree, const SourceTree::Spot& spot, const std::string& array,
                 std::size_t inner, bool before, Access& found) {
  const std::vector<Access> all = accesses(tree, spot, array, inner);
  for (const Access& one : all) {
    if (found.end == 0 || tree.mentions(one.begin, one.end, before ? "-" : "+")) found = one;
    if (tree.mentions(one.begin, one.end, before ? "-" : "+")) break;
  }
  return !all.empty();
}

/// The comparison v <= bound of a loop or branch around, v being part of the index.
bool advise_comparison(Finding& finding, const Scene& scene) {
  const TokenStream& tokens = scene.tokens;
  for (const Statement* one = scene.spot.statement; one != nullptr; one = one->parent) {
    for (std::size_t i = one->header_begin; i < one->header_end; ++i) {
      if (!tokens[i].is("<=")) continue;
      if (!scene.tree.mentions(scene.access.begin, scene.access.end, tokens[i - 1].text)) continue;
      std::size_t end = i + 1;
      while (end < one->header_end && !tokens[end].is(";") && !tokens[end].is("&&") &&
             !tokens[end].is("||")) {
        end = emulate::opens(tokens[end]) ? tokens.closing(end) + 1 : end + 1;
      }
      const std::string from = scene.tree.text(i - 1, end);
      const std::string to = joined({tokens[i - 1].text, " < ", scene.tree.text(i + 1, end)});
      finding.advice = joined({"use ", to, " instead of ", from, " in line ",
                               std::to_string(scene.tree.line(i))});
      finding.fixes.push_back({"comparison", scene.tree.file(), scene.tree.line(i - 1), from, to});
      return true;
    }
  }
  return false;
}

/// The kernel's parameter of this integer value, except of that name; "": none.
std::string parameter_of(const Finding& finding, const SourceTree& tree, std::int64_t value,
                         const std::string& except = "") {
  const Function* const kernel = kernel_of(tree, finding);
  if (kernel == nullptr) return "";
  const std::vector<std::string> names = tree.parameters(*kernel);
  for (const auto& [number, integer] : finding.integers) {
    const auto which = static_cast<std::size_t>(number);
    if (integer == value && which < names.size() && names[which] != except) return names[which];
  }
  return "";
}
/// The value of the kernel's parameter of this name; 0: it is no such integer.
std::int64_t value_of(const Finding& finding, const SourceTree& tree, const std::string& name) {
  const Function* const kernel = kernel_of(tree, finding);
  if (kernel == nullptr) return 0;
  const std::vector<std::string> names = tree.parameters(*kernel);
  for (const auto& [number, integer] : finding.integers) {
    const auto which = static_cast<std::size_t>(number);
    if (which < names.size() && names[which] == name) return integer;
  }
  return 0;
}

std::string in_parentheses(const std::string& text) {
  const bool plain = text.find_first_of("&|^<>?=") == std::string::npos;
  return plain ? text : "(" + text + ")";
}

/// What the index must fulfil: row < rows && column < columns, index < n.
std::string condition_of(const Finding& finding, const Scene& scene, std::int64_t count) {
  const TokenStream& tokens = scene.tokens;
  const SourceTree& tree = scene.tree;
  const std::size_t begin = scene.access.begin + 1, end = scene.access.end;
  if (finding.object.offset < 0) return scene.index() + " >= 0";
  std::size_t plus = end;
  for (std::size_t i = begin; i < end; ++i) {
    if (tokens[i].is("+")) plus = i;
    if (emulate::opens(tokens[i])) i = tokens.closing(i);
  }
  for (std::size_t star = begin; star < plus; ++star) {  // row * width + column
    if (plus == end || !tokens[star].is("*")) continue;
    for (const bool behind : {true, false}) {
      const std::string width = behind ? tree.text(star + 1, plus) : tree.text(begin, star);
      const std::int64_t columns = value_of(finding, tree, width);
      if (columns <= 0) continue;
      const std::string row = behind ? tree.text(begin, star) : tree.text(star + 1, plus);
      std::string rows = parameter_of(finding, tree, count / columns, width);
      if (rows.empty()) rows = parameter_of(finding, tree, count / columns);
      if (rows.empty()) rows = std::to_string(count / columns);
      return joined({in_parentheses(row), " < ", rows, " && ",
                     in_parentheses(tree.text(plus + 1, end)), " < ", width});
    }
  }
  // Of bounds of rows, say, there is one more than of rows.
  const std::string one_less = parameter_of(finding, tree, count - 1);
  const std::size_t length = end - begin;
  if (!one_less.empty() && length > 2 && tokens[end - 2].is("+") && tokens[end - 1].is("1")) {
    return in_parentheses(tree.text(begin, end - 2)) + " < " + one_less;
  }
  const std::string bound = parameter_of(finding, tree, count);
  return in_parentheses(scene.index()) + " < " + (bound.empty() ? std::to_string(count) : bound);
}

/// An if around the statement, or a choice around what is read.
void advise_guard(Finding& finding, const Scene& scene, std::int64_t count) {
  const TokenStream& tokens = scene.tokens;
  const std::string condition = condition_of(finding, scene, count);
  finding.advice = "guard the access: if (" + condition + ")";
  const Statement& one = *scene.spot.statement;
  if (one.kind != Statement::Kind::simple) {
    // Around a loop, unless the index is its own variable.
    std::size_t own = one.header_begin;
    while (own < one.header_end && !tokens[own + 1].is("=")) ++own;
    if (scene.tree.mentions(scene.access.begin, scene.access.end, tokens[own].text)) return;
    finding.fixes.push_back(
        replacement(scene.tree, "guard", one, "if (" + condition + ") " + scene.tree.text(one)));
    return;
  }
  // A statement that writes at this index, to whatever array.
  std::size_t left = one.begin;
  if (tokens[left].is("+") || tokens[left].is("-")) left += 2;
  const bool writes = tokens[left + 1].is("[") || tokens[left].is("atomicAdd");
  std::size_t open = left + 1;
  while (open < one.end && !tokens[open].is("[")) ++open;
  const bool same = writes && scene.tree.text(open + 1, tokens.closing(open)) == scene.index();
  if (same) {
    finding.fixes.push_back(
        replacement(scene.tree, "guard", one, "if (" + condition + ") " + scene.tree.text(one)));
    return;
  }
  const std::string access = scene.tree.text(scene.access.name, scene.access.end + 1);
  finding.fixes.push_back({"guard", scene.tree.file(), scene.tree.line(scene.access.name), access,
                           "(" + condition + " ? " + access + " : 0)"});
}

/// The declaration of an array that is too short for the block.
bool advise_extent(Finding& finding, const Scene& scene, std::int64_t index) {
  const TokenStream& tokens = scene.tokens;
  const std::string name(tokens[scene.access.name].text);
  const std::size_t declared = declaration_of(scene.tree, *scene.spot.function, name);
  const std::size_t close = tokens.closing(declared + 1);
  if (declared == 0 || tokens[close + 1].is("[")) return false;
  const std::string elements = std::to_string(elements_needed(finding, index));
  finding.advice = "declare " + name + " with " + elements + " elements (line " +
                   std::to_string(scene.tree.line(declared)) + "), or keep the index " +
                   scene.index() + " below " + scene.tree.text(declared + 2, close);
  finding.fixes.push_back({"extent", scene.tree.file(), scene.tree.line(declared),
                           scene.tree.text(declared, close + 1), name + "[" + elements + "]"});
  return true;
}

/// "index 64 of an array of type 'float [64]'": the index and the number of elements.
bool read_index(const std::string& message, long long& index, long long& count) {
  const std::size_t bracket = message.find('[');
  return std::sscanf(message.c_str(), "index %lld", &index) == 1 && bracket != std::string::npos &&
         std::sscanf(message.c_str() + bracket, "[%lld]", &count) == 1;
}

}  // namespace

void advise_bounds(Finding& finding) {
  record::Object& object = finding.object;
  if (object.dynamic && object.element_bytes != 0 && object.offset >= 0) {
    advise_launch(finding);
    return;
  }
  const SourceTree* const tree = source_tree(finding.file);
  if (tree == nullptr) return;
  long long index = 0, count = 0;
  const bool indexed = read_index(finding.message, index, count);
  if (indexed) object.name.clear();  // what is there is another variable
  if (!indexed && (object.name.empty() || object.element_bytes == 0)) return;
  Scene scene{*tree, tree->tokens(), tree->find(finding.line, object.name), {}};
  if (scene.spot.statement == nullptr) return;
  const auto inner =
      static_cast<std::size_t>(std::count(finding.message.begin(), finding.message.end(), '['));
  const bool before = indexed ? index < 0 : object.offset < 0;
  if (!find_access(*tree, scene.spot, object.name, indexed ? inner : 1, before, scene.access)) {
    return;
  }
  if (indexed) {
    object.name = scene.tokens[scene.access.name].text;
    object.offset = index < 0 ? -1 : 0;
    finding.message = "index " + std::to_string(index) + " of " + object.name + ", which has " +
                      std::to_string(count) + " element" + (count == 1 ? "" : "s");
    const std::size_t declared = declaration_of(*tree, *scene.spot.function, object.name);
    std::size_t first = declared;
    while (first > 0 && !scene.tokens[first - 1].is(";") && !scene.tokens[first - 1].is("{")) {
      --first;
    }
    if (tree->mentions(first, declared, "__shared__")) finding.space = record::Space::shared;
  } else {
    count = static_cast<long long>(object.bytes / object.element_bytes);
  }
  if (advise_comparison(finding, scene)) return;
  const bool writes = scene.access.name == scene.spot.statement->begin;
  const std::int64_t threads =
      std::int64_t{1} * finding.block_extent.x * finding.block_extent.y * finding.block_extent.z;
  if (indexed && index >= count && (writes || count < threads) &&
      advise_extent(finding, scene, index)) {
    return;
  }
  advise_guard(finding, scene, count);
}

}  // namespace rung::cuda
