// SPDX-License-Identifier: Apache-2.0
// Table of a ladder in `rung explain`: one line per rung.
#include <fmt/format.h>

#include <algorithm>
#include <span>

#include "rung/bench/reuse.hpp"
#include "rung/harness/explain_problems.hpp"
#include "rung/harness/explain_tiles.hpp"
#include "rung/harness/facts.hpp"
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
  std::string (*cell)(const Explained& one);
  const char* legend;
};
/// Formats a counted figure.
template <std::string (*of)(const Kernel& kernel)>
std::string counted(const Explained& one) {
  return one.counted() ? of(one.total) : "";
}
constexpr const char* at_best_title = "bound";
constexpr const char* bound_title = "bound by";
constexpr const char* shared_memory = "shared memory";

constexpr Column columns[] = {
    {"declared",
     [](const Explained& one) { return one.declared.bytes > 0 ? whole(one.declared.bytes) : ""; },
     "bytes that the rung says it moves"},
    {"counted", counted<[](const Kernel& k) { return whole(counted_bytes(k.totals)); }>,
     "bytes of all sectors that warps requested, and of bulk copies; caches may hold them"},
    {"loads", counted<[](const Kernel& k) {
       return quotient(k.totals.global_load_sectors, k.totals.global_load_requests);
     }>,
     "sectors per request, the mean: 4 is perfect for 4 bytes per lane, 16 for 16, 1 where all "
     "lanes load one element; -: no request"},
    {"stores", counted<[](const Kernel& k) {
       return quotient(k.totals.global_store_sectors, k.totals.global_store_requests);
     }>,
     "likewise"},
    {"conflicts", counted<[](const Kernel& k) {
       const Counters& c = k.totals;
       const bool any = c.shared_load_requests + c.shared_store_requests != 0;
       return any ? whole(static_cast<double>(c.shared_load_conflicts + c.shared_store_conflicts))
                  : "-";
     }>,
     "bank conflicts of shared memory; -: no request"},
    {"lanes", counted<[](const Kernel& k) { return format_number(k.lanes_per_instruction()); }>,
     "active lanes per instruction, of 32"},
    {"div. %", counted<[](const Kernel& k) { return quotient(100 * k.divergent_warps, k.warps); }>,
     "warps that diverge at some branch"},
    {"barriers",
     counted<[](const Kernel& k) { return whole(static_cast<double>(k.totals.barriers)); }>,
     "warps that arrived at one"},
    {at_best_title,
     [](const Explained& one) {
       const AtBest best = at_best(one);
       return best.seconds > 0 ? format_seconds(best.seconds) : "";
     },
     "the least time in which the chip can do what was counted, were all SMs kept busy"},
    {"x before", [](const Explained& one) { return one.gain > 0 ? format_number(one.gain) : ""; },
     "the bound of the rung before over this one's: how many times faster it may be"},
    {bound_title,
     [](const Explained& one) {
       const AtBest best = at_best(one);
       return best.bound == shared_memory ? "shared" : best.bound;
     },
     "the roof that sets it: arithmetic, memory, L1, L2, shared memory, issue of instructions, "
     "launches of blocks, or latency"},
};
/// Columns dropped one by one, in this order, on a narrow terminal; the rung's time at best is
/// always kept.
constexpr const char* dispensable[] = {"lanes",   "declared",  "barriers",  "stores", "div. %",
                                       "counted", bound_title, "conflicts", "loads",  "x before"};

bool contains(std::span<const char* const> titles, std::string_view title) {
  return std::any_of(titles.begin(), titles.end(), [&](const char* one) { return one == title; });
}

std::string table_without(const std::vector<const Explained*>& rungs,
                          std::span<const char* const> left_out, std::size_t width) {
  std::vector<const Column*> shown;
  std::vector<Table::Column> titles = {{"rung"}};
  for (const Column& column : columns) {
    if (contains(left_out, column.title)) continue;
    shown.push_back(&column);
    const bool words = column.title == std::string_view(bound_title);
    titles.push_back({column.title, !words, words ? Table::Fit::cut : Table::Fit::keep});
  }
  Table table(std::move(titles));
  for (const Explained* one : rungs) {
    std::vector<std::string> cells = {std::string(one->rung->name)};
    for (const Column* column : shown) cells.push_back(column->cell(*one));
    table.add(std::move(cells));
  }
  return table.text(width);
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

/// Loads of a product's operands by the model of `rung reuse`; empty if the tile is unknown.
struct ModeledLoads {
  std::string per_multiply_add, a_passes, b_passes;
};

ModeledLoads modeled_loads(const ExplainProduct& product, std::string_view rung) {
  const auto tile = std::find_if(product.tiles.begin(), product.tiles.end(),
                                 [&](const ExplainTile& one) { return one.rung == rung; });
  if (tile == product.tiles.end()) return {};
  const auto loads_of = [&](double rows, double columns) {
    return bench::tiled_loads({.m = product.m, .k = product.k, .n = product.n},
                              rows > 0 ? rows : product.m, columns > 0 ? columns : product.n);
  };
  const bench::OperandLoads in_registers = loads_of(tile->rows, tile->columns);
  const bench::OperandLoads in_cache = loads_of(tile->cache_rows, tile->cache_columns);
  const double multiply_adds = product.m * product.n * product.k;
  const double sums = tile->sums_move ? 1 : 0;
  return {format_number(in_registers.total() / multiply_adds + sums),
          format_number(in_cache.a / (product.m * product.k)),
          format_number(in_cache.b / (product.k * product.n))};
}

constexpr const char* modeled_legend =
    "loads: elements loaded into registers per multiply-add, sums included where they are loaded "
    "anew. A, B: how often all of it passes through the caches. By the model of `rung reuse`, from "
    "each rung's tile.";

/// Describes rungs without counters: the Changes field of each, and modeled loads.
std::string changes_text(std::string_view op, const std::vector<const Explained*>& rungs) {
  const ExplainProduct product = AnyExplainTiles::of(op, rungs.front()->problem);
  const bool modeled = !product.tiles.empty() && rungs.front()->rung->backend == Backend::cpu;
  std::vector<Table::Column> columns = {{"rung"}};
  if (modeled) {
    for (const char* title : {"loads", "A", "B"}) {
      columns.push_back({title, true});
    }
  }
  columns.push_back({"changes", false, Table::Fit::cut});
  Table table(std::move(columns));
  for (const Explained* one : rungs) {
    std::string changes;
    for (const RungHeader::Field& field : one->header.fields) {
      if (field.name == "Changes") changes = field.text.substr(0, field.text.find(". "));
    }
    std::vector<std::string> cells = {std::string(one->rung->name)};
    if (modeled) {
      const ModeledLoads loads = modeled_loads(product, one->rung->name);
      for (const std::string& cell : {loads.per_multiply_add, loads.a_passes, loads.b_passes}) {
        cells.push_back(cell);
      }
    }
    cells.push_back(changes);
    table.add(std::move(cells));
  }
  std::string text = table.text();
  if (!modeled) return text;
  text += '\n';
  for (const std::string& line : wrap(modeled_legend, terminal_width())) text += line + '\n';
  return text;
}

/// Tables of one ladder, and their columns.
class Ladder {
 public:
  explicit Ladder(std::string_view op) : op_(op) {}

  void add(const std::vector<const Explained*>& rungs, const std::string& remark) {
    const Explained& first = *rungs.front();
    text_ += fmt::format("{}{} {}: {} must move{}\n", text_.empty() ? "" : "\n", op_,
                         first.problem.to_string(), count_of(whole(first.compulsory.bytes), "byte"),
                         remark);
    if (first.at) at_ = first.at->to_string();
    const AtBest best = at_best(first);
    const bool all_alike = rungs.size() > 1 && best.seconds > 0 &&
                           std::all_of(rungs.begin(), rungs.end(), [&](const Explained* one) {
                             const AtBest other = at_best(*one);
                             return other.seconds == best.seconds && other.bound == best.bound;
                           });
    if (all_alike) {
      say(fmt::format("Each of these rungs takes {} at best on {} ({}), bound by {}.",
                      format_seconds(best.seconds), first.chip.name, first.chip.remark,
                      best.bound));
    }
    text_ += '\n';
    const bool any_counted = std::any_of(rungs.begin(), rungs.end(),
                                         [](const Explained* one) { return one->counted(); });
    if (!any_counted && all_alike) {
      text_ += changes_text(op_, rungs);
      return;
    }
    text_ += table_that_fits(rungs, all_alike);
    chips_.push_back(first.chip.name);
  }
  /// Returns the meaning of the columns shown.
  [[nodiscard]] std::string legend() const {
    std::string legend;
    for (const Column& column : columns) {
      if (!contains(shown_, column.title)) continue;
      legend += fmt::format("{}: {}. ", column.title, column.legend);
    }
    if (contains(shown_, at_best_title)) legend += fmt::format("The chip: {}. ", chips_.front());
    if (at_) legend += fmt::format("Bounds are of {}, extrapolated. ", *at_);
    return legend;
  }
  /// Returns the columns that some table lacks; "" if there are none.
  [[nodiscard]] std::string missing() const {
    std::string titles;
    for (const Column& column : columns) {
      if (!contains(dropped_, column.title)) continue;
      titles += fmt::format("{}{}", titles.empty() ? "" : ", ", column.title);
    }
    return titles.empty()
               ? ""
               : fmt::format("No room in some table for: {}. A wider terminal shows all.", titles);
  }
  void say(const std::string& sentence) {
    for (const std::string& line : wrap(sentence, terminal_width())) text_ += line + '\n';
  }
  [[nodiscard]] const std::string& text() const { return text_; }

 private:
  std::string table_that_fits(const std::vector<const Explained*>& rungs, bool best_is_said) {
    std::vector<const char*> out;
    if (best_is_said) out = {at_best_title, bound_title};
    const std::size_t said = out.size();
    constexpr std::size_t any_width = 1000;
    for (const char* const title : dispensable) {
      if (width_of(table_without(rungs, out, any_width)) <= terminal_width()) break;
      if (!contains(out, title)) out.push_back(title);
    }
    dropped_.insert(dropped_.end(), out.begin() + static_cast<std::ptrdiff_t>(said), out.end());
    for (const Column& column : columns) {
      if (!contains(out, column.title)) shown_.push_back(column.title);
    }
    return table_without(rungs, out, terminal_width());
  }

  std::string_view op_;
  std::string text_;
  std::vector<std::string> chips_;
  std::vector<const char*> shown_, dropped_;
  std::optional<std::string> at_;
};

/// Returns why the rungs of this problem are not in the first table.
std::string remark_on(const AnyOperator& op, const Problem& problem) {
  for (const ExplainProblem& one : AnyExplainProblems::of(op.name())) {
    if (one.rung.empty() || Problem::parse(one.problem) != problem) continue;
    return fmt::format("; chosen for {}", one.rung);
  }
  return "; of rungs that do not take the first problem";
}

/// Lists rungs that were not counted, with the reason; the reason is given only once if all rungs
/// that support the problem have it.
std::string not_counted(const std::vector<Explained>& rungs) {
  std::vector<const Explained*> refused, others;
  for (const Explained& one : rungs) {
    if (!one.counted()) (one.refused ? refused : others).push_back(&one);
  }
  std::string text;
  const bool alike = others.size() > 1 && others.size() + refused.size() == rungs.size() &&
                     std::all_of(others.begin(), others.end(), [&](const Explained* one) {
                       return one->why_not_run == others.front()->why_not_run;
                     });
  if (alike) {
    text += fmt::format("\nnot counted: {}\n", others.front()->why_not_run);
    others.clear();
  }
  if (refused.empty() && others.empty()) return text;
  text += alike ? "\n" : "\nnot counted\n";
  for (const auto* all : {&others, &refused}) {
    for (const Explained* one : *all) {
      const std::string why = fmt::format("{}: {}", one->rung->name, one->why_not_run);
      for (const std::string& line : wrap(why, terminal_width())) text += line + '\n';
    }
  }
  return text;
}

}  // namespace

std::string ladder_text(const AnyOperator& op, const Problem& problem,
                        const std::vector<Explained>& rungs) {
  std::vector<const Problem*> problems = {&problem};
  for (const Explained& one : rungs) {
    const bool known = std::any_of(problems.begin(), problems.end(),
                                   [&](const Problem* p) { return *p == one.problem; });
    if (!known) problems.push_back(&one.problem);
  }
  Ladder ladder(op.name());
  for (const std::string& fact : AnyFacts::of(op.name(), problem)) ladder.say(fact);
  for (const Problem* one : problems) {
    std::vector<const Explained*> here;
    for (const Explained& rung : rungs) {
      const bool shown = rung.counted() || (rung.rung->backend != Backend::simt && !rung.refused);
      if (rung.problem == *one && shown) here.push_back(&rung);
    }
    if (here.empty()) continue;
    ladder.add(here, one == &problem ? "" : remark_on(op, *one));
  }
  std::string text = ladder.text() + not_counted(rungs);
  const std::string legend =
      ladder.legend() + fmt::format("`rung explain {}/RUNG` tells all of one.", op.name());
  text += '\n';
  for (const std::string& line : wrap(legend, terminal_width())) text += line + '\n';
  if (const std::string missing = ladder.missing(); !missing.empty()) {
    for (const std::string& line : wrap(missing, terminal_width())) text += line + '\n';
  }
  return text;
}

}  // namespace rung::workbench
