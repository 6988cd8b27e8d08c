// SPDX-License-Identifier: Apache-2.0
// The table of a sweep.
#include "rung/workbench/emulate_sweep.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <utility>

#include "rung/core/error.hpp"
#include "rung/core/text.hpp"
#include "rung/workbench/command.hpp"
#include "rung/workbench/table.hpp"

namespace rung::workbench {
namespace {

using nlohmann::ordered_json;

constexpr std::size_t most_runs = 64;

[[noreturn]] void refuse(const std::string& given, std::string_view why) {
  throw Error(ErrorCode::invalid_argument,
              fmt::format("--sweep: given \"{}\"{}; accepted is a macro and its values, as in "
                          "TILE_WIDTH=8,16,32",
                          printable(given), why));
}

bool is_identifier(const std::string& name) {
  const auto letter = [](char c) {
    return std::isalpha(static_cast<unsigned char>(c)) || c == '_';
  };
  return !name.empty() && letter(name[0]) && std::all_of(name.begin(), name.end(), [&](char c) {
    return letter(c) || std::isdigit(static_cast<unsigned char>(c));
  });
}

SweptMacro parse_sweep(const std::string& given) {
  const std::size_t equals = std::min(given.find('='), given.size());
  SweptMacro macro{.name = given.substr(0, equals), .values = {}};
  if (!is_identifier(macro.name) || equals == given.size()) refuse(given, "");
  for (std::size_t begin = equals + 1; begin <= given.size();) {
    const std::size_t end = std::min(given.find(',', begin), given.size());
    const std::string value = given.substr(begin, end - begin);
    if (value.empty()) refuse(given, ", where a value is empty");
    if (std::find(macro.values.begin(), macro.values.end(), value) != macro.values.end()) {
      refuse(given, fmt::format(", where {} is given twice", printable(value)));
    }
    macro.values.push_back(value);
    begin = end + 1;
  }
  return macro;
}

/// Returns the name without parameters: "multiply" for "multiply(float const*, int)".
std::string name_of(const ordered_json& kernel) {
  const std::string name = printable(kernel.at("name").get<std::string>());
  return name.substr(0, name.find('('));
}

double moved_bytes(const ordered_json& kernel) {
  const ordered_json& bytes = kernel.at("bytes");
  return bytes.at("global_moved").get<double>() + bytes.at("bulk").get<double>();
}

/// Returns the barriers and shuffles on the longest path of a warp in a block, as the mean over
/// blocks; null if no block ran.
ordered_json depth_of_kernel(const ordered_json& kernel) {
  const ordered_json& longest = kernel.at("waits").at("longest");
  const double blocks = kernel.at("blocks").get<double>();
  if (blocks == 0) return {};
  return (longest.at("barriers").get<double>() + longest.at("exchanges").get<double>()) / blocks;
}

/// Returns operations of all threads per byte moved between SMs and L2; null if either is unknown.
ordered_json intensity_of(const ordered_json& kernel) {
  const ordered_json& done = kernel.at("operations");
  const double bytes = moved_bytes(kernel);
  if (done.is_null() || bytes == 0) return {};
  const double products = kernel.at("totals").at("matrix_operations").get<double>();
  return (done.at("total").get<double>() + products) / bytes;
}

std::string number_or_blank(const ordered_json& value) {
  return value.is_null() ? "" : format_number(value.get<double>());
}

std::vector<std::string> figures_of(const ordered_json& kernel) {
  const auto count = [&](const char* name) { return whole(kernel.at(name).get<double>()); };
  const ordered_json& held = kernel.at("occupancy");
  const ordered_json bound = kernel.value("bound", ordered_json());
  return {count("block_threads"),
          count("shared_bytes"),
          count("blocks"),
          whole(moved_bytes(kernel)),
          number_or_blank(intensity_of(kernel)),
          number_or_blank(kernel.at("shared_wavefronts_per_request")),
          number_or_blank(depth_of_kernel(kernel)),
          held.is_null() ? "none fits"
                         : fmt::format("{:.3g} %", 100 * held.at("occupancy").get<double>()),
          bound.is_null() ? "" : format_seconds(bound.at("seconds").get<double>()),
          bound.is_null() ? "" : bound.at("bound_by").get<std::string>()};
}

std::string remark_on(const SweepRun& run) {
  if (!run.error.empty()) return one_line(run.error);
  std::string text;
  if (!run.findings.empty()) text = count_of(run.findings.size(), "finding");
  if (run.exit_code != 0) {
    text += fmt::format("{}exit code {}", text.empty() ? "" : ", ", run.exit_code);
  }
  if (run.kernels.empty()) text += fmt::format("{}no kernel ran", text.empty() ? "" : ", ");
  return text;
}

bool several_kernels(const std::vector<SweepRun>& runs) {
  return std::any_of(runs.begin(), runs.end(),
                     [](const SweepRun& run) { return run.kernels.size() > 1; });
}

/// Returns true if all runs have equal figures, which suggests that the macro has no effect.
bool all_alike(const std::vector<SweepRun>& runs) {
  const auto figures = [](const SweepRun& run) {
    std::vector<std::vector<std::string>> all;
    for (const ordered_json& kernel : run.kernels) all.push_back(figures_of(kernel));
    return all;
  };
  return runs.size() > 1 && std::all_of(runs.begin(), runs.end(), [&](const SweepRun& run) {
           return run.error.empty() && figures(run) == figures(runs.front());
         });
}

std::string legend(const std::vector<SweepRun>& runs, const Table& table) {
  std::string gpu;
  for (const SweepRun& run : runs) {
    for (const ordered_json& kernel : run.kernels) {
      const ordered_json bound = kernel.value("bound", ordered_json());
      if (!bound.is_null()) gpu = bound.at("gpu").get<std::string>();
    }
  }
  std::string text;
  const auto say = [&](const char* column, const std::string& meaning) {
    if (table.shows(column)) text += fmt::format("{}: {}. ", column, meaning);
  };
  say("bytes moved", "between the SMs and L2, in sectors of 32 bytes");
  say("FLOP/byte", "operations of all threads over them");
  say("wavefronts", "per request of shared memory");
  say("depth", "barriers and shuffles that a block passes one after another");
  say("occupancy", fmt::format("{}registers are not known, and are no limit here",
                               gpu.empty() ? "" : fmt::format("on {}; ", gpu)));
  if (!gpu.empty()) {
    say("at least",
        "the bound on it, were all SMs kept busy (`rung explain` has the "
        "same roofs)");
  }
  if (!text.empty()) text.pop_back();
  return text.empty() ? "" : "\n" + wrapped(text, text_width());
}

}  // namespace

std::vector<SweptMacro> parse_sweeps(const std::vector<std::string>& given,
                                     const std::vector<std::string>& definitions) {
  std::vector<SweptMacro> macros;
  std::size_t runs = 1;
  for (const std::string& one : given) {
    SweptMacro macro = parse_sweep(one);
    const auto same = [&](const SweptMacro& other) { return other.name == macro.name; };
    if (std::any_of(macros.begin(), macros.end(), same)) refuse(one, ", a macro swept twice");
    for (const std::string& definition : definitions) {
      if (definition.substr(0, definition.find('=')) != macro.name) continue;
      refuse(one, fmt::format(" beside -D {}", printable(definition)));
    }
    runs *= macro.values.size();
    if (runs > most_runs) {
      refuse(one, fmt::format(", with which the program would run more than {} times", most_runs));
    }
    macros.push_back(std::move(macro));
  }
  return macros;
}

std::vector<SweptValues> combinations(const std::vector<SweptMacro>& macros) {
  std::vector<SweptValues> all(1);
  for (const SweptMacro& macro : macros) {
    std::vector<SweptValues> longer;
    for (const SweptValues& begin : all) {
      for (const std::string& value : macro.values) {
        longer.push_back(begin);
        longer.back().push_back(value);
      }
    }
    all = std::move(longer);
  }
  return all;
}

std::vector<std::string> definitions_of(const std::vector<SweptMacro>& macros,
                                        const SweptValues& values) {
  std::vector<std::string> definitions;
  definitions.reserve(macros.size());
  for (std::size_t i = 0; i < macros.size(); ++i) {
    definitions.push_back(macros[i].name + "=" + values[i]);
  }
  return definitions;
}

std::string sweep_text(const std::vector<SweptMacro>& macros, const std::vector<SweepRun>& runs) {
  std::vector<Table::Column> columns;
  columns.reserve(macros.size());
  for (const SweptMacro& macro : macros) columns.push_back({macro.name, true});
  const bool named = several_kernels(runs);
  if (named) columns.push_back({"kernel", false, Table::Fit::cut});
  for (const char* title : {"threads", "shared bytes", "blocks"}) {
    columns.push_back({title, true, Table::Fit::drop});
  }
  columns.push_back({"bytes moved", true});
  columns.push_back({"FLOP/byte", true});
  columns.push_back({"wavefronts", true, Table::Fit::drop});
  columns.push_back({"depth", true, Table::Fit::drop});
  columns.push_back({"occupancy", true});
  columns.push_back({"at least", true});
  columns.push_back({"bound by", false, Table::Fit::cut});
  columns.push_back({""});
  const std::size_t figures = columns.size() - macros.size() - (named ? 1 : 0) - 1;
  Table table(columns);
  for (const SweepRun& run : runs) {
    std::vector<std::string> head;
    for (const std::string& value : run.values) head.push_back(printable(value));
    const Tone tone =
        !run.error.empty() || !run.findings.empty() || run.exit_code != 0 ? Tone::bad : Tone::plain;
    std::string remark = remark_on(run);
    if (run.kernels.empty()) {
      std::vector<std::string> cells = head;
      cells.resize(columns.size() - 1);
      cells.push_back(remark);
      table.add(std::move(cells), tone);
    }
    for (const ordered_json& kernel : run.kernels) {
      std::vector<std::string> cells = head;
      if (named) cells.push_back(name_of(kernel));
      std::vector<std::string> all = figures_of(kernel);
      all.resize(figures);
      cells.insert(cells.end(), all.begin(), all.end());
      cells.push_back(std::exchange(remark, ""));
      table.add(std::move(cells), tone);
    }
  }
  std::string text = "\n" + table.text() + legend(runs, table);
  if (all_alike(runs)) {
    std::vector<std::string> names;
    names.reserve(macros.size());
    for (const SweptMacro& macro : macros) names.push_back(macro.name);
    text += wrapped(
        fmt::format("All runs have the same figures: the program does not use {}, or defines it "
                    "itself without #ifndef.",
                    fmt::join(names, " and ")),
        text_width());
  }
  return text;
}

ordered_json sweep_json(const std::vector<SweptMacro>& macros, const std::vector<SweepRun>& runs) {
  ordered_json list = ordered_json::array();
  for (const SweepRun& run : runs) {
    ordered_json values = ordered_json::object();
    for (std::size_t i = 0; i < macros.size(); ++i) values[macros[i].name] = run.values[i];
    list.push_back({{"values", values},
                    {"error", run.error},
                    {"exit_code", run.exit_code},
                    {"findings", run.findings},
                    {"kernels", run.kernels}});
  }
  return {{"sweep", list}};
}

int sweep_exit_code(const std::vector<SweepRun>& runs, int if_found) {
  for (const SweepRun& run : runs) {
    if (!run.findings.empty()) return if_found;
  }
  for (const SweepRun& run : runs) {
    if (run.exit_code != 0) return run.exit_code;
  }
  return exit_good;
}

}  // namespace rung::workbench
