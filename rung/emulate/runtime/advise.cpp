// SPDX-License-Identifier: Apache-2.0
// Text and advice of findings: names arrays, and drops findings that are consequences of others.
#include "rung/emulate/runtime/advise.hpp"

#include <cxxabi.h>

#include <algorithm>
#include <cstdlib>
#include <set>

#include "rung/emulate/runtime/array_uses.hpp"

namespace rung::cuda {
namespace {

namespace record = simt::record;
using record::Finding;
using record::Kind;

std::string demangled(const std::string& type) {
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> text(
      abi::__cxa_demangle(type.c_str(), nullptr, nullptr, &status), &std::free);
  return status == 0 ? text.get() : "";
}

/// Splits a type such as "float [16][17]" into extents and element type, for the object.
void read_type(record::Object& object) {
  object.type = demangled(object.type);
  const std::size_t bracket = object.type.find(" [");
  if (bracket == std::string::npos) return;
  std::size_t count = 1;
  for (std::size_t at = bracket + 1; at < object.type.size() && object.type[at] == '[';) {
    const std::size_t close = object.type.find(']', at);
    object.extents.push_back(std::strtoull(object.type.c_str() + at + 1, nullptr, 10));
    count *= std::max<std::size_t>(object.extents.back(), 1);
    at = close + 1;
  }
  object.type.erase(bracket);
  object.element_bytes = static_cast<std::size_t>(object.bytes) / count;
}

/// Sets the object's name and type from `extern __shared__ float s[];` if the kernel declares
/// exactly one such array.
void find_dynamic(record::Object& object, const Finding& finding) {
  const SourceTree* const tree = source_tree(finding.file);
  if (tree == nullptr) return;
  const emulate::TokenStream& tokens = tree->tokens();
  const Function* const function = tree->find(finding.line, "").function;
  std::size_t begin = 0, end = tokens.size();
  if (function != nullptr &&
      tree->mentions(function->body.begin, function->body.end, "__shared__")) {
    begin = function->body.begin;
    end = function->body.end;
  }
  static constexpr std::pair<const char*, std::size_t> types[] = {
      {"char", 1},   {"short", 2},    {"int", 4},     {"unsigned", 4}, {"float", 4},
      {"double", 8}, {"float2", 8},   {"float4", 16}, {"int4", 16},    {"half", 2},
      {"__half", 2}, {"uint32_t", 4}, {"int32_t", 4}, {"uint64_t", 8}, {"size_t", 8}};
  std::string name, type;
  for (std::size_t i = begin; i < end; ++i) {
    if (!tokens[i].is("[") || !tokens[i + 1].is("]") || i < 3) continue;
    std::size_t first = i;
    while (first > begin && !tokens[first - 1].is(";") && !tokens[first - 1].is("{")) --first;
    if (!tree->mentions(first, i, "__shared__")) continue;
    if (!name.empty() && name != tokens[i - 1].text) return;
    name = tokens[i - 1].text;
    type = tokens[i - 2].text;
  }
  for (const auto& [word, bytes] : types) {
    if (type != word) continue;
    object.name = name;
    object.type = type;
    object.element_bytes = bytes;
  }
}

/// Returns true if the index is a small negative number that wrapped to 32-bit unsigned.
bool has_wrapped(const record::Object& object) {
  const auto bytes = static_cast<std::int64_t>(object.element_bytes);
  constexpr std::int64_t around = std::int64_t{1} << 32;
  const std::int64_t index = bytes == 0 ? 0 : object.offset / bytes;
  return index < around && index >= around - 65536;
}

std::string element_of(const record::Object& object) {
  if (object.element_bytes == 0) return object.name;
  if (object.offset < 0) {
    const auto bytes = static_cast<std::int64_t>(object.element_bytes);
    return object.name + "[" + std::to_string(object.offset / bytes) + "]";
  }
  auto index = static_cast<std::size_t>(object.offset) / object.element_bytes;
  if (object.extents.empty() && !object.dynamic && object.parameter < 0) return object.name;
  std::string text;
  for (std::size_t i = object.extents.size(); i-- > 1;) {
    text.insert(0, "[" + std::to_string(index % object.extents[i]) + "]");
    index /= object.extents[i];
  }
  return object.name + "[" + std::to_string(index) + "]" + text;
}

}  // namespace

bool knows_both(const Finding& race) {
  const auto differ = [](const auto& a, const auto& b) {
    return a.x != b.x || a.y != b.y || a.z != b.z;
  };
  return race.other_line != 0 &&
         (differ(race.thread, race.other_thread) || differ(race.block, race.other_block));
}

const Function* kernel_of(const SourceTree& tree, const Finding& finding) {
  std::string name = finding.kernel.substr(0, finding.kernel.find('<'));
  if (const std::size_t at = name.rfind("::"); at != std::string::npos) name.erase(0, at + 2);
  return tree.function(name);
}

void name_object(Finding& finding) {
  record::Object& object = finding.object;
  if (!object.type.empty()) read_type(object);
  if (object.parameter >= 0) {
    const SourceTree* tree = source_tree(finding.file);
    if (tree == nullptr || kernel_of(*tree, finding) == nullptr) {
      tree = source_tree(finding.launch_file);
    }
    const Function* const kernel = tree == nullptr ? nullptr : kernel_of(*tree, finding);
    if (kernel == nullptr) return;
    const std::vector<std::string> names = tree->parameters(*kernel);
    const auto which = static_cast<std::size_t>(object.parameter);
    if (which < names.size()) object.name = names[which];
  } else if (object.dynamic) {
    find_dynamic(object, finding);
  }
  if (object.name.empty() || finding.object_text.empty()) return;
  const std::size_t at = finding.message.rfind(finding.object_text);
  if (at == std::string::npos) return;
  std::string text = element_of(object);
  if (finding.kind == Kind::out_of_bounds) {
    if (object.element_bytes == 0) return;
    // A distant address may belong to any array, unless an unsigned index wrapped.
    const auto far = static_cast<std::int64_t>(2 * object.bytes + 65536);
    if ((object.offset > far && !has_wrapped(object)) || object.offset < -65536) {
      object.name.clear();
      return;
    }
    const std::uint64_t count = object.bytes / object.element_bytes;
    text = " of " + text + ": " + object.name + " has " + std::to_string(count) + " element" +
           (count == 1 ? "" : "s") + (object.dynamic ? " in the dynamic shared memory given" : "");
  } else if (finding.kind == Kind::use_after_free || finding.kind == Kind::misaligned) {
    return;
  } else if (!object.allocated.empty() && object.element_bytes != 0 &&
             (finding.kind == Kind::race || finding.kind == Kind::stream_order)) {
    text += " (of " + std::to_string(object.bytes / object.element_bytes) + " " +
            (object.type.empty() ? "elements" : object.type) + ", " + object.allocated + ")";
  }
  finding.message.replace(at, finding.object_text.size(), text);
  finding.object_text = text;
}

void advise(Finding& finding) {
  name_object(finding);
  if (finding.in_library) return;  // the library's source is not part of the program
  if (finding.kind == Kind::race) advise_race(finding);
  if (finding.kind == Kind::out_of_bounds && !advise_allocation(finding)) advise_bounds(finding);
  if (finding.kind == Kind::misaligned) advise_misaligned(finding);
  if (finding.kind == Kind::uninitialized) advise_uninitialized(finding);
  if (finding.kind == Kind::barrier && finding.message.starts_with("lanes of ")) {
    advise_split(finding);
  }
}

namespace {

/// Advises the largest extent that accesses to the same array need; the other accesses then need no
/// guard.
void widen_extent(Finding& finding, const std::vector<Finding>& findings) {
  const auto elements = [](const Finding& one) {
    if (one.fixes.empty() || one.fixes.front().kind != "extent") return 0;
    const std::string& text = one.fixes.front().text;
    int sum = 0;
    for (std::size_t at = 0; (at = text.find('[', at)) != std::string::npos; ++at) {
      sum += std::atoi(text.c_str() + at + 1);
    }
    return sum;
  };
  if (finding.kind != Kind::out_of_bounds) return;
  for (const Finding& other : findings) {
    const bool same = other.kind == finding.kind && other.object.name == finding.object.name &&
                      other.file == finding.file && other.kernel == finding.kernel;
    if (!same || elements(other) <= elements(finding)) continue;
    finding.advice = other.advice;
    finding.fixes = other.fixes;
  }
}

template <class Predicate>
void drop(std::vector<Finding>& findings, Predicate unwanted) {
  std::vector<Finding> kept;
  for (const Finding& one : findings) {
    if (!unwanted(one)) kept.push_back(one);
  }
  findings.swap(kept);
}

/// Replaces an advised __syncwarp() by the __syncthreads() that another finding needs at the same
/// place.
void widen_barrier(Finding& race, const std::vector<Finding>& findings) {
  constexpr std::string_view narrow = "__syncwarp()", wide = "__syncthreads()";
  const auto replace_in = [&](std::string& text) {
    if (const std::size_t at = text.find(narrow); at != std::string::npos) {
      text.replace(at, narrow.size(), wide);
    }
  };
  for (record::Fix& mine : race.fixes) {
    if (mine.text.find(narrow) == std::string::npos) continue;
    const bool wider = std::any_of(findings.begin(), findings.end(), [&](const Finding& other) {
      return std::any_of(other.fixes.begin(), other.fixes.end(), [&](const record::Fix& fix) {
        return fix.kind == mine.kind && fix.file == mine.file && fix.line == mine.line &&
               fix.text.find(wide) != std::string::npos;
      });
    });
    if (!wider) continue;
    replace_in(race.advice);
    for (record::Fix& fix : race.fixes) replace_in(fix.text);
  }
}

/// Returns true if the race may explain the uninitialized read `read`: one side of the race is in
/// the line of `read`, and the statement on the other side writes the array without reading it
/// first.
bool explains(const Finding& race, const Finding& read) {
  if (race.kind != Kind::race || race.space != read.space || read.object.name.empty() ||
      race.object.name != read.object.name) {
    return false;
  }
  const bool here = race.line == read.line && race.file == read.file;
  const bool there = race.other_line == read.line && race.other_file == read.file;
  if (here && there) {  // a line may contain both statements
    const SourceTree* const tree = source_tree(read.file);
    if (tree == nullptr) return false;
    const SourceTree::Spot reader = reader_of(*tree, read.line, read.object.name);
    const std::vector<SourceTree::Spot> uses = uses_of(*tree, read.line, read.object.name);
    return std::any_of(uses.begin(), uses.end(), [&](const SourceTree::Spot& spot) {
      return spot.statement != reader.statement &&
             assigned_end(*tree, *spot.statement, read.object.name) != 0;
    });
  }
  if (!here && !there) return false;
  const SourceTree* const tree = source_tree(here ? race.other_file : race.file);
  if (tree == nullptr) return true;
  const SourceTree::Spot other = tree->find(here ? race.other_line : race.line, race.object.name);
  return other.statement == nullptr ||
         !update_of(*tree, *other.statement, race.object.name, true).has_value();
}

/// Returns true if the race is a consequence of finding `bound`: because of a wrong comparison or a
/// missing guard of the whole statement, indices in the race's line exceed their bounds, and reach
/// the next row before they leave the array.
bool follows_from_bound(const Finding& race, const Finding& bound) {
  if (race.kind != Kind::race || bound.kind != Kind::out_of_bounds || bound.fixes.empty()) {
    return false;
  }
  const record::Fix& fix = bound.fixes.front();
  const bool here = race.line == bound.line && race.file == bound.file;
  const bool there = race.other_line == bound.line && race.other_file == bound.file;
  if (!here || !there || !race.racers.both_write || race.object.name.empty()) return false;
  if (fix.kind == "guard") return fix.text.starts_with("if (");
  return fix.kind == "comparison" && race.object.name == bound.object.name;
}

/// Returns true if finding `one`, a race or an uninitialized read, is a consequence of finding
/// `index` in the same line: an index outside the array's type, which led to the wrong memory.
bool follows_from_index(const Finding& one, const Finding& index) {
  if (one.kind != Kind::race && one.kind != Kind::uninitialized) return false;
  if (index.kind != Kind::out_of_bounds || !index.message.starts_with("index ")) return false;
  const bool here = index.line == one.line && index.file == one.file;
  const bool there =
      one.kind == Kind::race && index.line == one.other_line && index.file == one.other_file;
  if (!here && !there) return false;
  if (one.object.name.empty() || one.object.name == index.object.name) return true;
  const SourceTree* const tree = source_tree(index.file);
  return tree != nullptr && uses_of(*tree, index.line, one.object.name).empty();
}

}  // namespace

void advise(std::vector<Finding>& findings) {
  drop(findings, is_merged_store);
  for (Finding& one : findings) advise(one);
  for (Finding& one : findings) {
    widen_barrier(one, findings);
    widen_extent(one, findings);
  }
  // An index outside the array's type has its own finding; the finding about the access that it
  // leads to is then redundant.
  drop(findings, [&](const Finding& one) {
    return one.kind == Kind::out_of_bounds && !one.message.starts_with("index ") &&
           std::any_of(findings.begin(), findings.end(), [&](const Finding& other) {
             return other.kind == Kind::out_of_bounds && other.message.starts_with("index ") &&
                    other.line == one.line && other.file == one.file;
           });
  });
  // Drops findings about the memory past the end of a row or an array if the index that leads there
  // has its own finding.
  drop(findings, [&](const Finding& one) {
    return std::any_of(findings.begin(), findings.end(), [&](const Finding& other) {
      return follows_from_index(one, other) || follows_from_bound(one, other);
    });
  });
  // A race with an unknown side is redundant if another race in the same line has known sides.
  drop(findings, [&](const Finding& one) {
    return one.kind == Kind::race && !knows_both(one) &&
           std::any_of(findings.begin(), findings.end(), [&](const Finding& other) {
             const bool here = other.line == one.line && other.file == one.file;
             const bool there = other.other_line == one.line && other.other_file == one.file;
             return other.kind == Kind::race && knows_both(other) && (here || there) &&
                    other.object.name == one.object.name && other.space == one.space;
           });
  });
  // The race explains an uninitialized read that comes too early, and has the advice.
  drop(findings, [&](const Finding& one) {
    return one.kind == Kind::uninitialized &&
           std::any_of(findings.begin(), findings.end(),
                       [&](const Finding& race) { return explains(race, one); });
  });
  spell_fixes(findings);
}

void shorten_repeated(std::vector<Finding>& findings) {
  std::set<std::string> made;
  for (Finding& one : findings) {
    bool any_new = one.fixes.empty();
    for (const record::Fix& fix : one.fixes) {
      const std::string place = fix.file + ":" + std::to_string(fix.line);
      any_new |= made.insert(joined({place, "\n", fix.from, "\n", fix.text})).second;
    }
    if (!any_new) one.advice = "the same change mends this";
  }
}

}  // namespace rung::cuda
