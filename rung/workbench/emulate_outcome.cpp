// SPDX-License-Identifier: Apache-2.0
// Reads the reports of a program's processes.
#include "rung/workbench/emulate_outcome.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "rung/core/error.hpp"
#include "rung/workbench/files.hpp"

namespace rung::workbench {
namespace {

Outcome read_outcome(const std::string& path) {
  Outcome outcome{.fields = "\"findings\":[],\"kernels\":[]"};
  if (!std::filesystem::exists(path)) return outcome;
  const std::string text = read_text_file(path);
  const std::size_t line = text.find('\n');
  outcome.findings = std::strtoull(text.c_str(), nullptr, 10);
  if (line != std::string::npos) outcome.fields = text.substr(line + 1);
  if (!std::filesystem::exists(path + ".texts")) return outcome;
  const std::string texts = read_text_file(path + ".texts");  // each ends with a null character
  for (std::size_t at = 0, end = 0; (end = texts.find('\0', at)) != std::string::npos;
       at = end + 1) {
    auto& list = outcome.texts.size() < outcome.findings ? outcome.texts : outcome.notes;
    list.push_back(texts.substr(at, end - at));
  }
  return outcome;
}

}  // namespace

void Outcome::take(const nlohmann::ordered_json& report) {
  constexpr auto utf8 = nlohmann::ordered_json::error_handler_t::replace;
  const std::string text = report.dump(-1, ' ', false, utf8);
  fields = text.substr(1, text.size() - 2);
}

std::vector<std::string> report_files(const std::string& path) {
  std::vector<std::string> files = {path};
  const std::filesystem::path first(path);
  const std::string stem = first.filename().string() + ".";
  for (const auto& one : std::filesystem::directory_iterator(first.parent_path())) {
    const std::string name = one.path().filename().string();
    const bool ours = name.starts_with(stem) && name.size() > stem.size() &&
                      name.find_first_not_of("0123456789", stem.size()) == std::string::npos;
    if (ours) files.push_back(one.path().string());
  }
  std::sort(files.begin() + 1, files.end());
  return files;
}

Outcome read_outcomes(const std::string& path) {
  const std::vector<std::string> files = report_files(path);
  Outcome all = read_outcome(path);
  if (files.size() == 1) return all;
  nlohmann::ordered_json report = all.parsed();
  for (std::size_t i = 1; i < files.size(); ++i) {
    const Outcome one = read_outcome(files[i]);
    all.findings += one.findings;
    all.texts.insert(all.texts.end(), one.texts.begin(), one.texts.end());
    all.notes.insert(all.notes.end(), one.notes.begin(), one.notes.end());
    const nlohmann::ordered_json more = one.parsed();
    for (const char* key : {"findings", "kernels", "partly_recorded"}) {
      if (!more.contains(key)) continue;
      for (const auto& entry : more.at(key)) report[key].push_back(entry);
    }
  }
  all.take(report);
  return all;
}

void check_report_path(const std::string& path) {
  if (path.empty()) return;
  refuse_dash("--json", path);
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  if (!folder.empty() && !std::filesystem::is_directory(folder)) {
    throw Error(ErrorCode::io,
                fmt::format("--json {}: there is no folder {}", path, folder.string()));
  }
  if (std::filesystem::is_directory(path)) {
    throw Error(ErrorCode::io, fmt::format("--json {}: that is a folder", path));
  }
}

}  // namespace rung::workbench
