// SPDX-License-Identifier: Apache-2.0
// Merges findings of several thread orders and formats them.
#include "rung/workbench/emulate_orders.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace rung::workbench {
namespace {

using nlohmann::ordered_json;

/// Formats a list: "a", "a and b", "a, b and c".
std::string enumerated(const std::vector<std::string>& words) {
  std::string text;
  for (std::size_t i = 0; i < words.size(); ++i) {
    text += i == 0 ? "" : i + 1 == words.size() ? " and " : ", ";
    text += words[i];
  }
  return text;
}

/// Formats orders: "order reverse", "orders forward and reverse".
std::string order_list(const std::vector<std::string>& orders) {
  return (orders.size() == 1 ? "order " : "orders ") + enumerated(orders);
}

/// Returns a key that is equal for the same finding in different runs. Ignores which access of a
/// race comes first: that depends on the order.
std::string identity(const ordered_json& finding) {
  const auto place = [&](const char* file, const char* line) {
    return fmt::format("{}:{}", finding.value(file, ""), finding.value(line, 0));
  };
  std::string here = place("file", "line"), there = place("other_file", "other_line");
  const std::string kind = finding.value("kind", "");
  if (kind == "race" && there < here) std::swap(here, there);
  return fmt::format("{} {} {} {}", kind, finding.value("space", ""), here, there);
}

}  // namespace

void OrderedFindings::add(const std::string& order, int exit_code, const ordered_json& findings,
                          const std::vector<std::string>& texts) {
  const std::size_t run = runs_.size();
  runs_.push_back({order, exit_code});
  for (std::size_t i = 0; i < findings.size(); ++i) {
    const ordered_json& finding = findings[i];
    const std::string key = identity(finding);
    // Equal findings within one run stay distinct, and are matched one to one with those of the
    // next run.
    const auto same = std::find_if(merged_.begin(), merged_.end(), [&](const Merged& one) {
      return one.runs.back() != run && identity(one.finding) == key;
    });
    if (same != merged_.end()) {
      same->runs.push_back(run);
    } else {
      merged_.push_back({finding, i < texts.size() ? texts[i] : "", {run}});
    }
  }
  for (std::size_t i = findings.size(); i < texts.size(); ++i) {
    if (std::find(notes_.begin(), notes_.end(), texts[i]) == notes_.end()) {
      notes_.push_back(texts[i]);
    }
  }
}

std::string OrderedFindings::orders_of(const Merged& one) const {
  std::vector<std::string> with, without;
  for (std::size_t run = 0; run < runs_.size(); ++run) {
    const bool found = std::find(one.runs.begin(), one.runs.end(), run) != one.runs.end();
    (found ? with : without).push_back(runs_[run].order);
  }
  const std::string text = "under " + order_list(with);
  return without.empty() ? text : text + ", not under " + enumerated(without);
}

std::string OrderedFindings::text() const {
  std::string text;
  for (const Merged& one : merged_) {
    if (!one.text.empty()) text += fmt::format("rung: {}\n  {}\n", one.text, orders_of(one));
  }
  for (const std::string& note : notes_) text += fmt::format("rung: {}\n", note);
  std::vector<int> codes;
  for (const Run& run : runs_) {
    if (std::find(codes.begin(), codes.end(), run.exit_code) == codes.end()) {
      codes.push_back(run.exit_code);
    }
  }
  if (codes.size() < 2) return text;
  for (const int code : codes) {
    std::vector<std::string> orders;
    for (const Run& run : runs_) {
      if (run.exit_code == code) orders.push_back(run.order);
    }
    text += fmt::format("rung: the program ended with exit code {} under {}\n", code,
                        order_list(orders));
  }
  return text;
}

ordered_json OrderedFindings::json() const {
  ordered_json list = ordered_json::array();
  for (const Merged& one : merged_) {
    list.push_back(one.finding);
    ordered_json& orders = list.back()["orders"] = ordered_json::array();
    for (const std::size_t run : one.runs) orders.push_back(runs_[run].order);
  }
  return list;
}

}  // namespace rung::workbench
