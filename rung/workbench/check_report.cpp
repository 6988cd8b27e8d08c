// SPDX-License-Identifier: Apache-2.0
// Counts the cases of `rung check` and reports them as text and as JSON.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "rung/workbench/check.hpp"
#include "rung/workbench/selection.hpp"
#include "rung/workbench/table.hpp"

namespace rung::workbench {
namespace {

constexpr std::size_t shown_failures = 20;  // in the text; JSON has all
constexpr std::size_t shown_mistrusted = 10;

/// Returns the most frequent reason, how often it occurred, and the number of other reasons.
std::string main_reason(const RungTally& tally) {
  const auto most =
      std::max_element(tally.reasons.begin(), tally.reasons.end(),
                       [](const auto& a, const auto& b) { return a.second < b.second; });
  if (most == tally.reasons.end()) return "";
  const std::string others =
      tally.reasons.size() > 1 ? "; " + count_of(tally.reasons.size() - 1, "more reason") : "";
  return fmt::format("{} skipped: {}{}", most->second, one_line(most->first), others);
}

}  // namespace

std::string Case::command() const {
  std::string text = fmt::format("rung check {}/{} --backend {}", op, rung, to_string(backend));
  if (seed == 0) return text;  // all problems
  text += fmt::format(" --problem '{}' --variant '{}' --seed {}", problem, variant, seed);
  if (backend == Backend::cpu) text += fmt::format(" --threads {}", threads);
  return device == 0 ? text : text + fmt::format(" --device {}", device);
}

void CheckReport::note_device(const Context& context) {
  if (!in_host_memory(context.backend())) devices_[context.backend()] = context.info().name;
}

RungTally& CheckReport::tally(const Case& where) {
  const auto [found, is_new] = rungs_.try_emplace({where.op, where.backend, where.rung});
  if (is_new) order_.push_back(found->first);
  return found->second;
}

void CheckReport::add(const Case& where, const Verdict& verdict, double seconds) {
  RungTally& tally = this->tally(where);
  tally.seconds += seconds;
  switch (verdict.kind) {
    case Verdict::Kind::passed:
      ++tally.passed;
      if (verdict.mistrusted) {
        ++tally.mistrusted;
        add_mistrusted(where);
      }
      break;
    case Verdict::Kind::skipped:
      ++tally.skipped;
      ++tally.reasons[verdict.message];
      break;
    case Verdict::Kind::failed:
      ++tally.failed;
      failures_.push_back({where, verdict.message});
      break;
  }
}

void CheckReport::add_mistrusted(const Case& where) {
  auto found = std::find_if(mistrusted_.begin(), mistrusted_.end(), [&](const Mistrusted& one) {
    return one.op == where.op && one.problem == where.problem;
  });
  if (found == mistrusted_.end()) {
    found = mistrusted_.insert(found, {where.op, where.problem, {}});
  }
  std::vector<std::string>& variants = found->variants;
  if (std::find(variants.begin(), variants.end(), where.variant) == variants.end()) {
    variants.push_back(where.variant);
  }
}

void CheckReport::print_mistrusted() const {
  if (mistrusted_.empty()) return;
  fmt::print("\n{}", wrapped(fmt::format("mistrusted: {} of the cases that passed would pass with "
                                         "zeros in place of all results, so that they tell little",
                                         total().mistrusted),
                             text_width()));
  for (std::size_t i = 0; i < std::min(mistrusted_.size(), shown_mistrusted); ++i) {
    const Mistrusted& one = mistrusted_[i];
    fmt::print("{}", wrapped(fmt::format("{} {}: {}", one.op, one.problem, join(one.variants)),
                             text_width(), "  "));
  }
  if (mistrusted_.size() > shown_mistrusted) {
    fmt::print("  ... and {} more problems (--json lists all)\n",
               mistrusted_.size() - shown_mistrusted);
  }
}

RungTally CheckReport::total() const {
  RungTally sum;
  for (const auto& [key, tally] : rungs_) {
    sum.passed += tally.passed;
    sum.failed += tally.failed;
    sum.skipped += tally.skipped;
    sum.mistrusted += tally.mistrusted;
    sum.seconds += tally.seconds;
    for (const auto& [reason, count] : tally.reasons) sum.reasons[reason] += count;
  }
  return sum;
}

void CheckReport::print_text() const {
  for (const auto& [backend, device] : devices_)
    say(fmt::format("{}: {}", to_string(backend), device));
  Table table({{"op"},
               {"backend"},
               {"rung"},
               {"passed", true},
               {"failed", true},
               {"skipped", true},
               {"seconds", true, Table::Fit::drop},
               {"remark"}});
  for (const Key& key : order_) {
    const RungTally& tally = rungs_.at(key);
    table.add({key.op, to_string(key.backend), key.rung, std::to_string(tally.passed),
               tally.failed == 0 ? "" : std::to_string(tally.failed),
               tally.skipped == 0 ? "" : std::to_string(tally.skipped),
               format_number(tally.seconds), main_reason(tally)},
              tally.failed == 0 ? Tone::plain : Tone::bad);
  }
  fmt::print("{}", table.text());
  for (std::size_t i = 0; i < std::min(failures_.size(), shown_failures); ++i) {
    const Failure& failure = failures_[i];
    const Case& where = failure.where;
    fmt::print("\n{} {}/{} on {}: {}, {}\n  {}\n  again: {}\n", toned(Tone::bad, "FAILED"),
               where.op, where.rung, to_string(where.backend), where.problem, where.variant,
               failure.message, where.command());
  }
  if (failures_.size() > shown_failures) {
    fmt::print("\n... and {} (--json lists all)\n",
               count_of(failures_.size() - shown_failures, "more failure"));
  }
  print_mistrusted();
  const RungTally sum = total();
  fmt::print("\n");
  say(fmt::format("{}: {} passed, {} failed, {} skipped, {} s",
                  count_of(sum.passed + sum.failed + sum.skipped, "case"), sum.passed, sum.failed,
                  sum.skipped, format_number(sum.seconds)));
}

void CheckReport::print_json(const std::vector<std::string>& missing, bool complete) const {
  using nlohmann::ordered_json;
  const RungTally sum = total();
  ordered_json failures = ordered_json::array();
  for (const Failure& failure : failures_) {
    const Case& where = failure.where;
    failures.push_back({{"op", where.op},
                        {"rung", where.rung},
                        {"backend", to_string(where.backend)},
                        {"problem", where.problem},
                        {"variant", where.variant},
                        {"message", failure.message},
                        {"seed", where.seed},
                        {"threads", where.threads},
                        {"device", where.device},
                        {"command", where.command()}});
  }
  ordered_json rungs = ordered_json::array();
  for (const Key& key : order_) {
    const RungTally& tally = rungs_.at(key);
    rungs.push_back({{"op", key.op},
                     {"rung", key.rung},
                     {"backend", to_string(key.backend)},
                     {"passed", tally.passed},
                     {"failed", tally.failed},
                     {"skipped", tally.skipped},
                     {"mistrusted", tally.mistrusted},
                     {"seconds", tally.seconds},
                     {"reasons", tally.reasons}});
  }
  ordered_json mistrusted = ordered_json::array();
  for (const Mistrusted& one : mistrusted_) {
    mistrusted.push_back({{"op", one.op}, {"problem", one.problem}, {"variants", one.variants}});
  }
  ordered_json devices = ordered_json::object();
  for (const auto& [backend, device] : devices_) devices[to_string(backend)] = device;
  const ordered_json all = {{"complete", complete},
                            {"devices", devices},
                            {"cases", sum.passed + sum.failed + sum.skipped},
                            {"passed", sum.passed},
                            {"failed", sum.failed},
                            {"skipped", sum.skipped},
                            {"mistrusted", sum.mistrusted},
                            {"mistrusted_problems", mistrusted},
                            {"failures", failures},
                            {"rungs", rungs},
                            {"backends_missing", missing}};
  fmt::print("{}\n", all.dump(2));
}

}  // namespace rung::workbench
