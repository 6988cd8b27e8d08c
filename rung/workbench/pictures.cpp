// SPDX-License-Identifier: Apache-2.0
// SVG bar charts of ladders and scatter plots of surveys; colors follow the reader's light or dark
// theme.
#include "rung/workbench/pictures.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <vector>

#include "rung/core/error.hpp"

namespace rung::workbench {
namespace {

using nlohmann::json;

constexpr double width = 760;
constexpr std::string_view style =
    "<style>"
    "text{font:12px system-ui,sans-serif;fill:#24292f}.title{font-weight:600;font-size:14px}"
    ".faint{fill:#6e7781}.rung{fill:#2f81f7}.peer{fill:#9a6700}.slow{fill:#cf222e}"
    ".axis{stroke:#d0d7de;stroke-width:1}"
    "@media(prefers-color-scheme:dark){text{fill:#e6edf3}.faint{fill:#8d96a0}"
    ".peer{fill:#d29922}.slow{fill:#f85149}.axis{stroke:#30363d}}"
    "</style>\n";

std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    out += c == '<' ? "&lt;" : c == '&' ? "&amp;" : c == '>' ? "&gt;" : std::string(1, c);
  }
  return out;
}

std::string text_at(double x, double y, std::string_view words, std::string_view classes = "",
                    std::string_view anchor = "start") {
  return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" class=\"{}\" text-anchor=\"{}\">{}</text>\n",
                     x, y, classes, anchor, escaped(words));
}

std::string line_between(double x1, double y1, double x2, double y2) {
  return fmt::format(
      "<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" class=\"axis\"/>\n", x1, y1,
      x2, y2);
}

std::string framed(double height, std::string_view alternative, std::string_view inside) {
  return fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {:.0f} {:.0f}\" role=\"img\">\n"
      "<title>{}</title>\n{}{}</svg>\n",
      width, height, escaped(alternative), style, inside);
}

/// A logarithmic axis between two powers of ten.
struct LogAxis {
  double low, high;  // values
  double from, to;   // pixels
  [[nodiscard]] double at(double value) const {
    const double clamped = std::clamp(value, low, high);
    return from + (to - from) * std::log(clamped / low) / std::log(high / low);
  }
};

/// Formats a rate: 50500 GFLOP/s as "50.5 TFLOP/s".
std::string rate_text(double rate, const std::string& unit) {
  const bool tera = rate >= 1000 && unit.starts_with('G');
  return tera ? fmt::format("{:.3g} T{}", rate / 1000, unit.substr(1))
              : fmt::format("{:.3g} {}", rate, unit);
}

std::string where_of(const json& result, const std::string& backend) {
  const json& machine = result.at("machine");
  if (backend != "cpu" && machine.contains("gpus") && !machine.at("gpus").empty()) {
    return machine.at("gpus").at(0).value("name", "");
  }
  return machine.value("cpu", "");
}

std::string ladder_picture(const json& result, const std::string& filter) {
  std::vector<json> rows;
  for (const json& row : result.at("rows")) {
    if (row.at("problem") == filter && row.at("rate").is_number() &&
        (row.at("peer") || row.at("step") > 0)) {
      rows.push_back(row);
    }
  }
  if (rows.empty()) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("no row of the results matches '{}'", filter));
  }
  std::ranges::stable_sort(rows, {}, [](const json& row) {
    return std::pair(row.at("peer").get<bool>(), row.at("step").get<int>());
  });
  double least = HUGE_VAL, most = 0;
  for (const json& row : rows) {
    least = std::min(least, row.at("rate").get<double>());
    most = std::max(most, row.at("rate").get<double>());
  }
  constexpr double top = 52, pitch = 19, bar = 13;
  const LogAxis axis{least / 2, most, 200, width - 120};
  std::string inside;
  double y = top;
  for (const json& row : rows) {
    const double rate = row.at("rate");
    const bool peer = row.at("peer");
    inside += text_at(192, y + 11, row.at("rung").get<std::string>(), peer ? "faint" : "", "end");
    inside += fmt::format(
        "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{}\" class=\"{}\" rx=\"2\"/>\n",
        axis.from, y, axis.at(rate) - axis.from, bar, peer ? "peer" : "rung");
    inside += text_at(axis.at(rate) + 6, y + 11, rate_text(rate, row.at("unit")), "faint");
    y += pitch;
  }
  const std::string op = rows.front().at("op");
  const std::string title =
      fmt::format("{}, {} on {}", op, filter, where_of(result, rows.front().at("backend")));
  const std::string head = text_at(12, 22, title, "title") +
                           text_at(12, 40, "each rung of the ladder; logarithmic scale", "faint");
  return framed(y + 8, title, head + inside);
}

std::string survey_picture(const json& parsed) {
  constexpr double top = 56, bottom = 330, left = 60, right = width - 30;
  const LogAxis x{1e-6, 1e-2, left, right};
  const LogAxis y{0.25, 8, bottom, top};
  std::string points;
  int problems = 0, slow = 0;
  std::string where;
  for (const json& survey : parsed.is_array() ? parsed : json::array({parsed})) {
    where = survey.at("survey").at("where");
    for (const json& row : survey.at("rows")) {
      if (!row.at("vs_peer").is_number() || !row.at("seconds").is_number()) continue;
      if (row.value("undecided", false)) continue;
      const double ratio = row.at("vs_peer");
      const bool is_slow = ratio < 0.9;
      ++problems;
      slow += is_slow ? 1 : 0;
      points += fmt::format(
          "<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"2.2\" class=\"{}\" fill-opacity=\"0.6\"/>\n",
          x.at(row.at("seconds").get<double>()), y.at(ratio), is_slow ? "slow" : "rung");
    }
  }
  if (problems == 0) {
    throw Error(ErrorCode::invalid_argument, "no row of the surveys has a peer");
  }
  const std::string title = fmt::format("{} random problems on {}", problems, where);
  std::string inside =
      text_at(12, 22, title, "title") +
      text_at(
          12, 40,
          fmt::format("speed relative to the fastest peer, over the time of a call; {} below 0.9",
                      slow),
          "faint");
  for (const double value : {0.25, 0.5, 1.0, 2.0, 4.0, 8.0}) {
    inside += line_between(left, y.at(value), right, y.at(value));
    inside += text_at(left - 8, y.at(value) + 4, fmt::format("{:g}", value), "faint", "end");
  }
  const std::pair<double, std::string_view> times[] = {
      {1e-6, "1 us"}, {1e-5, "10 us"}, {1e-4, "100 us"}, {1e-3, "1 ms"}, {1e-2, "10 ms"}};
  for (const auto& [seconds, words] : times) {
    inside += text_at(x.at(seconds), bottom + 18, words, "faint", "middle");
  }
  return framed(bottom + 30, title, inside + points);
}

}  // namespace

std::string results_to_picture(const std::string& text, const std::string& filter) {
  try {
    const json parsed = json::parse(text);
    const json& first = parsed.is_array() ? parsed.at(0) : parsed;
    return first.contains("survey") ? survey_picture(parsed) : ladder_picture(first, filter);
  } catch (const json::exception& error) {
    throw Error(ErrorCode::io,
                fmt::format("not the results of `rung bench` or `rung survey`: {}", error.what()));
  }
}

std::string renewed_picture(const std::string& document,
                            const std::function<std::string(const std::string&)>& results) {
  const std::size_t end = document.find(" -->");
  if (!document.starts_with(picture_marker) || end == std::string::npos) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("the first line is no '{}NAME PROBLEM -->'", picture_marker));
  }
  const std::string words = document.substr(picture_marker.size(), end - picture_marker.size());
  const std::size_t space = words.find(' ');
  const std::string filter = space == std::string::npos ? "" : words.substr(space + 1);
  return document.substr(0, end) + " -->\n" +
         results_to_picture(results(words.substr(0, space)), filter);
}

}  // namespace rung::workbench
