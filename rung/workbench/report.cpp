// SPDX-License-Identifier: Apache-2.0
// rung report: measured results as tables for people. Numbers in a README come from here, never
// from a keyboard.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>

#include "rung/bench/json_text.hpp"
#include "rung/workbench/command.hpp"
#include "rung/workbench/files.hpp"
#include "rung/workbench/markdown.hpp"
#include "rung/workbench/pictures.hpp"

namespace rung::workbench {
namespace {

struct Options {
  std::vector<std::string> files;
  std::string into;
  std::string results = "results";
  std::string only;
  bool markdown = false;
  bool check = false;
};

/// Throws an error that names the file unless it is JSON.
std::string read_json_file(const std::string& path) {
  std::string text = read_text_file(path);
  try {
    bench::expect_json(text, "rung bench --output` or `rung survey --json");
  } catch (const Error& error) {
    throw Error(error.code(), fmt::format("{}: {}", path, error.what()));
  }
  return text;
}

/// The results of a marker's name, in which a * stands for anything: then those of all such files.
std::string results_of(const std::string& folder, const std::string& name) {
  const std::size_t star = name.find('*');
  if (star == std::string::npos) return read_json_file(fmt::format("{}/{}.json", folder, name));
  const std::filesystem::path pattern(fmt::format("{}/{}.json", folder, name));
  const std::string file = pattern.filename().string();
  const std::string front = file.substr(0, file.find('*'));
  const std::string back = file.substr(front.size() + 1);
  std::vector<std::string> paths;
  std::error_code failed;
  for (const auto& one : std::filesystem::directory_iterator(pattern.parent_path(), failed)) {
    const std::string found = one.path().filename().string();
    if (found.size() >= front.size() + back.size() && found.starts_with(front) &&
        found.ends_with(back)) {
      paths.push_back(one.path().string());
    }
  }
  if (paths.empty()) {
    throw Error(ErrorCode::io, fmt::format("{}: there is no such file", pattern.string()));
  }
  std::sort(paths.begin(), paths.end());
  std::string all;
  for (const std::string& path : paths) all += (all.empty() ? "[" : ",") + read_json_file(path);
  return all + "]";
}

/// An error about a file's content names the file.
std::string tables_of_file(const std::string& path, const std::string& filter) {
  const std::string text = read_text_file(path);
  try {
    return results_to_markdown(text, filter);
  } catch (const Error& error) {
    throw Error(error.code(), fmt::format("{}: {}", path, error.what()));
  }
}

int update(const Options& options) {
  const std::string before = read_text_file(options.into);
  const bool is_picture = options.into.ends_with(".svg");
  if (!is_picture && before.find(table_marker) == std::string::npos) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{}: no line begins with '{}'; `rung report --help` shows one",
                            options.into, table_marker));
  }
  std::string after;
  try {
    const auto results = [&](const std::string& name) { return results_of(options.results, name); };
    after = is_picture ? renewed_picture(before, results) : with_tables(before, results);
  } catch (const Error& error) {
    throw Error(error.code(), fmt::format("{}: {}", options.into, error.what()));
  }
  if (options.check) {
    fmt::print("{} {}\n", options.into,
               before == after ? "is up to date" : "differs from the measured results");
    return before == after ? exit_good : exit_failed;
  }
  if (before != after) write_text_file(options.into, after);
  fmt::print("{} {}\n", options.into, before == after ? "was up to date" : "written");
  return exit_good;
}

int run(const Options& options) {
  if (!options.into.empty()) return update(options);
  if (options.files.empty()) {
    throw Error(ErrorCode::invalid_argument,
                "report: no results given; accepted: files that `rung bench --output` wrote, or "
                "--into README.md");
  }
  for (std::size_t i = 0; i < options.files.size(); ++i) {
    fmt::print("{}{}", i == 0 ? "" : "\n", tables_of_file(options.files[i], options.only));
  }
  return exit_good;
}

CommandSpec::Action setup(Parser app) {
  auto options = std::make_shared<Options>();
  app.add_option("files", options->files,
                 "files that `rung bench --output` or `rung survey --json` wrote")
      .type_name("FILE");
  app.add_flag("--markdown", options->markdown, "tables in Markdown (the default)");
  app.add_option("--only", options->only,
                 "some tables, as in \"f32 64x64x64 backend=cpu threads=2\"; default: all")
      .type_name("TABLES");
  const Option into =
      app.add_option("--into", options->into, "renew the tables of this document, or this picture")
          .type_name("FILE");
  app.add_option("--results", options->results,
                 "the folder in which its markers' names lie; default: results")
      .type_name("FOLDER");
  app.add_flag("--check", options->check, "with --into: only say whether it is up to date")
      .needs(into);
  app.purpose(
      "Makes tables of what `rung bench` and `rung survey` measured: of files on standard output, "
      "or inside a "
      "document. A document says where with two markers, each on a line of its own:\n"
      "  <!-- rung:table h200/gemm f32 4096x4096x4096 -->\n"
      "  <!-- rung:end -->\n"
      "Between them `rung report --into README.md` puts the tables of results/h200/gemm.json. "
      "Behind the name may stand a problem, backend=B, threads=N, and rung=R for one table of that "
      "rung over all problems; of a survey, worst. A * in the name stands for anything: "
      "h200/*_survey makes one table of all surveys there.\n"
      "A document NAME.svg is a picture: its first line, <!-- rung:picture h200/gemm_ladder f32 "
      "4096x4096x4096 -->, says of what; surveys are drawn as points.");
  app.example("rung bench gemm --output gemm.json", "first measure");
  app.example("rung report gemm.json", "every table of it");
  app.example("rung report --into rung/ops/gemm/README.md", "the document's tables, renewed");
  app.example("rung report --into docs/pictures/gemm_ladder.svg", "a picture, drawn anew");
  app.exit_codes({{exit_good, "written, or up to date"},
                  {exit_failed, "--check: the document differs from the results"},
                  {exit_usage, "a file cannot be read or is not what it should be"}});
  return [options] { return run(*options); };
}

const Command self{{.name = "report",
                    .order = 60,
                    .summary = "measured results as tables for a README",
                    .setup = setup}};

}  // namespace
}  // namespace rung::workbench
