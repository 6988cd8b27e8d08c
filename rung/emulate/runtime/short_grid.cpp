// SPDX-License-Identifier: Apache-2.0
// Detects grids that are too small: `n / 256` blocks of 256 threads for a kernel with the guard `if
// (i < n)`. Each thread writes its element, the last elements remain unwritten, and the host reads
// all of them.
#include "rung/emulate/runtime/short_grid.hpp"

#include <algorithm>
#include <cstdint>
#include <mutex>
#include <unordered_map>
#include <utility>
#include <vector>

#include "rung/emulate/brackets.hpp"
#include "rung/emulate/runtime/advise.hpp"
#include "rung/emulate/runtime/memory.hpp"
#include "rung/emulate/runtime/thread_values.hpp"
#include "rung/simt/limits.hpp"
#include "rung/simt/record.hpp"
#include "rung/simt/simulator.hpp"

namespace rung::cuda {
namespace {

namespace record = simt::record;

/// Extents of an array and of the threads that cover it; a one-dimensional array has a single row.
struct Shape {
  std::uint64_t width = 0, height = 1;
  std::uint64_t wide = 0, high = 1;  // extents in threads
};

struct ShortGrid {
  const char* array = nullptr;
  std::size_t element_bytes = 0;
  Shape shape;
  dim3 grid, block;
  std::string kernel;
  Place place;
};

std::mutex grids_mutex;
std::unordered_map<const void*, std::vector<ShortGrid>>& known() {
  static auto& by_array = *new std::unordered_map<const void*, std::vector<ShortGrid>>;
  return by_array;
}

/// Returns the shapes of arrays that the launch's integer arguments suggest, that have at most
/// `room` elements, and that the grid does not cover.
std::vector<Shape> short_shapes(const LaunchConfig& config, std::uint64_t room) {
  std::vector<std::uint64_t> integers;
  for (const Argument& one : config.arguments) {
    if (one.is_integer && one.integer > 1) {
      integers.push_back(static_cast<std::uint64_t>(one.integer));
    }
  }
  const std::uint64_t x = std::uint64_t{config.grid.x} * config.block.x;
  const std::uint64_t y = std::uint64_t{config.grid.y} * config.block.y;
  const std::uint64_t z = std::uint64_t{config.grid.z} * config.block.z;
  std::vector<Shape> shapes;
  if (z != 1) return shapes;
  for (const std::uint64_t n : integers) {
    if (y == 1 && n > x && n <= room) shapes.push_back({n, 1, x, 1});
  }
  if (y == 1) return shapes;
  for (std::size_t i = 0; i < integers.size(); ++i) {
    for (std::size_t j = 0; j < integers.size(); ++j) {
      const std::uint64_t width = integers[i], height = integers[j];
      if (i == j || (width <= x && height <= y) || width > room / height) continue;
      shapes.push_back({width, height, std::min(width, x), std::min(height, y)});
    }
  }
  return shapes;
}

bool unwritten(const char* from, std::size_t bytes) {
  if (bytes == 0) return true;
  if (!record::never_written(from, bytes)) return false;
  const DeviceAccess access;
  return std::all_of(from, from + bytes,
                     [](char one) { return static_cast<unsigned char>(one) == simt::poison; });
}

/// Returns true if the corners of the covered part have been written, and no element outside this
/// part has.
bool fits(const ShortGrid& one) {
  const Shape& s = one.shape;
  const auto at = [&](std::uint64_t row, std::uint64_t column) {
    return one.array + (row * s.width + column) * one.element_bytes;
  };
  for (const std::uint64_t row : {std::uint64_t{0}, s.high - 1}) {
    for (const std::uint64_t column : {std::uint64_t{0}, s.wide - 1}) {
      if (record::never_written(at(row, column), one.element_bytes)) return false;
    }
  }
  for (std::uint64_t row = 0; row < s.high; ++row) {
    if (!unwritten(at(row, s.wide), (s.width - s.wide) * one.element_bytes)) return false;
  }
  return unwritten(at(s.high, 0), (s.height - s.high) * s.width * one.element_bytes);
}

/// Formats the advice: "launch 2 blocks: (300 + 255) / 256 rounds up, where 300 / 256 drops the
/// rest".
std::string advice_for(std::uint64_t elements, unsigned block, const char* along) {
  const std::string count = std::to_string(elements), size = std::to_string(block);
  const std::string more = std::to_string(block - 1);
  return "launch " + std::to_string((elements + block - 1) / block) + " blocks" + along + ": (" +
         count + " + " + more + ") / " + size + " rounds up, where " + count + " / " + size +
         " drops the rest";
}

/// Returns the first token of the operand that ends before `end`; operand_end() returns one past
/// the operand that begins at `begin`. An operand is a name, a number, or a parenthesized
/// expression.
std::size_t operand_begin(const emulate::TokenStream& tokens, std::size_t end) {
  std::size_t at = end - 1;
  if (emulate::closes(tokens[at])) at = tokens.opening(at);
  while (tokens[at - 1].is(".") || tokens[at - 1].is("->") ||
         (tokens[at].is("(") && tokens[at - 1].is_identifier())) {
    at -= tokens[at].is("(") ? 1 : 2;
  }
  return at;
}
std::size_t operand_end(const emulate::TokenStream& tokens, std::size_t begin) {
  std::size_t at = begin;
  while (tokens[at + 1].is(".") || tokens[at + 1].is("->")) at += 2;
  if (tokens[at].is("(")) return tokens.closing(at) + 1;
  return tokens[at + 1].is("(") ? tokens.closing(at + 1) + 1 : at + 1;
}

/// Changes the first division among these tokens to round up. Returns false if there is none.
bool round_up(const SourceTree& tree, TokenRange range, record::Finding& finding) {
  const emulate::TokenStream& tokens = tree.tokens();
  for (std::size_t i = range.begin; i < range.end; ++i) {
    if (!tokens[i].is("/")) continue;
    std::size_t begin = operand_begin(tokens, i), end = operand_end(tokens, i + 1);
    const std::string n = tree.text(begin, i), size = tree.text(i + 1, end);
    // ceil() or ceilf() around the division has no effect: its argument is an integer quotient.
    const std::string_view function = tokens[begin - 2].text;
    const bool ceils = tokens[begin - 1].is("(") && tokens[end].is(")") &&
                       (function == "ceil" || function == "ceilf");
    if (ceils) {
      begin -= tokens[begin - 3].is("::") ? 4 : 2;
      end += 1;
      finding.advice += joined({"; ", function, "() gets a quotient of integers, already rounded"});
    }
    // A numerator that already rounds up belongs to another axis.
    if (tree.mentions(range.begin, i, "-")) continue;
    std::string text = n;
    while (text.back() == ' ') text.pop_back();
    finding.fixes.push_back({"grid", tree.file(), tree.line(begin), tree.text(begin, end),
                             joined({"(", text, " + ", size, " - 1) / ", size})});
    return true;
  }
  return false;
}

/// Changes the division that computes the launch's number of blocks to round up. `axis`: axis of a
/// multidimensional grid.
void fix_grid(record::Finding& finding, std::size_t axis) {
  const SourceTree* const tree = source_tree(finding.file);
  if (tree == nullptr) return;
  const emulate::TokenStream& tokens = tree->tokens();
  std::size_t open = 0;
  while (open < tokens.size() && (tree->line(open) != finding.line || !tokens[open].is("<<") ||
                                  !tokens[open + 1].is("<"))) {
    ++open;
  }
  if (open >= tokens.size()) return;
  const auto end_of = [&](std::size_t begin) {
    std::size_t i = begin;
    while (i < tokens.size() && !tokens[i].is(",") && !tokens[i].is(";") &&
           !emulate::closes(tokens[i])) {
      i = emulate::opens(tokens[i]) ? tokens.closing(i) + 1 : i + 1;
    }
    return i;
  };
  TokenRange range{open + 2, end_of(open + 2)};
  const Function* function = nullptr;
  for (const auto& one : tree->functions()) {
    if (one->body.begin < open && open < one->body.end) function = one.get();
  }
  // Follows variables to an argument of dim3(a, b) or to an initializer.
  for (int depth = 0; depth < 4; ++depth) {
    std::size_t bracket = range.begin;
    if (tokens[bracket].is("dim3")) ++bracket;
    if (tokens[bracket].is("(") || tokens[bracket].is("{")) {
      const bool list = bracket != range.begin || tokens[bracket].is("{");
      if (list) {
        std::size_t begin = bracket + 1;
        for (std::size_t left = axis; left > 0; --left) begin = end_of(begin) + 1;
        range = {begin, end_of(begin)};
      }
    }
    if (round_up(*tree, range, finding)) return;
    if (function == nullptr || range.end != range.begin + 1) return;
    const std::string_view name = tokens[range.begin].text;
    TokenRange next{0, 0};
    for (std::size_t i = function->body.begin; i < open; ++i) {
      if (!tokens[i].is(name)) continue;
      if (tokens[i + 1].is("=")) next = {i + 2, end_of(i + 2)};
      if (tokens[i - 1].is("dim3") && (tokens[i + 1].is("(") || tokens[i + 1].is("{"))) {
        std::size_t begin = i + 2;
        for (std::size_t left = axis; left > 0; --left) begin = end_of(begin) + 1;
        next = {begin, end_of(begin)};
      }
    }
    if (next.begin == next.end) return;
    range = next;
  }
}

void report(const ShortGrid& one) {
  const Shape& s = one.shape;
  const std::uint64_t elements = s.width * s.height, threads = s.wide * s.high;
  const bool rows = s.height != 1;
  const std::string size =
      rows ? std::to_string(s.height) + " x " + std::to_string(s.width) : std::to_string(elements);
  record::Finding finding;
  finding.kind = record::Kind::uninitialized;
  finding.file = record::shown_path(one.place.file_name());
  finding.line = static_cast<int>(one.place.line());
  finding.message =
      "the grid of " + one.kernel + " is too small: it wrote " + std::to_string(threads) + " of " +
      size + " elements, one per thread, and the host copies those that no thread has written";
  finding.advice = s.wide < s.width ? advice_for(s.width, one.block.x, rows ? " in x" : "")
                                    : advice_for(s.height, one.block.y, " in y");
  fix_grid(finding, s.wide < s.width ? 0 : 1);
  const record::Memory memory = record::find_memory(one.array);
  if (memory.code != nullptr) {
    const record::Source there = record::place_of(memory.code);
    finding.other_file = there.file;
    finding.other_line = there.line;
  }
  record::add(std::move(finding));
}

}  // namespace

void note_grid(const LaunchConfig& config, const std::string& kernel) {
  if (!record::checking()) return;
  for (const Argument& one : config.arguments) {
    if (one.type == nullptr || one.pointer == nullptr || one.element_bytes == 0) continue;
    const auto* const array = static_cast<const char*>(one.pointer);
    const Allocation memory = find(array);
    if (memory.begin == nullptr || memory.type != cudaMemoryTypeDevice) continue;
    const auto room = static_cast<std::size_t>(memory.begin + memory.bytes - array);
    std::vector<ShortGrid> grids;
    for (const Shape& shape : short_shapes(config, room / one.element_bytes)) {
      grids.push_back(
          {array, one.element_bytes, shape, config.grid, config.block, kernel, config.place});
    }
    const std::lock_guard lock(grids_mutex);
    constexpr std::size_t most = 4096;  // limit, since each copy to the host searches all entries
    if (grids.empty() || known().size() >= most) {
      known().erase(array);
    } else {
      known()[array] = std::move(grids);
    }
  }
}

void check_grid(const void* from, std::size_t bytes) {
  const auto* const begin = static_cast<const char*>(from);
  const std::lock_guard lock(grids_mutex);
  for (auto& [array, grids] : known()) {
    for (const ShortGrid& one : grids) {
      const std::size_t size = one.shape.width * one.shape.height * one.element_bytes;
      if (one.array < begin || one.array + size > begin + bytes || !fits(one)) continue;
      report(one);
      break;
    }
  }
}

}  // namespace rung::cuda
