// SPDX-License-Identifier: Apache-2.0
// What `rung explain` prints.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "rung/core/error.hpp"
#include "rung/workbench/explain.hpp"
#include "rung/workbench/kernel_name.hpp"
#include "rung/workbench/table.hpp"

namespace rung::workbench {
namespace {

using simt::record::Kernel;

constexpr std::size_t field_width = 9;  // "Changes  "

std::string header_text(const RungHeader& header) {
  std::string text;
  for (const RungHeader::Field& field : header.fields) {
    bool first = true;
    for (const std::string& line : wrap(field.text, page_width - field_width)) {
      text += fmt::format("{:<{}}{}\n", first ? field.name : "", field_width, line);
      first = false;
    }
  }
  return text;
}

std::string show(double value, bool ratio = false) {
  if (ratio) return value == 0 ? "-" : format_number(value);
  return fmt::format("{:.0f}", value);
}

/// What became of a number: "same", "/ 32", "x 2", "new", "gone".
std::string change(double before, double now) {
  if (before == now) return "same";
  if (before == 0) return "new";
  if (now == 0) return "gone";
  return now < before ? "/ " + format_number(before / now) : "x " + format_number(now / before);
}

std::string rate_text(double per_second, const char* unit) {
  return per_second >= 1e12 ? fmt::format("{} T{}", format_number(per_second * 1e-12), unit)
                            : fmt::format("{} G{}", format_number(per_second * 1e-9), unit);
}

void add_row(Table& table, const std::string& label, const Explained* before, double then,
             double now, bool ratio = false) {
  if (now == 0 && (before == nullptr || then == 0)) return;
  std::vector<std::string> cells = {label};
  if (before != nullptr) cells.push_back(show(then, ratio));
  cells.push_back(show(now, ratio));
  if (before != nullptr) cells.push_back(change(then, now));
  table.add(std::move(cells));
}

std::string numbers_text(const Explained& one, const Explained* before) {
  std::vector<Table::Column> columns = {{""}};
  if (before != nullptr) columns.push_back({std::string(before->rung->name), true});
  columns.push_back({std::string(one.rung->name), true});
  if (before != nullptr) columns.push_back({"change", true});
  Table table(std::move(columns));
  const auto was = [&](auto what) { return before != nullptr ? what(*before) : 0.0; };
  add_row(table, "operations, declared", before,
          was([](const Explained& e) { return e.declared.operations; }), one.declared.operations);
  add_row(table, "bytes that must move", before,
          was([](const Explained& e) { return e.compulsory.bytes; }), one.compulsory.bytes);
  add_row(table, "bytes, declared", before,
          was([](const Explained& e) { return e.declared.bytes; }), one.declared.bytes);
  if (!one.counted()) return table.text();

  add_row(table, "bytes, counted in whole sectors", before,
          was([](const Explained& e) { return counted_bytes(e.total.totals); }),
          counted_bytes(one.total.totals));
  for (const Metric& metric : metrics()) {
    add_row(table, metric.label, before,
            was([&](const Explained& e) { return metric.of(e.total); }), metric.of(one.total),
            metric.ratio);
  }
  return table.text();
}

std::string roofline_text(const Explained& one, const Chip& chip) {
  const bench::Ceiling& roof = chip.ceiling;
  if (roof.bytes_per_second <= 0) return "";
  std::string head = fmt::format("On {} ({}): {} from {}", chip.name, chip.remark,
                                 rate_text(roof.bytes_per_second, "B/s"), roof.memory);
  const bool computes = roof.operations_per_second > 0 && one.declared.operations > 0;
  if (computes) {
    head += fmt::format(", {} of {}. The two meet at {} operations a byte.",
                        rate_text(roof.operations_per_second, "FLOP/s"), roof.arithmetic,
                        format_number(roof.operations_per_second / roof.bytes_per_second));
  }
  std::string text;
  for (const std::string& line : wrap(head, page_width)) text += line + '\n';
  Table table(
      {{"by the bytes"}, {"operations a byte", true}, {"at best", true}, {"", true}, {"bound by"}});
  for (const Position& p : positions(one)) {
    const double seconds = bench::seconds_at_best(p.cost, roof);
    if (seconds <= 0) continue;
    table.add({p.label, computes ? format_number(p.intensity()) : "", format_seconds(seconds),
               computes ? rate_text(p.cost.operations / seconds, "FLOP/s") : "",
               bench::bound_by_memory(p.cost, roof) ? roof.memory : "arithmetic"});
  }
  return text + '\n' + table.text();
}

std::string occupancy_text(const Explained& one, const Chip& chip) {
  if (chip.multiprocessor == nullptr || !one.counted()) return "";
  std::string text;
  for (const Kernel& kernel : one.kernels) {
    const bench::BlockNeeds block{
        .threads = static_cast<int>(kernel.threads / std::max<std::uint64_t>(kernel.blocks, 1)),
        .shared_bytes = static_cast<int>(kernel.shared_bytes)};
    std::string line = fmt::format("{}: ", short_name(kernel.name));
    try {
      const bench::Occupancy fits = bench::occupancy(*chip.multiprocessor, block);
      line += fmt::format("{} block{} of {} threads a multiprocessor, occupancy {:.3g} % by {}",
                          fits.blocks, fits.blocks == 1 ? "" : "s", block.threads,
                          100 * fits.occupancy, fmt::join(fits.limited_by(), " and "));
    } catch (const Error& error) {
      line += error.what();
    }
    for (const std::string& part : wrap(line, page_width)) text += part + "\n";
  }
  return text.empty() ? "" : text + "(registers left aside: `rung occupancy` takes them)\n";
}

}  // namespace

std::string explain_text(const AnyOperator& op, const Problem& problem, const Explained& one,
                         const Explained* before, const Chip& chip) {
  const RungInfo& rung = *one.rung;
  std::string text = fmt::format("{}/{}, step {} on {}\n{}\n\n", op.name(), rung.name, rung.step,
                                 to_string(rung.backend), rung.file);
  const std::string header = header_text(one.header);
  text += header.empty() ? "its source is not here: no more is known of it\n" : header;
  text += fmt::format("\n{}", problem.to_string());
  text += one.counted() ? " on the simulated GPU\n\n"
                        : fmt::format("; not counted: {}\n\n", one.why_not_run);
  if (before != nullptr && before->counted() != one.counted()) {
    text += fmt::format("not compared with {}: {}\n\n", before->rung->name,
                        one.counted() ? before->why_not_run : "nothing was counted");
    before = nullptr;
  }
  text += numbers_text(one, before);
  const std::string occupancy = occupancy_text(one, chip);
  text += "\n" + roofline_text(one, chip);
  if (!occupancy.empty()) text += "\n" + occupancy;
  return text;
}

namespace {

std::vector<std::string> counted_cells(const Kernel& kernel) {
  const simt::record::Counters& c = kernel.totals;
  const auto per = [](std::uint64_t of, std::uint64_t by) {
    return by == 0 ? "-" : format_number(static_cast<double>(of) / static_cast<double>(by));
  };
  return {format_bytes(counted_bytes(c)),
          per(c.global_load_sectors + c.global_store_sectors,
              c.global_load_requests + c.global_store_requests),
          per(c.shared_load_wavefronts + c.shared_store_wavefronts,
              c.shared_load_requests + c.shared_store_requests),
          format_number(kernel.active_lanes()),
          per(100 * kernel.divergent_warps, kernel.warps) + " %",
          std::to_string(c.barriers)};
}

}  // namespace

std::string ladder_text(const AnyOperator& op, const Problem& problem,
                        const std::vector<Explained>& rungs, const Chip& chip) {
  std::string text = fmt::format("{} {}: at least {}\n\n", op.name(), problem.to_string(),
                                 rungs.empty() ? "" : format_bytes(rungs.front().compulsory.bytes));
  Table table({{"rung"},
               {"declared", true},
               {"counted", true},
               {"sectors", true},
               {"shared", true},
               {"lanes", true},
               {"diverge", true},
               {"barriers", true},
               {"at best", true}});
  std::string refusals;
  for (const Explained& one : rungs) {
    const std::vector<Position> points = positions(one);
    if (!one.counted()) {
      const std::string why = fmt::format("{}: {}", one.rung->name, one.why_not_run);
      for (const std::string& line : wrap(why, page_width)) refusals += line + '\n';
    }
    if (points.empty() || (!one.counted() && one.rung->backend == Backend::simt)) continue;
    std::vector<std::string> cells = {std::string(one.rung->name),
                                      format_bytes(one.declared.bytes)};
    const std::vector<std::string> counts =
        one.counted() ? counted_cells(one.total) : std::vector<std::string>(6);
    cells.insert(cells.end(), counts.begin(), counts.end());
    cells.push_back(format_seconds(bench::seconds_at_best(points.back().cost, chip.ceiling)));
    table.add(std::move(cells));
  }
  text += table.text();
  if (!refusals.empty()) text += "\nnot counted\n" + refusals;
  text += fmt::format(
      "\ncounted: bytes of whole sectors between multiprocessors and L2. sectors: a request, over\n"
      "all loads and stores (4 is perfect for 4 bytes a lane). shared: wavefronts a request (1 is\n"
      "perfect; 2 and 4 for 8 and 16 bytes a lane). lanes: at work in a request, of 32. at best:\n"
      "on {}, if every byte came from memory. `rung explain {}/RUNG` tells all of one.\n",
      chip.name, op.name());
  return text;
}

}  // namespace rung::workbench
