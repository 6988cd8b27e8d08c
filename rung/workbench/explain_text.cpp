// SPDX-License-Identifier: Apache-2.0
// Text output of `rung explain`.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "rung/core/error.hpp"
#include "rung/workbench/explain.hpp"
#include "rung/workbench/kernel_name.hpp"
#include "rung/workbench/registers.hpp"
#include "rung/workbench/table.hpp"

namespace rung::workbench {
namespace {

using simt::record::Kernel;

constexpr std::size_t field_width = 9;  // "Changes  "

std::string header_text(const RungHeader& header) {
  std::string text;
  for (const RungHeader::Field& field : header.fields) {
    bool first = true;
    for (const std::string& line : wrap(field.text, text_width() - field_width)) {
      text += fmt::format("{:<{}}{}\n", first ? field.name : "", field_width, line);
      first = false;
    }
  }
  return text;
}

/// Value of a missing figure.
constexpr double unknown = std::numeric_limits<double>::quiet_NaN();

std::string show(double value, bool ratio = false) {
  if (std::isnan(value)) return "";
  if (ratio) return value == 0 ? "-" : format_number(value);
  return whole(value);
}

/// Describes the change of a number: "same", "/ 32", "x 2", "new", "gone".
std::string change(double before, double now) {
  if (std::isnan(before) || std::isnan(now)) return "";
  if (before == now) return "same";
  if (before == 0) return "new";
  if (now == 0) return "gone";
  return now < before ? "/ " + format_number(before / now) : "x " + format_number(now / before);
}

std::string rate_text(double per_second, const char* unit) {
  return per_second >= 1e12 ? fmt::format("{} T{}", format_number(per_second * 1e-12), unit)
                            : fmt::format("{} G{}", format_number(per_second * 1e-9), unit);
}

/// Comparison of two rungs: a column per rung, and a column of changes if both ran on the same
/// problem.
class Comparison {
 public:
  Comparison(const Explained& one, const Explained* before)
      : one_(one), before_(before), alike_(before != nullptr && before->problem == one.problem) {
    std::vector<Table::Column> columns = {{""}};
    if (before != nullptr) {
      columns.push_back({std::string(before->rung->name), true, Table::Fit::drop});
    }
    columns.push_back({std::string(one.rung->name), true});
    if (alike_) columns.push_back({"change", true});
    table_ = Table(std::move(columns));
    if (before != nullptr && !alike_) {
      table_.add({"problem", before->problem.to_string(), one.problem.to_string()});
    }
  }

  /// Adds a row unless both values are zero.
  template <class Of>
  void add(const std::string& label, Of of, bool ratio = false) {
    const double now = of(one_);
    const double then = before_ != nullptr ? of(*before_) : 0;
    if (now == 0 && then == 0) return;
    std::vector<std::string> cells = {label};
    if (before_ != nullptr) cells.push_back(show(then, ratio));
    cells.push_back(show(now, ratio));
    if (alike_) cells.push_back(change(then, now));
    table_.add(std::move(cells));
  }
  [[nodiscard]] std::string text() const { return table_.text(); }

 private:
  const Explained& one_;
  const Explained* before_;
  bool alike_;
  Table table_{{}};
};

/// Returns the maximum of a resource over the kernels of a rung, from ptxas; 0: unknown.
int most(const Explained& one, int (*of)(const KernelUsage& usage)) {
  int most = 0;
  for (const Kernel& kernel : one.kernels) {
    const KernelUsage* const usage = find_usage(kernel.name, one.chip.capability());
    if (usage != nullptr) most = std::max(most, of(*usage));
  }
  return most;
}

using Spread = const simt::record::Distribution& (*)(const Kernel& kernel);

/// Returns the distinct numbers of sectors or wavefronts per request if there are 2 to 4, else
/// none: the mean of so few would hide the cost of each access of the source.
std::vector<std::size_t> kinds_of(const Explained& one, const Explained* before, Spread spread) {
  constexpr std::size_t most_kinds = 4;
  std::vector<std::size_t> kinds;
  for (std::size_t i = 0; i <= simt::record::Distribution::most; ++i) {
    const std::uint64_t then = before != nullptr ? spread(before->total).requests[i] : 0;
    if (spread(one.total).requests[i] + then != 0) kinds.push_back(i);
  }
  if (kinds.size() < 2 || kinds.size() > most_kinds) kinds.clear();
  return kinds;
}

std::string numbers_text(const Explained& one, const Explained* before) {
  Comparison numbers(one, before);
  numbers.add("operations", [](const Explained& e) { return e.declared.operations; });
  numbers.add("bytes that must move", [](const Explained& e) { return e.compulsory.bytes; });
  if (one.declared.bytes > 0 || (before != nullptr && before->declared.bytes > 0)) {
    numbers.add("bytes, declared", [](const Explained& e) {
      return e.declared.bytes > 0 ? e.declared.bytes : unknown;
    });
  }
  if (!one.counted()) return numbers.text();
  numbers.add("bytes, counted", [](const Explained& e) { return counted_bytes(e.total.totals); });
  for (const Metric& metric : metrics()) {
    numbers.add(
        metric.label, [&](const Explained& e) { return metric.of(e.total); }, metric.ratio);
    if (metric.spread == nullptr) continue;
    for (const std::size_t each : kinds_of(one, before, metric.spread)) {
      numbers.add(fmt::format("  requests of {}", each), [&](const Explained& e) {
        return static_cast<double>(metric.spread(e.total).requests[each]);
      });
    }
  }
  const auto add = [&](const char* label, int (*of)(const KernelUsage& usage)) {
    numbers.add(label, [&](const Explained& e) { return most(e, of); });
  };
  add("registers per thread", [](const KernelUsage& u) { return u.registers; });
  add("  bytes spilled", [](const KernelUsage& u) { return u.spill_store_bytes; });
  add("  bytes of stack", [](const KernelUsage& u) { return u.stack_bytes; });
  return numbers.text();
}

/// Formats the roofs of the counted work, slowest first.
std::string bound_text(const Explained& one) {
  const std::optional<bench::Bound> bound = bound_of(one);
  if (!bound) return "";
  std::string head = "\nThe bound of what was counted";
  if (one.at) {
    head += fmt::format(", extrapolated to {}, in {} waves of blocks", one.at->to_string(),
                        format_number(bound->waves));
  } else {
    head += ", were all SMs kept busy";
  }
  if (one.chip.pace.latency.memory <= 0) {
    head += " (stores to L2, launches of blocks and latencies are not known of this GPU)";
  }
  std::string text;
  for (const std::string& line : wrap(head + ":", text_width())) text += line + '\n';
  std::vector<bench::Roof> roofs;
  for (std::size_t i = 0; i < bench::roof_count; ++i) {
    const auto roof = static_cast<bench::Roof>(i);
    if (bound->of(roof) > 0) roofs.push_back(roof);
  }
  std::stable_sort(roofs.begin(), roofs.end(),
                   [&](bench::Roof a, bench::Roof b) { return bound->of(a) > bound->of(b); });
  Table table({{"roof"}, {"at least", true}, {""}});
  for (const bench::Roof roof : roofs) {
    table.add({std::string(to_string(roof)), format_seconds(bound->of(roof)),
               roof == bound->by ? "binds" : ""});
  }
  return text + '\n' + table.text();
}

std::string roofline_text(const Explained& one) {
  const Chip& chip = one.chip;
  const bench::Ceiling& roof = chip.ceiling;
  if (roof.bytes_per_second <= 0) {
    return wrapped(
        fmt::format("No roof: the rates of {} are not known. --gpu, or --bandwidth and "
                    "--peak, give some.",
                    one.rung->backend == Backend::opencl ? "the OpenCL device" : chip.name),
        text_width());
  }
  std::string head = fmt::format("On {} ({}): {} from {}", chip.name, chip.remark,
                                 rate_text(roof.bytes_per_second, "B/s"), roof.memory);
  const bool computes = roof.operations_per_second > 0 && one.declared.operations > 0;
  if (computes) {
    head += fmt::format(", {} of {}. Ridge point: {} operations per byte.",
                        rate_text(roof.operations_per_second, "FLOP/s"), roof.arithmetic,
                        format_number(roof.operations_per_second / roof.bytes_per_second));
  }
  if (one.counted() && chip.pace.cycles_per_second > 0) {
    head +=
        fmt::format("{} Its {} SMs have {} GHz.", computes ? "" : ".", chip.pace.multiprocessors,
                    format_number(chip.pace.cycles_per_second * 1e-9));
  }
  std::string text;
  for (const std::string& line : wrap(head, text_width())) text += line + '\n';
  Table table({{"by the bytes"},
               {"operations per byte", true, Table::Fit::drop},
               {"at best", true},
               {"rate", true, Table::Fit::drop},
               {"bound by"}});
  for (const Position& p : positions(one)) {
    const AtBest best = at_best(p, one);
    if (best.seconds <= 0) continue;
    table.add({p.label, computes ? format_number(p.intensity()) : "", format_seconds(best.seconds),
               computes ? rate_text(p.cost.operations / best.seconds, "FLOP/s") : "", best.bound});
  }
  return text + '\n' + table.text() + bound_text(one);
}

std::string occupancy_text(const Explained& one) {
  const Chip& chip = one.chip;
  if (chip.multiprocessor == nullptr || !one.counted()) return "";
  std::string text;
  bool all_known = true;
  for (const Kernel& kernel : one.kernels) {
    const KernelUsage* const usage = find_usage(kernel.name, one.chip.capability());
    all_known = all_known && usage != nullptr;
    const bench::BlockNeeds block{
        .threads = static_cast<int>(kernel.threads / std::max<std::uint64_t>(kernel.blocks, 1)),
        .registers = usage != nullptr ? usage->registers : 0,
        .shared_bytes = static_cast<int>(kernel.shared_bytes)};
    std::string line = fmt::format("{}: ", short_name(kernel.name));
    if (usage != nullptr) line += count_of(usage->registers, "register") + " per thread, ";
    try {
      const bench::Occupancy fits = bench::occupancy(*chip.multiprocessor, block);
      line += fmt::format("{} of {} per SM, occupancy {:.3g} % by {}",
                          count_of(fits.blocks, "block"), count_of(block.threads, "thread"),
                          100 * fits.occupancy, fmt::join(fits.limited_by(), " and "));
    } catch (const Error& error) {
      line += error.what();
    }
    for (const std::string& part : wrap(line, text_width())) text += part + "\n";
  }
  if (text.empty() || all_known) return text;
  return text + wrapped(kernel_usage().empty() ? "(registers are not known without CUDA in the "
                                                 "build, and are no limit here)"
                                               : "(of kernels without registers none are known, "
                                                 "and are no limit here)",
                        text_width());
}

/// Returns "step 40", or the problems that a rung outside the ladder is for.
std::string part_of(const RungInfo& rung) {
  if (rung.kind == RungKind::step) return fmt::format("step {}", rung.step);
  return fmt::format("for {}, beside {}",
                     rung.kind == RungKind::shape ? "a family of shapes" : "types and layouts",
                     rung.after);
}

}  // namespace

std::string explain_text(const AnyOperator& op, const Explained& one, const Explained* before) {
  const RungInfo& rung = *one.rung;
  std::string text = fmt::format("{}/{}, {} on {}\n{}\n\n", op.name(), rung.name, part_of(rung),
                                 to_string(rung.backend), rung.file);
  const std::string header = header_text(one.header);
  text += header.empty() ? "its source is not here: no more is known of it\n" : header;
  text += fmt::format("\n{}", one.problem.to_string());
  text += one.counted() ? " on the simulated GPU\n\n"
                        : fmt::format("; not counted: {}\n\n", one.why_not_run);
  if (before != nullptr && before->counted() != one.counted()) {
    text += fmt::format("not compared with {}: {}\n\n", before->rung->name,
                        one.counted() ? before->why_not_run : "nothing was counted");
    before = nullptr;
  }
  text += numbers_text(one, before);
  const std::string occupancy = occupancy_text(one);
  text += "\n" + roofline_text(one);
  if (!occupancy.empty()) text += "\n" + occupancy;
  return text;
}

}  // namespace rung::workbench
