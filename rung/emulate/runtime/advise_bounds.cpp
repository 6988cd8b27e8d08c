// SPDX-License-Identifier: Apache-2.0
// Advice on out-of-bounds indices: a wrong comparison, a missing guard, or a larger array.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "rung/emulate/brackets.hpp"
#include "rung/emulate/runtime/advise.hpp"
#include "rung/emulate/runtime/index_access.hpp"
#include "rung/emulate/runtime/index_terms.hpp"

namespace rung::cuda {
namespace {

namespace record = simt::record;
using emulate::TokenStream;
using record::Finding;

struct Scene {
  const SourceTree& tree;
  const TokenStream& tokens;
  const IndexAccess& access;
  const WrongIndex& wrong;
  [[nodiscard]] std::string index() const { return tree.text(access.begin + 1, access.end); }
};

/// Returns true if v <= bound admits exactly one value too many, v being a coordinate of the index
/// and `bound` its extent.
bool lets_through(const Finding& finding, const Scene& scene, const Statement& around,
                  std::size_t variable, TokenRange bound) {
  const TokenStream& tokens = scene.tokens;
  const ThreadValues values(scene.tree, *scene.access.spot.function, finding);
  const auto first = values.first_value(tokens[variable].text, around);
  if (first.has_value() && tokens[first->begin].is("-")) return false;  // a window around 0
  const std::optional<std::int64_t> last = values.value(bound);
  const auto terms = terms_of(scene.tree, finding, scene.access, scene.wrong.count);
  for (const IndexTerm& term : terms) {
    const bool alone = term.range.end == term.range.begin + 1 &&
                       tokens[term.range.begin].is(tokens[variable].text);
    if (!alone) continue;
    if (last.has_value()) return *last == term.extent;
    if (scene.tree.text(bound.begin, bound.end) == term.bound) return true;
    return terms.size() == 1 && scene.wrong.index == scene.wrong.count;
  }
  return false;
}

/// Corrects the comparison v <= bound of a loop or branch around the access, if v is part of the
/// index. Returns false if there is none.
bool advise_comparison(Finding& finding, const Scene& scene) {
  const TokenStream& tokens = scene.tokens;
  if (scene.wrong.before()) return false;  // a wrong upper bound does not explain an index below 0
  for (const Statement* one = scene.access.spot.statement; one != nullptr; one = one->parent) {
    for (std::size_t i = one->header_begin; i < one->header_end; ++i) {
      if (!tokens[i].is("<=")) continue;
      std::size_t end = i + 1;
      while (end < one->header_end && !tokens[end].is(";") && !tokens[end].is("&&") &&
             !tokens[end].is("||")) {
        end = emulate::opens(tokens[end]) ? tokens.closing(end) + 1 : end + 1;
      }
      if (!lets_through(finding, scene, *one, i - 1, {i + 1, end})) continue;
      const std::string from = scene.tree.text(i - 1, end);
      const std::string to = joined({tokens[i - 1].text, " < ", scene.tree.text(i + 1, end)});
      finding.advice = joined(
          {"use ", to, " instead of ", from, " in line ", std::to_string(scene.tree.line(i))});
      finding.fixes.push_back({"comparison", scene.tree.file(), scene.tree.line(i - 1), from, to});
      return true;
    }
  }
  return false;
}

/// Returns true if the index covers a window around an element: through a loop that begins below 0,
/// or through positive and negative offsets in one statement.
bool is_of_window(const Finding& finding, const Scene& scene) {
  const TokenStream& tokens = scene.tokens;
  const ThreadValues values(scene.tree, *scene.access.spot.function, finding);
  const TokenRange index = scene.access.index();
  for (const Statement* one = scene.access.spot.statement; one != nullptr; one = one->parent) {
    if (one->kind != Statement::Kind::loop) continue;
    std::size_t own = one->header_begin;
    while (own < one->header_end && !tokens[own + 1].is("=")) ++own;
    if (own == one->header_end) continue;
    const std::string_view variable = tokens[own].text;
    if (!scene.tree.mentions(index.begin, index.end, variable)) continue;
    const auto first = values.first_value(variable, *one);
    if (first.has_value() && tokens[first->begin].is("-")) return true;
  }
  bool below = false, above = false;
  const Statement& statement = *scene.access.spot.statement;
  for (std::size_t i = statement.begin; i + 1 < statement.end; ++i) {
    if (!tokens[i].is(tokens[scene.access.name].text) || !tokens[i + 1].is("[")) continue;
    for (std::size_t at = i + 2; at < tokens.closing(i + 1); ++at) {
      if (tokens[at].kind != emulate::TokenKind::number) continue;
      below = below || tokens[at - 1].is("-");
      above = above || tokens[at - 1].is("+");
    }
  }
  return below && above;
}

/// Advises halo elements for a window that exceeds the block's tile, since a guard would omit
/// elements from the sum.
bool advise_halo(Finding& finding, const Scene& scene) {
  const bool reads = scene.access.name != scene.access.spot.statement->begin;
  if (finding.space != record::Space::shared || !reads || !is_of_window(finding, scene)) {
    return false;
  }
  const std::string name(scene.tokens[scene.access.name].text);
  finding.advice =
      joined({"give ", name, " a halo: the window ", name, "[", scene.index(),
              "] reaches elements of neighboring blocks; declare ", name,
              " that much longer on both sides, and load those,", " too, before the barrier"});
  return true;
}

/// Advises on the range of the index, if no condition for a guard is known.
void advise_range(Finding& finding, const Scene& scene) {
  const std::string name(scene.tokens[scene.access.name].text);
  finding.advice = joined({"keep the index ", scene.index(), " of ", name, " between 0 and ",
                           std::to_string(scene.wrong.count - 1)});
}

/// Advises a conditional expression in place of the read: the value if the condition holds, else 0.
void guard_read(Finding& finding, const SourceTree& tree, const IndexAccess& access,
                const std::string& condition) {
  const std::string text = tree.text(access.name, access.end + 1);
  finding.fixes.push_back({"guard", tree.file(), tree.line(access.name), text,
                           "(" + condition + " ? " + text + " : 0)"});
}

/// Returns true if a number is added to the index, as in a[i + 1].
bool has_offset(const Scene& scene, TokenRange index) {
  const TokenStream& tokens = scene.tokens;
  for (std::size_t i = index.begin; i < index.end; ++i) {
    const bool number = tokens[i].kind == emulate::TokenKind::number;
    if (number && (tokens[i - 1].is("+") || tokens[i + 1].is("+"))) return true;
  }
  return false;
}

/// Returns true if the index contains each coordinate of a condition such as "x < width && y <
/// height", as that of a transposed element does. Without the guard its thread writes an element of
/// another thread.
bool indexes_by(const Scene& scene, TokenRange index, std::string_view condition) {
  int coordinates = 0;
  for (std::size_t at = 0; at < condition.size(); ++coordinates) {
    const std::size_t end = std::min(condition.find(" && ", at), condition.size());
    const std::string_view one = condition.substr(at, end - at);
    const std::string_view name = one.substr(0, one.find(" < "));
    if (name.size() == one.size()) return false;
    if (!scene.tree.mentions(index.begin, index.end, name)) return false;
    at = end == condition.size() ? end : end + 4;
  }
  return coordinates >= 2;
}

/// Advises an `if` around the statement, or a conditional expression around the value that is read.
void advise_guard(Finding& finding, const Scene& scene) {
  const TokenStream& tokens = scene.tokens;
  const std::string condition = condition_of(scene.tree, finding, scene.access, scene.wrong);
  if (condition.empty()) {
    advise_range(finding, scene);
    return;
  }
  finding.advice = "guard the access: if (" + condition + ")";
  const Statement& one = *scene.access.spot.statement;
  if (one.kind != Statement::Kind::simple) {
    // The guard encloses the whole loop. If the index uses the loop's own variable, a guard
    // outside cannot test it: no fix is suggested.
    std::size_t own = one.header_begin;
    while (own < one.header_end && !tokens[own + 1].is("=")) ++own;
    if (scene.tree.mentions(scene.access.begin, scene.access.end, tokens[own].text)) return;
    finding.fixes.push_back(
        replacement(scene.tree, "guard", one, "if (" + condition + ") " + scene.tree.text(one)));
    return;
  }
  // Guards the whole statement if it writes to any array at this index.
  std::size_t left = one.begin;
  if (tokens[left].is("+") || tokens[left].is("-")) left += 2;
  const bool writes = tokens[left + 1].is("[") || tokens[left].is("atomicAdd");
  std::size_t open = left + 1;
  while (open < one.end && !tokens[open].is("[")) ++open;
  const bool same = writes && scene.tree.text(open + 1, tokens.closing(open)) == scene.index();
  if (same || (writes && indexes_by(scene, {open + 1, tokens.closing(open)}, condition))) {
    finding.fixes.push_back(
        replacement(scene.tree, "guard", one, "if (" + condition + ") " + scene.tree.text(one)));
    return;
  }
  guard_read(finding, scene.tree, scene.access, condition);
  if (!is_of_window(finding, scene)) return;
  // Other accesses to the array in the statement, at other offsets, need bounds of their own.
  const ThreadValues values(scene.tree, *scene.access.spot.function, finding);
  std::size_t guarded = 0;
  for (const IndexAccess& beside : accesses_beside(scene.tree, scene.access, scene.wrong)) {
    const TokenRange index = beside.index();
    const bool below = values.may_be_negative(index);
    if (tokens[beside.begin - 1].text != tokens[scene.access.name].text) continue;
    if (!below && !has_offset(scene, index)) continue;
    WrongIndex wrong = scene.wrong;
    wrong.index = below ? -1 : wrong.count;
    const std::string other = condition_of(scene.tree, finding, beside, wrong, true);
    if (other.empty()) continue;
    guard_read(finding, scene.tree, beside, other);
    ++guarded;
  }
  if (guarded != 0) finding.advice += ", and its neighbors in the same statement likewise";
}

/// Returns the number of elements that the last thread along one axis of the block needs, given
/// that the finding's thread accesses `index`. Assumes the axis, x or y, along which the thread's
/// index is closer to `index`.
std::int64_t elements_of_axis(const Finding& finding, std::int64_t index) {
  const auto& block = finding.block_extent;
  const std::int64_t x = finding.thread.x, y = finding.thread.y;
  const bool along_y = std::abs(index - y) < std::abs(index - x);
  return index + (along_y ? block.y - y : block.x - x);
}

/// Advises on the one extent of a multidimensional array that a writing thread exceeds.
bool advise_one_extent(Finding& finding, const Scene& scene, std::int64_t index,
                       std::size_t declared) {
  const TokenStream& tokens = scene.tokens;
  std::vector<std::size_t> open;  // opening bracket of each extent
  for (std::size_t at = declared + 1; tokens[at].is("["); at = tokens.closing(at) + 1) {
    open.push_back(at);
  }
  if (scene.wrong.inner == 0 || scene.wrong.inner > open.size()) return false;
  if (scene.access.name != scene.access.spot.statement->begin) return false;
  const std::size_t at = open[open.size() - scene.wrong.inner], close = tokens.closing(at);
  const std::size_t end = tokens.closing(open.back()) + 1;
  const std::string text =
      joined({scene.tree.text(declared, at), "[", std::to_string(elements_of_axis(finding, index)),
              scene.tree.text(close, end)});
  finding.advice =
      joined({"declare ", text, " (line ", std::to_string(scene.tree.line(declared)),
              "), or keep the index ", scene.index(), " below ", scene.tree.text(at + 1, close)});
  finding.fixes.push_back({"extent", scene.tree.file(), scene.tree.line(declared),
                           scene.tree.text(declared, end), text});
  return true;
}

/// Advises a larger extent if the array is declared too small for the block.
bool advise_extent(Finding& finding, const Scene& scene, std::int64_t index) {
  const TokenStream& tokens = scene.tokens;
  const std::string name(tokens[scene.access.name].text);
  const std::size_t declared = declaration_of(scene.tree, *scene.access.spot.function, name);
  if (declared == 0) return false;
  const std::size_t close = tokens.closing(declared + 1);
  if (tokens[close + 1].is("[")) return advise_one_extent(finding, scene, index, declared);
  const std::string elements = std::to_string(elements_needed(finding, index));
  finding.advice = "declare " + name + " with " + elements + " elements (line " +
                   std::to_string(scene.tree.line(declared)) + "), or keep the index " +
                   scene.index() + " below " + scene.tree.text(declared + 2, close);
  finding.fixes.push_back({"extent", scene.tree.file(), scene.tree.line(declared),
                           scene.tree.text(declared, close + 1), name + "[" + elements + "]"});
  return true;
}

/// Reads index and count from a message such as "index 64 of an array of type 'float [64]'".
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
  if (indexed) object.name.clear();  // it names the array that the index reaches
  if (!indexed && (object.name.empty() || object.element_bytes == 0)) return;
  WrongIndex wrong{.array = object.name, .index = index, .count = count};
  if (indexed) {
    wrong.inner =
        static_cast<std::size_t>(std::count(finding.message.begin(), finding.message.end(), '['));
  } else {
    const auto bytes = static_cast<std::int64_t>(object.element_bytes);
    wrong.count = static_cast<std::int64_t>(object.bytes) / bytes;
    const std::int64_t whole = object.offset / bytes;
    wrong.index = whole * bytes > object.offset ? whole - 1 : whole;
    wrong.writes = finding.message.starts_with("a write");
  }
  if (wrong.before()) finding.advice = "compare the index with 0 before the access";
  const std::optional<IndexAccess> access = find_access(*tree, finding, wrong);
  if (!access.has_value()) return;
  const Scene scene{*tree, tree->tokens(), *access, wrong};
  if (indexed) {
    object.name = scene.tokens[access->name].text;
    object.offset = index < 0 ? -1 : 0;
    finding.message = "index " + std::to_string(index) + " of " + object.name + ", which has " +
                      std::to_string(count) + " element" + (count == 1 ? "" : "s");
    const std::size_t declared = declaration_of(*tree, *access->spot.function, object.name);
    std::size_t first = declared;
    while (first > 0 && !scene.tokens[first - 1].is(";") && !scene.tokens[first - 1].is("{")) {
      --first;
    }
    if (tree->mentions(first, declared, "__shared__")) finding.space = record::Space::shared;
  }
  if (advise_comparison(finding, scene) || advise_halo(finding, scene)) return;
  const bool writes = access->name == access->spot.statement->begin;
  const std::int64_t threads =
      std::int64_t{1} * finding.block_extent.x * finding.block_extent.y * finding.block_extent.z;
  const ThreadValues values(*tree, *access->spot.function, finding);
  if (indexed && index >= count && (writes || count < threads) &&
      !values.is_uniform(access->index()) && advise_extent(finding, scene, index)) {
    return;
  }
  advise_guard(finding, scene);
}

}  // namespace rung::cuda
