// SPDX-License-Identifier: Apache-2.0
// A ladder as `rung explain` prints it: a line per rung.
#include <fmt/format.h>

#include <algorithm>

#include "rung/core/facts.hpp"
#include "rung/workbench/explain.hpp"
#include "rung/workbench/table.hpp"
#include "rung/workbench/terminal.hpp"

namespace rung::workbench {
namespace {

using simt::record::Counters;
using simt::record::Kernel;

std::string quotient(std::uint64_t of, std::uint64_t by) {
  return by == 0 ? "-" : format_number(static_cast<double>(of) / static_cast<double>(by));
}

struct Column {
  const char* title;
  std::string (*cell)(const Explained& one, const Chip& chip);
};
/// Of what was counted.
template <std::string (*of)(const Kernel& kernel)>
std::string counted(const Explained& one, const Chip&) {
  return one.counted() ? of(one.total) : "";
}
constexpr Column columns[] = {
    {"declared",
     [](const Explained& one, const Chip&) {
       return one.declared.bytes > 0 ? whole(one.declared.bytes) : "";
     }},
    {"counted", counted<[](const Kernel& k) { return whole(counted_bytes(k.totals)); }>},
    {"loads", counted<[](const Kernel& k) {
       return quotient(k.totals.global_load_sectors, k.totals.global_load_requests);
     }>},
    {"stores", counted<[](const Kernel& k) {
       return quotient(k.totals.global_store_sectors, k.totals.global_store_requests);
     }>},
    {"conflicts", counted<[](const Kernel& k) {
       const Counters& c = k.totals;
       const bool any = c.shared_load_requests + c.shared_store_requests != 0;
       return any ? std::to_string(c.shared_load_conflicts + c.shared_store_conflicts) : "-";
     }>},
    {"lanes", counted<[](const Kernel& k) { return format_number(k.lanes_per_instruction()); }>},
    {"div. %", counted<[](const Kernel& k) { return quotient(100 * k.divergent_warps, k.warps); }>},
    {"barriers", counted<[](const Kernel& k) { return std::to_string(k.totals.barriers); }>},
    {"at best",
     [](const Explained& one, const Chip& chip) {
       const std::vector<Position> points = positions(one);
       return points.empty()
                  ? ""
                  : format_seconds(bench::seconds_at_best(points.back().cost, chip.ceiling));
     }},
};
/// Left out one after the other where the terminal is too narrow for all.
constexpr const char* dispensable[] = {"lanes", "at best", "barriers", "declared"};

std::string table_without(const std::vector<const Explained*>& rungs, const Chip& chip,
                          std::span<const char* const> left_out) {
  std::vector<const Column*> shown;
  std::vector<Table::Column> titles = {{"rung"}};
  for (const Column& column : columns) {
    const bool out = std::any_of(left_out.begin(), left_out.end(), [&](const char* title) {
      return std::string_view(title) == column.title;
    });
    if (out) continue;
    shown.push_back(&column);
    titles.push_back({column.title, true});
  }
  Table table(std::move(titles));
  for (const Explained* one : rungs) {
    std::vector<std::string> cells = {std::string(one->rung->name)};
    for (const Column* column : shown) cells.push_back(column->cell(*one, chip));
    table.add(std::move(cells));
  }
  return table.text();
}

std::size_t width_of(const std::string& text) {
  std::size_t widest = 0;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    widest = std::max(widest, end - begin);
    begin = end + 1;
  }
  return widest;
}

std::string table_text(const std::vector<const Explained*>& rungs, const Chip& chip) {
  const std::span<const char* const> all(dispensable);
  std::string text;
  for (std::size_t out = 0; out <= all.size(); ++out) {
    text = table_without(rungs, chip, all.first(out));
    if (width_of(text) <= terminal_width()) break;
  }
  return text;
}

}  // namespace

std::string ladder_text(const AnyOperator& op, const Problem& problem,
                        const std::vector<Explained>& rungs, const Chip& chip) {
  std::vector<const Problem*> problems = {&problem};
  std::string refusals;
  for (const Explained& one : rungs) {
    const bool known = std::any_of(problems.begin(), problems.end(),
                                   [&](const Problem* p) { return *p == one.problem; });
    if (!known) problems.push_back(&one.problem);
    if (one.counted()) continue;
    const std::string why = fmt::format("{}: {}", one.rung->name, one.why_not_run);
    for (const std::string& line : wrap(why, terminal_width())) refusals += line + '\n';
  }
  std::string text;
  for (const std::string& fact : AnyFacts::of(op.name(), problem)) {
    for (const std::string& line : wrap(fact, terminal_width())) text += line + '\n';
  }
  for (const Problem* one : problems) {
    std::vector<const Explained*> here;
    for (const Explained& rung : rungs) {
      const bool shown = rung.counted() || rung.rung->backend != Backend::simt;
      if (rung.problem == *one && shown) here.push_back(&rung);
    }
    if (here.empty()) continue;
    text += fmt::format("{}{} {}: {} bytes must move{}\n\n", text.empty() ? "" : "\n", op.name(),
                        one->to_string(), whole(here.front()->compulsory.bytes),
                        one == &problem ? "" : "; of rungs that do not take the first problem");
    text += table_text(here, chip);
  }
  if (!refusals.empty()) text += "\nnot counted\n" + refusals;
  const std::string legend = fmt::format(
      "declared, counted: bytes between SMs and L2, counted in whole sectors and as bulk copies. "
      "loads, stores: sectors per request (4 is perfect for 4 bytes per lane, 16 for 16). "
      "conflicts: bank conflicts of shared memory. lanes: active lanes per instruction, of 32. "
      "div. %: warps that diverge. at best: on {}, if every byte came from memory. `rung explain "
      "{}/RUNG` tells all of one.",
      chip.name, op.name());
  text += '\n';
  for (const std::string& line : wrap(legend, terminal_width())) text += line + '\n';
  return text;
}

}  // namespace rung::workbench
