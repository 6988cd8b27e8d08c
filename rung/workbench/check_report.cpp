// SPDX-License-Identifier: Apache-2.0
// Counting the cases of `rung check` and telling about them, as text and as JSON.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "rung/workbench/check.hpp"
#include "rung/workbench/selection.hpp"
#include "rung/workbench/table.hpp"

namespace rung::workbench {
namespace {

constexpr std::size_t shown_failures = 20;  // in the text; JSON has every one

/// The commonest reason, and how many others there are.
std::string main_reason(const RungTally& tally) {
  const auto most =
      std::max_element(tally.reasons.begin(), tally.reasons.end(),
                       [](const auto& a, const auto& b) { return a.second < b.second; });
  if (most == tally.reasons.end()) return "";
  const std::string others =
      tally.reasons.size() > 1 ? fmt::format("; {} more reasons", tally.reasons.size() - 1) : "";
  return fmt::format("{} skipped: {}{}", most->second, most->first, others);
}

}  // namespace

std::string Case::command() const {
  std::string text = fmt::format("rung check {}/{} --backend {}", op, rung, to_string(backend));
  if (seed == 0) return text;  // of all problems
  text += fmt::format(" --problem '{}' --variant '{}' --seed {}", problem, variant, seed);
  if (backend == Backend::cpu) text += fmt::format(" --threads {}", threads);
  return text;
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

RungTally CheckReport::total() const {
  RungTally sum;
  for (const auto& [key, tally] : rungs_) {
    sum.passed += tally.passed;
    sum.failed += tally.failed;
    sum.skipped += tally.skipped;
    sum.seconds += tally.seconds;
    for (const auto& [reason, count] : tally.reasons) sum.reasons[reason] += count;
  }
  return sum;
}

void CheckReport::print_text() const {
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
    fmt::print("\n... and {} more failures (--json lists all)\n",
               failures_.size() - shown_failures);
  }
  const RungTally sum = total();
  fmt::print("\n{} cases: {} passed, {} failed, {} skipped, {} s\n",
             sum.passed + sum.failed + sum.skipped, sum.passed, sum.failed, sum.skipped,
             format_number(sum.seconds));
}

void CheckReport::print_json(const std::vector<std::string>& missing) const {
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
                     {"seconds", tally.seconds},
                     {"reasons", tally.reasons}});
  }
  const ordered_json all = {{"cases", sum.passed + sum.failed + sum.skipped},
                            {"passed", sum.passed},
                            {"failed", sum.failed},
                            {"skipped", sum.skipped},
                            {"failures", failures},
                            {"rungs", rungs},
                            {"backends_missing", missing}};
  fmt::print("{}\n", all.dump(2));
}

}  // namespace rung::workbench
