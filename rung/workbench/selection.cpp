// SPDX-License-Identifier: Apache-2.0
// Parses operators, rungs, backends, problems and variants on a command line.
#include "rung/workbench/selection.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "rung/core/error.hpp"
#include "rung/core/suggestion.hpp"
#include "rung/workbench/table.hpp"

namespace rung::workbench {
namespace {

/// Returns the names of all rungs, without duplicates across backends, and of the public call.
std::vector<std::string_view> rung_names(const AnyOperator& op) {
  std::vector<std::string_view> names;
  for (const RungInfo* info : op.rungs()) names.push_back(info->name);
  names.push_back(public_call);
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

/// Throws for a pattern of `rung survey`.
void expect_no_range(const std::string& word) {
  if (word.find("..") == word.npos && word.find('(') == word.npos) return;
  throw Error(ErrorCode::invalid_argument,
              fmt::format("problem '{0}': a range, which only `rung survey OPERATOR '{0}'` takes: "
                          "it draws problems from it at random; accepted: one problem per word, as "
                          "in 'f32 64x64x64' 'f32 128x128x128'",
                          word));
}

}  // namespace

std::vector<LeftOutOperator> left_out_operators() {
  std::vector<LeftOutOperator> left_out{
#include "all_operators.inc"
  };
  std::erase_if(left_out, [](const LeftOutOperator& one) {
    const auto all = operators();
    return std::any_of(all.begin(), all.end(),
                       [&](const AnyOperator* op) { return op->name() == one.name; });
  });
  return left_out;
}

std::string why_no_operator(const std::string& name) {
  std::vector<std::string> known;
  for (const AnyOperator* op : operators()) {
    if (op->name() == name) return "";
    known.emplace_back(op->name());
  }
  std::vector<std::string> left_out;
  for (const LeftOutOperator& one : left_out_operators()) left_out.emplace_back(one.name);
  if (std::find(left_out.begin(), left_out.end(), name) != left_out.end()) {
    return fmt::format(
        "this build has no {0}, only {1}; configure it with -DRUNG_OPERATORS={0} (or "
        "-DRUNG_OPERATORS= for all) and build again",
        name, join(known));
  }
  std::vector<std::string> all = known;
  all.insert(all.end(), left_out.begin(), left_out.end());
  return fmt::format("no operator '{}'{}; accepted: {}{}", name, did_you_mean(name, all),
                     join(known), left_out.empty() ? "" : "; not in this build: " + join(left_out));
}

const AnyOperator& known_operator(const std::string& name) {
  const std::string why = why_no_operator(name);
  if (why.empty()) return find_operator(name);
  const bool is_left_out = why.starts_with("this");
  throw Error(is_left_out ? ErrorCode::not_available : ErrorCode::invalid_argument, why);
}

Target select_target(const std::string& text) {
  Target target;
  const std::size_t slash = text.find('/');
  const std::string op = text.substr(0, slash);
  if (slash != std::string::npos) target.rung = text.substr(slash + 1);
  if (op.empty()) {
    target.operators = operators();
  } else {
    target.operators.push_back(&known_operator(op));
    if (!target.rung.empty()) expect_rung(*target.operators.front(), target.rung, {});
  }
  return target;
}

std::string step_text(const RungInfo& rung) {
  if (rung.peer) return "";
  return rung.kind == RungKind::step ? std::to_string(rung.step) : to_string(rung.kind);
}

const char* kind_name(const RungInfo& rung) { return rung.peer ? "peer" : to_string(rung.kind); }

void expect_rung(const AnyOperator& op, std::string_view rung, std::optional<Backend> backend) {
  if (rung == public_call) return;
  std::vector<std::string_view> known{public_call};
  std::string list;
  for (const Backend here : all_backends) {
    if (backend && here != *backend) continue;
    std::vector<std::string_view> names;
    for (const RungInfo* info : op.rungs()) {
      if (info->backend != here) continue;
      if (info->name == rung) return;
      names.push_back(info->name);
    }
    known.insert(known.end(), names.begin(), names.end());
    if (names.empty()) continue;
    list += '\n' + wrapped(fmt::format("{}", fmt::join(names, ", ")), text_width(),
                           fmt::format("  {:<5} ", to_string(here)));
    list.pop_back();
  }
  std::string absent;
  for (const Backend one : all_backends) {
    const std::vector<const RungInfo*> all = op.rungs();
    const bool has = std::any_of(all.begin(), all.end(),
                                 [&](const RungInfo* info) { return info->backend == one; });
    if (!has && !backend) absent += (absent.empty() ? "" : " and ") + std::string(to_string(one));
  }
  if (!absent.empty()) absent = fmt::format("\n(this build has no rungs of {})", absent);
  throw Error(
      ErrorCode::invalid_argument,
      fmt::format("{}{} has no rung '{}'{}; it has these (and '{}', the library's choice):{}{}",
                  op.name(), backend ? fmt::format(" on {}", to_string(*backend)) : "", rung,
                  did_you_mean(rung, known), public_call, list, absent));
}

std::vector<Backend> select_backends(const std::string& requested,
                                     std::vector<std::string>& missing) {
  if (!requested.empty()) {
    const Backend backend = parse_backend(requested);
    if (const Availability here = available(backend); !here) {
      throw Error(ErrorCode::not_available, fmt::format("backend {}: {}", requested, here.why));
    }
    return {backend};
  }
  std::vector<Backend> present;
  for (const Backend backend : all_backends) {
    if (const Availability here = available(backend); here) {
      present.push_back(backend);
    } else {
      missing.push_back(fmt::format("{}: {}", to_string(backend), here.why));
    }
  }
  return present;
}

Context context_on(Backend backend, int threads, int device) {
  if (device == 0) return Context::on(backend, threads);
  if (in_host_memory(backend)) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("--device: {} given with {}, which has one device; accepted: 0, or "
                            "--backend cuda or opencl",
                            device, to_string(backend)));
  }
  return Context::on_device({backend, device});
}

std::string device_in_parentheses(const Context& context) {
  if (in_host_memory(context.backend())) return "";
  return fmt::format(" ({})", context.info().name);
}

std::vector<Problem> parse_problems(const std::vector<std::string>& words) {
  std::vector<Problem> problems;
  std::string type;  // an element type without extents, which may be the next word
  for (const std::string& word : words) {
    expect_no_range(word);
    if (type.empty() && word.find(' ') == std::string::npos &&
        word.find('x') == std::string::npos) {
      type = word;
      continue;
    }
    if (!type.empty()) type += ' ';
    problems.push_back(Problem::parse(type += word));
    type.clear();
  }
  // An element type alone is no problem; the parser throws.
  if (!type.empty()) problems.push_back(Problem::parse(type));
  return problems;
}

void expect_work(const AnyOperator& op, const Problem& problem, const Context& context,
                 std::string_view what) {
  if (op.examine(problem, context) > 0) return;
  throw Error(
      ErrorCode::invalid_argument,
      fmt::format("problem: '{}' of {} has no element to write, so that there is nothing to "
                  "{}; accepted: extents above 0",
                  problem.to_string(), op.name(), what));
}

Variant parse_variant(std::string_view text) {
  std::vector<std::string> known;
  for (const Variant& variant : all_variants()) {
    if (to_string(variant) == text) return variant;
    known.push_back(to_string(variant));
  }
  throw Error(ErrorCode::invalid_argument, fmt::format("variant: '{}' given{}; accepted: {}", text,
                                                       did_you_mean(text, known), join(known)));
}

Availability rung_availability(const RungInfo& rung) {
  if (Availability here = available(rung.backend); !here) return here;
  if (rung.present != nullptr) {
    if (const Support here = rung.present(); !here) return {false, here.why};
  }
  return {};
}

std::vector<std::string> complete_operators(const Completing&) {
  std::vector<std::string> names;
  for (const AnyOperator* op : operators()) names.emplace_back(op->name());
  return names;
}

std::vector<std::string> complete_targets(const Completing& completing) {
  const std::size_t slash = completing.word.find('/');
  if (slash == std::string_view::npos) return complete_operators(completing);
  std::vector<std::string> targets;
  for (const AnyOperator* op : operators()) {
    if (op->name() != completing.word.substr(0, slash)) continue;
    for (const std::string_view rung : rung_names(*op)) {
      targets.push_back(fmt::format("{}/{}", op->name(), rung));
    }
  }
  return targets;
}

std::vector<std::string> complete_rungs(const Completing& completing) {
  const std::string_view head = completing.word.substr(0, completing.word.rfind(',') + 1);
  std::vector<std::string> lists;
  for (const AnyOperator* op : operators()) {
    const auto& before = completing.before;
    if (std::find(before.begin(), before.end(), op->name()) == before.end()) continue;
    for (const std::string_view rung : rung_names(*op))
      lists.push_back(fmt::format("{}{}", head, rung));
  }
  return lists;
}

std::vector<std::string> complete_backends(const Completing&) {
  std::vector<std::string> names;
  for (const Backend backend : all_backends) names.emplace_back(to_string(backend));
  return names;
}

std::vector<std::string> complete_variants(const Completing&) {
  std::vector<std::string> names;
  for (const Variant& variant : all_variants()) names.push_back(to_string(variant));
  return names;
}

std::string join(const std::vector<std::string>& words) {
  return fmt::format("{}", fmt::join(words, ", "));
}

std::vector<std::string> split_commas(const std::string& text) {
  std::vector<std::string> parts;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    if (end > begin) parts.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

}  // namespace rung::workbench
