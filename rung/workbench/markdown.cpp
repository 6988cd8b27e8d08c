// SPDX-License-Identifier: Apache-2.0
// Converts the JSON of `rung bench` to Markdown.
#include "rung/workbench/markdown.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>
#include <sstream>
#include <vector>

#include "rung/bench/json_text.hpp"
#include "rung/core/error.hpp"
#include "rung/harness/any_operator.hpp"
#include "rung/workbench/bench.hpp"
#include "rung/workbench/explain.hpp"
#include "rung/workbench/survey.hpp"
#include "rung/workbench/table.hpp"

namespace rung::workbench {
namespace {

using nlohmann::json;

/// Throws for a word that no filter has.
[[noreturn]] void refuse_filter(const std::string& word, std::string_view accepted) {
  throw Error(ErrorCode::invalid_argument,
              fmt::format("'{}' chooses no table; accepted: {}", word, accepted));
}

int threads_of(const std::string& word) {
  const std::string text = word.substr(word.find('=') + 1);
  int threads = 0;
  const char* const end = text.data() + text.size();
  const auto [stopped, error] = std::from_chars(text.data(), end, threads);
  if (error != std::errc() || stopped != end || threads < 1) {
    refuse_filter(word, "threads= and a whole number from 1 on");
  }
  return threads;
}

/// Returns true for an unknown "key=value" word. In a problem, "axes=1" follows a comma.
bool is_unknown_key(const std::string& word) { return word.find('=') < word.find(','); }

struct Filter {
  std::string backend;
  std::string problem;
  std::string rung;  // if given: one table of this rung over all problems
  int threads = 0;

  explicit Filter(const std::string& text) {
    std::istringstream words(text);
    for (std::string word; words >> word;) {
      if (word.starts_with("backend=")) {
        backend = to_string(parse_backend(word.substr(8)));
      } else if (word.starts_with("rung=")) {
        rung = word.substr(5);
      } else if (word.starts_with("threads=")) {
        threads = threads_of(word);
      } else if (is_unknown_key(word)) {
        refuse_filter(word, "a problem, backend=, threads=, rung=");
      } else {
        problem += (problem.empty() ? "" : " ") + word;
      }
    }
  }
  [[nodiscard]] bool takes(const json& row) const {
    return (backend.empty() || row.at("backend") == backend) &&
           (problem.empty() || row.at("problem") == problem) &&
           (threads == 0 || row.at("threads") == threads);
  }
};

/// Returns the title of the table that a row belongs to: its problem, backend and threads.
std::string table_title(const json& row) {
  const auto backend = row.at("backend").get<std::string>();
  std::string title = fmt::format("`{}` on {}", row.at("problem").get<std::string>(), backend);
  if (const int threads = row.at("threads"); backend == "cpu") {
    title += ", " + count_of(threads, "thread");
  }
  return title;
}

std::string machine_title(const json& machine, const json& row) {
  const auto& gpus = machine.at("gpus");
  const std::string name = row.at("backend") == "cuda" && !gpus.empty()
                               ? gpus.at(0).at("name").get<std::string>()
                               : fmt::format("{}, {}, {}", machine.at("cpu").get<std::string>(),
                                             count_of(machine.at("cores").get<int>(), "core"),
                                             machine.at("isa").get<std::string>());
  return fmt::format("{}, {}", name, machine.at("date").get<std::string>());
}

/// Returns the fraction of the ceiling as text; clamps fractions above 1 in files of earlier
/// versions.
std::string ceiling_of(const json& row) {
  if (row.at("of_ceiling").is_null()) return "";
  const double share = share_shown(row.at("of_ceiling").get<double>());
  return std::isnan(share) ? "" : fmt::format("{:.1f} %", 100 * share);
}

/// Returns the rung before the row's, "" if this program does not know the row's rung. For a GPU's
/// ladder, builds without CUDA use the simulated one.
std::string_view name_before(const json& row) {
  const auto backend = parse_backend(row.at("backend").get<std::string>());
  const auto name = row.at("rung").get<std::string>();
  for (const AnyOperator* op : operators()) {
    if (op->name() != row.at("op").get<std::string>()) continue;
    for (const RungInfo* one : op->rungs()) {
      const bool here =
          one->backend == backend || (backend == Backend::cuda && one->backend == Backend::simt);
      if (!here || one->peer || one->name != name) continue;
      const RungInfo* const before = rung_before(*op, *one);
      return before != nullptr ? before->name : "";
    }
  }
  return "";
}

/// Returns the speedup over the previous rung, if the table has that rung.
std::string gain_of(const json& row, const json& rows) {
  if (row.at("peer") || !row.at("chosen").get<std::string>().empty()) return "";
  const std::string_view before = name_before(row);
  for (const json& other : rows) {
    if (other.at("rung") != before || table_title(other) != table_title(row)) continue;
    if (other.at("seconds").is_null()) return "";
    return fmt::format("{:.2f}",
                       other.at("seconds").get<double>() / row.at("seconds").get<double>());
  }
  return "";
}

std::string line_of(const json& row, const json& rows) {
  const auto text = [&](const char* key) { return row.at(key).get<std::string>(); };
  const auto number = [&](const char* key) { return row.at(key).get<double>(); };
  std::string name = text("rung");
  if (row.at("peer")) name = fmt::format("*{}* (peer)", name);
  if (!text("chosen").empty()) name = fmt::format("**{}** ({})", name, text("chosen"));
  if (row.at("seconds").is_null())
    return fmt::format("| {} | | | | | | {} |\n", name, text("note"));
  const std::string peer =
      row.at("vs_peer").is_null() ? "" : fmt::format("{:.2f}", number("vs_peer"));
  return fmt::format("| {} | {} | {} | {} {} | {} | {} | {} |\n", name,
                     format_seconds(number("seconds")), gain_of(row, rows),
                     format_number(number("rate")), text("unit"), ceiling_of(row), peer,
                     row.at("peer") ? text("note") : "");
}

std::string tables_of(const json& result, const Filter& filter) {
  std::string text;
  std::string title;
  for (const json& row : result.at("rows")) {
    if (!filter.takes(row)) continue;
    if (table_title(row) != title) {
      title = table_title(row);
      text += fmt::format(
          "{}{} ({})\n\n"
          "| rung | time | vs rung before | rate | of ceiling | vs best peer | note |\n"
          "|---|--:|--:|--:|--:|--:|---|\n",
          text.empty() ? "" : "\n", title, machine_title(result.at("machine"), row));
    }
    text += line_of(row, result.at("rows"));
  }
  return text;
}

/// Returns the fastest peer on the problem of a row, with the same threads; "" if there is none.
std::string fastest_peer(const json& rows, const json& row) {
  const json* fastest = nullptr;
  for (const json& other : rows) {
    if (!other.at("peer") || other.at("seconds").is_null()) continue;
    if (table_title(other) != table_title(row)) continue;
    if (fastest == nullptr || other.at("seconds") < fastest->at("seconds")) fastest = &other;
  }
  return fastest == nullptr ? "" : fastest->at("rung").get<std::string>();
}

/// Returns a table of one rung, one line per problem.
std::string table_of_rung(const json& result, const Filter& filter) {
  std::string text;
  const json& rows = result.at("rows");
  for (const json& row : rows) {
    if (!filter.takes(row) || row.at("rung") != filter.rung || row.at("seconds").is_null()) {
      continue;
    }
    const auto backend = row.at("backend").get<std::string>();
    const bool threaded = backend == "cpu";
    if (text.empty()) {
      text = fmt::format(
          "`{}` on {} ({})\n\n"
          "| problem |{} time | rate | of ceiling | vs best peer | rung | best peer |\n"
          "|---|{}--:|--:|--:|--:|---|---|\n",
          filter.rung, backend, machine_title(result.at("machine"), row),
          threaded ? " threads |" : "", threaded ? "--:|" : "");
    }
    const json& vs_peer = row.at("vs_peer");
    const auto chosen = row.at("chosen").get<std::string>();
    text += fmt::format(
        "| `{}` |{} {} | {} {} | {} | {} | {} | {} |\n", row.at("problem").get<std::string>(),
        threaded ? fmt::format(" {} |", row.at("threads").get<int>()) : std::string(),
        format_seconds(row.at("seconds").get<double>()),
        format_number(row.at("rate").get<double>()), row.at("unit").get<std::string>(),
        ceiling_of(row), vs_peer.is_null() ? "" : fmt::format("{:.2f}", vs_peer.get<double>()),
        chosen.empty() ? filter.rung : chosen, fastest_peer(rows, row));
  }
  return text;
}

/// Returns tables of surveys: one line per survey, or with the filter "worst" the worst problems of
/// each.
std::string tables_of_surveys(const json& parsed, const std::string& filter) {
  std::vector<SurveyResults> surveys;
  for (const json& one : parsed) surveys.push_back(survey_from_json(one.dump()));
  std::istringstream words(filter);
  bool is_worst = false;
  for (std::string word; words >> word;) {
    if (word != "worst") refuse_filter(word, "worst, of a survey, or nothing for its summary");
    is_worst = true;
  }
  if (!is_worst) return survey_summary_markdown(surveys);
  std::string text;
  for (const SurveyResults& one : surveys) {
    text += (text.empty() ? "" : "\n") + survey_worst_markdown(one);
  }
  return text;
}

}  // namespace

std::string results_to_markdown(const std::string& text, const std::string& filter) {
  std::string markdown;
  try {
    json parsed = json::parse(text);
    if (!parsed.is_array()) parsed = json::array({parsed});
    const auto is_survey = [](const json& one) { return one.contains("survey"); };
    if (!parsed.empty() && std::all_of(parsed.begin(), parsed.end(), is_survey)) {
      return tables_of_surveys(parsed, filter);
    }
    for (const json& result : parsed) {
      const Filter chosen(filter);
      const std::string tables =
          chosen.rung.empty() ? tables_of(result, chosen) : table_of_rung(result, chosen);
      if (!markdown.empty() && !tables.empty()) markdown += '\n';
      markdown += tables;
    }
  } catch (const json::exception& error) {
    throw Error(ErrorCode::io,
                bench::json_fault(error, text, "rung bench --output` or `rung survey --json"));
  }
  if (markdown.empty()) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("no row of the results matches '{}'", filter));
  }
  return markdown;
}

namespace {

/// Returns the number, from 1, of the line that contains byte `at`.
std::ptrdiff_t line_number(const std::string& document, std::size_t at) {
  return 1 + std::count(document.begin(), document.begin() + static_cast<std::ptrdiff_t>(at), '\n');
}

/// Finds a line that begins with the marker; mentions of markers within a line are ignored.
std::size_t find_marker(const std::string& document, std::string_view marker, std::size_t from) {
  std::size_t at = document.find(marker, from);
  while (at != std::string::npos && at > 0 && document[at - 1] != '\n') {
    at = document.find(marker, at + 1);
  }
  return at;
}

}  // namespace

std::string with_tables(const std::string& document,
                        const std::function<std::string(const std::string&)>& results) {
  constexpr std::string_view opening = table_marker;
  constexpr std::string_view closing = "<!-- rung:end -->";
  constexpr std::string_view closes_marker = "-->";
  std::string text;
  std::size_t at = 0;
  for (;;) {
    const std::size_t begin = find_marker(document, opening, at);
    if (begin == std::string::npos) break;
    const std::size_t marker_end = document.find(closes_marker, begin);
    const std::size_t end = find_marker(document, closing, begin);
    const std::size_t next = find_marker(document, opening, begin + opening.size());
    if (end == std::string::npos || next < end || marker_end > end) {
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("line {}: the marker {} has no line {} after it, before the next one",
                              line_number(document, begin),
                              document.substr(begin, document.find('\n', begin) - begin), closing));
    }
    const std::size_t name_begin = begin + opening.size();
    std::istringstream words(document.substr(name_begin, marker_end - name_begin));
    std::string name;
    std::string filter;
    words >> name;
    std::getline(words, filter);
    text += document.substr(at, marker_end + closes_marker.size() - at);
    try {
      text += "\n" + results_to_markdown(results(name), filter);
    } catch (const Error& error) {
      throw Error(error.code(), fmt::format("line {}: the table {}: {}",
                                            line_number(document, begin), name, error.what()));
    }
    at = end;
  }
  return text + document.substr(at);
}

}  // namespace rung::workbench
