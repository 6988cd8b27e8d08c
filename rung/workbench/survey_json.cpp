// SPDX-License-Identifier: Apache-2.0
// Reads and writes survey files, from which a survey can continue.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "rung/bench/json_text.hpp"
#include "rung/core/error.hpp"
#include "rung/workbench/survey.hpp"

namespace rung::workbench {

using nlohmann::ordered_json;

namespace {

double read_number(const ordered_json& value) {
  return value.is_null() ? not_measured : value.get<double>();
}

ordered_json to_json(const SurveyRow& row) {
  ordered_json times = ordered_json::object();
  for (const auto& [name, seconds] : row.times) times[name] = bench::json_number(seconds);
  return {{"seed", row.seed},
          {"index", row.index},
          {"problem", row.problem},
          {"seconds", bench::json_number(row.seconds)},
          {"floor", bench::json_number(row.floor)},
          {"of_floor", bench::json_number(row.of_floor)},
          {"chosen", row.chosen},
          {"fastest", row.fastest},
          {"of_fastest", bench::json_number(row.of_fastest)},
          {"teaching", row.teaching},
          {"of_teaching", bench::json_number(row.of_teaching)},
          {"peer", row.peer},
          {"vs_peer", bench::json_number(row.vs_peer)},
          {"fault", fault_of(row)},
          {"note", row.note},
          {"failed", row.failed},
          {"unsupported", row.unsupported},
          {"spread", bench::json_number(row.spread)},
          {"peer_spread", bench::json_number(row.peer_spread)},
          {"undecided", row.undecided},
          {"times", times}};
}

}  // namespace

ordered_json to_json(const SurveyDevice& device) {
  return {{"kind", device.is_gpu ? "gpu" : "cpu"},
          {"device", device.name},
          {"compute_capability", device.compute_capability},
          {"units", device.units},
          {"bytes_per_second", device.bytes_per_second}};
}

namespace {

SurveyDevice device_from_json(const ordered_json& json) {
  return {.is_gpu = json.at("kind") == "gpu",
          .name = json.at("device"),
          .compute_capability = json.value("compute_capability", 0),
          .units = json.at("units"),
          .bytes_per_second = json.value("bytes_per_second", 0.0)};
}

SurveyRow row_from_json(const ordered_json& json) {
  SurveyRow row;
  json.at("seed").get_to(row.seed);
  json.at("index").get_to(row.index);
  json.at("problem").get_to(row.problem);
  row.seconds = read_number(json.at("seconds"));
  row.floor = read_number(json.at("floor"));
  row.of_floor = read_number(json.at("of_floor"));
  json.at("chosen").get_to(row.chosen);
  json.at("fastest").get_to(row.fastest);
  row.of_fastest = read_number(json.at("of_fastest"));
  json.at("teaching").get_to(row.teaching);
  row.of_teaching = read_number(json.at("of_teaching"));
  json.at("peer").get_to(row.peer);
  row.vs_peer = read_number(json.at("vs_peer"));
  json.at("note").get_to(row.note);
  json.at("failed").get_to(row.failed);
  // Fields missing in files of earlier versions.
  row.unsupported = json.value("unsupported", false);
  if (json.contains("spread")) row.spread = read_number(json.at("spread"));
  if (json.contains("peer_spread")) row.peer_spread = read_number(json.at("peer_spread"));
  row.undecided = json.value("undecided", false);
  for (const auto& [name, seconds] : json.at("times").items()) {
    row.times.emplace_back(name, read_number(seconds));
  }
  return row;
}

}  // namespace

SurveyRow* SurveyResults::find(std::uint64_t seed, std::int64_t index) {
  for (SurveyRow& row : rows) {
    if (row.seed == seed && row.index == index) return &row;
  }
  return nullptr;
}

SurveyDevice device_of(const Context& context) {
  const DeviceInfo& info = context.info();
  if (context.backend() == Backend::cpu) {
    return {.name = info.family, .units = context.threads()};
  }
  return {.is_gpu = true,
          .name = info.name,
          .compute_capability = info.compute_capability,
          .units = info.sms,
          .bytes_per_second = info.bytes_per_second};
}

std::string survey_json(const SurveyResults& survey, const bench::Machine& machine) {
  ordered_json all = {{"machine", ordered_json::parse(bench::machine_to_json(machine))},
                      {"survey",
                       {{"op", survey.op},
                        {"backend", to_string(survey.backend)},
                        {"threads", survey.threads},
                        {"where", survey.where},
                        {"device", to_json(survey.device)},
                        {"date", survey.date},
                        {"max_bytes", survey.draw.max_bytes},
                        {"patterns", survey.draw.patterns}}}};
  // One row per line: people read and compare files of hundreds of rows.
  std::string text = all.dump(2);
  text.resize(text.size() - 2);
  text += ",\n  \"rows\": [";
  for (std::size_t i = 0; i < survey.rows.size(); ++i) {
    text += (i == 0 ? "\n    " : ",\n    ") + to_json(survey.rows[i]).dump();
  }
  return text + "\n  ]\n}";
}

SurveyResults survey_from_json(const std::string& text) {
  SurveyResults survey;
  try {
    const ordered_json all = ordered_json::parse(text);
    const ordered_json& head = all.at("survey");
    head.at("op").get_to(survey.op);
    survey.backend = parse_backend(head.at("backend").get<std::string>());
    head.at("threads").get_to(survey.threads);
    head.at("where").get_to(survey.where);
    if (head.contains("device")) survey.device = device_from_json(head.at("device"));
    head.at("date").get_to(survey.date);
    head.at("max_bytes").get_to(survey.draw.max_bytes);
    head.at("patterns").get_to(survey.draw.patterns);
    for (const ordered_json& row : all.at("rows")) survey.rows.push_back(row_from_json(row));
  } catch (const nlohmann::json::exception& error) {
    throw Error(ErrorCode::io, bench::json_fault(error, text, "rung survey --json"));
  }
  return survey;
}

void expect_same_survey(const SurveyResults& file, const SurveyResults& requested,
                        std::string_view path) {
  const auto differs = [&](const std::string& its, const std::string& ours, const char* what) {
    if (its == ours) return;
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{} holds a survey of another {} ({}, not {}), which cannot go on as "
                            "this one; accepted: another file",
                            path, what, its, ours));
  };
  differs(file.op, requested.op, "operator");
  differs(to_string(file.backend), to_string(requested.backend), "backend");
  differs(std::to_string(file.threads), std::to_string(requested.threads), "number of threads");
  differs(file.where, requested.where, "machine");
  differs(fmt::format("{}", file.draw.max_bytes), fmt::format("{}", requested.draw.max_bytes),
          "--max-bytes");
  differs(fmt::format("'{}'", fmt::join(file.draw.patterns, "', '")),
          fmt::format("'{}'", fmt::join(requested.draw.patterns, "', '")), "set of patterns");
}

}  // namespace rung::workbench
