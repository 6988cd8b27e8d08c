// SPDX-License-Identifier: Apache-2.0
// rung list: lists the ladders: every rung, and whether it is available here, or why not.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>

#include "rung/workbench/command.hpp"
#include "rung/workbench/rung_source.hpp"
#include "rung/workbench/selection.hpp"
#include "rung/workbench/table.hpp"

namespace rung::workbench {
namespace {

using nlohmann::ordered_json;

struct Options {
  std::string target;
  std::string backend;  // "": all
  bool all = false;
  bool json = false;
};

bool is_dtype_name(const std::string& word) {
  const std::string names = ", " + dtype_names() + ",";
  return !word.empty() && names.find(", " + word + ",") != std::string::npos;
}

std::string about(const RungInfo& rung) { return rung.about != nullptr ? rung.about() : ""; }

/// Returns the fields of a rung's header comment; empty if its source is not available.
ordered_json header_of(const RungInfo& rung) {
  ordered_json header = ordered_json::object();
  const std::optional<std::string> source = find_source(std::string(rung.file));
  if (rung.peer || !source) return header;
  for (const RungHeader::Field& field : parse_rung_header(*source).fields) {
    header[field.name] = field.text;
  }
  return header;
}

ordered_json to_json(const AnyOperator& op, const RungInfo& rung) {
  const Availability here = rung_availability(rung);
  return {{"op", op.name()},
          {"summary", op.summary()},
          {"rung", rung.name},
          {"step", rung.step},
          {"kind", kind_name(rung)},
          {"backend", to_string(rung.backend)},
          {"peer", rung.peer},
          {"available", here.ok},
          {"why_not", here.why},
          {"file", rung.file},
          {"after", rung.after},
          {"teaching", rung.teaching},
          {"about", here ? about(rung) : ""},
          {"header", header_of(rung)}};
}

/// Returns the remark on a rung. The reason of an unavailable backend is printed only once, below
/// all tables.
std::string remark(const RungInfo& rung) {
  if (const Availability here = rung_availability(rung); !here) {
    return available(rung.backend) ? "not here: " + here.why : "";
  }
  if (rung.teaching) {
    return rung.kind == RungKind::step ? "teaching: a step of the ladder, not picked"
                                       : "teaching: not picked";
  }
  return rung.peer ? "peer: " + about(rung) : "";
}

constexpr char no_break = '\1';  // a blank at which lines are not broken

/// Replaces the blank between an element type and its extents by no_break, so that an example stays
/// on one line.
void keep_examples_whole(std::string& text) {
  for (std::size_t at = text.find(' '); at < text.size() - 1; at = text.find(' ', at + 1)) {
    const std::size_t begin = text.find_last_of(" (", at - 1) + 1;
    const std::string word = text.substr(begin, at - begin);
    const bool is_type = word == "TYPE" || is_dtype_name(word);
    const char next = text[at + 1];
    if (is_type && ((next >= '0' && next <= '9') || word == "TYPE")) text[at] = no_break;
  }
}

/// Returns the operator's help entries ("problems: ...", "options: ..."), each wrapped with a
/// hanging indent. A line that begins with blanks continues the previous entry.
std::string problem_help(const AnyOperator& op) {
  std::vector<std::string> entries;
  std::istringstream lines("problems: " + std::string(op.problem_help()));
  for (std::string line; std::getline(lines, line);) {
    const std::size_t begin = std::min(line.find_first_not_of(' '), line.size());
    if (begin == 0) {
      entries.push_back(line);
    } else {
      const std::string rest = line.substr(begin);
      const bool is_example = is_dtype_name(rest.substr(0, rest.find(' ')));
      entries.back() += (is_example ? "   " : " ") + rest;
    }
  }
  std::string text;
  for (std::string& entry : entries) {
    keep_examples_whole(entry);
    const std::size_t head = entry.find(": ") == std::string::npos ? 0 : entry.find(": ") + 2;
    text += wrapped(entry.substr(head), text_width(), entry.substr(0, head));
  }
  std::replace(text.begin(), text.end(), no_break, ' ');
  return text;
}

/// Returns true if the command line selects the rung.
bool is_requested(const RungInfo& rung, const Target& target, const Options& options) {
  return (target.rung.empty() || rung.name == target.rung) &&
         (options.backend.empty() || options.backend == to_string(rung.backend));
}

void print_ladder(const AnyOperator& op, const Target& target, const Options& options) {
  fmt::print(
      "{}{}", toned(Tone::strong, op.name()),
      wrapped(std::string(op.summary()), text_width(), std::string(op.name().size() + 3, ' '))
          .substr(op.name().size()));
  fmt::print("{}\n", problem_help(op));
  Table table(
      {{"backend"}, {"step", true}, {"rung"}, {"file", false, Table::Fit::drop}, {"remark"}});
  for (const RungInfo* rung : op.rungs()) {
    if (!is_requested(*rung, target, options)) continue;
    // The operator's folder and the backend's folder are the same in every line.
    const std::size_t folder = rung->file.rfind('/');
    const std::size_t from =
        rung->kind == RungKind::step ? folder : rung->file.rfind('/', folder - 1);
    const std::string file(rung->file.substr(from + 1));
    const bool here = static_cast<bool>(rung_availability(*rung));
    table.add(
        {to_string(rung->backend), step_text(*rung), std::string(rung->name), file, remark(*rung)},
        here ? Tone::plain : Tone::faint);
  }
  if (table.empty()) fmt::print("no rung on {}\n", options.backend);
  fmt::print("{}\n", table.text());
}

/// Returns true for gradients of other operators. The overview only names them: their ladders
/// mirror those of the forward operators.
bool is_gradient(const AnyOperator& op) { return op.name().find("_backward") != op.name().npos; }

std::size_t count_rungs(const AnyOperator& op, Backend backend) {
  std::size_t count = 0;
  for (const RungInfo* rung : op.rungs()) {
    if (rung->backend == backend && !rung->peer) ++count;
  }
  return count;
}

/// Returns the backends with a column. The simulated GPU runs the sources of the CUDA rungs: it has
/// a column only if this build simulates rungs other than those it has for GPUs.
std::vector<Backend> shown_backends(const std::vector<const AnyOperator*>& all,
                                    const Options& options) {
  if (!options.backend.empty()) return {parse_backend(options.backend)};
  const auto has = [&](Backend backend) {
    return std::any_of(all.begin(), all.end(),
                       [&](const AnyOperator* op) { return count_rungs(*op, backend) > 0; });
  };
  const bool same = std::all_of(all.begin(), all.end(), [](const AnyOperator* op) {
    return count_rungs(*op, Backend::cuda) == count_rungs(*op, Backend::simt);
  });
  std::vector<Backend> shown;
  for (const Backend backend : all_backends) {
    if (backend == Backend::simt && same && has(Backend::cuda)) continue;
    shown.push_back(backend);
  }
  return shown;
}

/// Prints one line per operator except gradients.
void print_overview(const std::vector<const AnyOperator*>& all, const Options& options) {
  const std::vector<Backend> backends = shown_backends(all, options);
  std::vector<Table::Column> columns{{"operator"}, {"what it computes", false, Table::Fit::cut}};
  for (const Backend backend : backends) columns.push_back({to_string(backend), true});
  columns.push_back({"peers here", false, Table::Fit::yield});
  Table table(std::move(columns));
  std::size_t rungs = 0;
  std::vector<std::string> gradients;
  for (const AnyOperator* op : all) {
    std::vector<std::string> cells{std::string(op->name()), std::string(op->summary())};
    std::vector<std::string> peers;
    for (const Backend backend : backends) {
      for (const RungInfo* rung : op->rungs()) {
        if (rung->backend != backend || !rung->peer || !rung_availability(*rung)) continue;
        peers.emplace_back(rung->name);
      }
      const std::size_t count = count_rungs(*op, backend);
      rungs += count;
      cells.push_back(count == 0 ? "" : std::to_string(count));
    }
    cells.push_back(join(peers));
    if (is_gradient(*op)) {
      gradients.emplace_back(op->name());
    } else {
      table.add(std::move(cells));
    }
  }
  const std::vector<LeftOutOperator> left_out = left_out_operators();
  for (const LeftOutOperator& one : left_out) {
    table.add({std::string(one.name), std::string(one.summary)}, Tone::faint);
  }
  fmt::print("{}", table.text());
  const bool is_merged =
      std::find(backends.begin(), backends.end(), Backend::simt) == backends.end();
  if (is_merged && options.backend.empty())
    say("cuda: the simulated GPU, simt, runs the same rungs.");
  if (!gradients.empty()) {
    fmt::print("{}", wrapped(join(gradients), text_width(), "gradients: "));
  }
  if (all.empty()) {
    say("No operator is built here yet: no row has numbers. `./rung.sh list gemm`, in the source "
        "tree, builds gemm and shows its ladder.");
    return;
  }
  const bool has_gemm = std::any_of(all.begin(), all.end(),
                                    [](const AnyOperator* op) { return op->name() == "gemm"; });
  say(fmt::format("{}, {}. `rung list {}` shows a ladder, `--all` every one.",
                  count_of(all.size(), "operator"), count_of(rungs, "rung"),
                  has_gemm ? "gemm" : all.front()->name()));
  if (left_out.empty()) return;
  say(fmt::format(
      "Without numbers: {} of the source tree that this build leaves out. "
      "`./rung.sh list {}`, in the source tree, adds one.",
      count_of(left_out.size(), "operator"), has_gemm ? left_out.front().name : "gemm"));
}

/// Prints the available backends, and once for all rungs why others are not available.
void print_backends() {
  std::vector<std::string> here;
  std::string missing;
  for (const Backend backend : all_backends) {
    const Availability one = available(backend);
    if (one) {
      here.emplace_back(to_string(backend));
    } else {
      missing += wrapped("not available: " + one.why, text_width(),
                         fmt::format("{:<5} ", to_string(backend)));
    }
  }
  fmt::print("backends here: {}\n{}", join(here), missing);
  if (!available(Backend::simt)) {
    say("In the source tree, `./rung.sh check`, `explain` and `emulate` build the simulated GPU.");
  }
}

int run(const Options& options) {
  const Target target = select_target(options.target);
  if (!options.backend.empty()) {
    const Backend backend = parse_backend(options.backend);
    if (!target.rung.empty()) expect_rung(*target.operators.front(), target.rung, backend);
  }
  if (options.json) {
    ordered_json all = ordered_json::array();
    for (const AnyOperator* op : target.operators) {
      for (const RungInfo* rung : op->rungs()) {
        if (is_requested(*rung, target, options)) all.push_back(to_json(*op, *rung));
      }
    }
    fmt::print("{}\n", all.dump(2));
    return exit_good;
  }
  if (options.target.empty() && !options.all) {
    print_overview(target.operators, options);
  } else {
    for (const AnyOperator* op : target.operators) print_ladder(*op, target, options);
  }
  print_backends();
  return exit_good;
}

CommandSpec::Action setup(Parser app) {
  auto options = std::make_shared<Options>();
  app.add_option("op", options->target,
                 "an operator, or operator/rung; default: an overview, one line per operator")
      .completes(complete_targets);
  app.add_option("--backend", options->backend,
                 "only the rungs of cpu, cuda, simt or opencl; default: all")
      .completes(complete_backends);
  app.add_flag("--all", options->all, "the ladders of all operators");
  app.add_flag("--json", options->json,
               "an array with one object per rung, of all operators or one");
  app.purpose(
      "Lists the operators, and the rungs of one: its ladder. A rung is one implementation: one "
      "file, whose first lines say what it changes against the rung before it and why that should "
      "help. Steps order the ladder. A peer is a vendor's library, timed beside the rungs, and no "
      "call picks it.");
  app.example("rung list", "which operators there are, and how many rungs each has per backend");
  app.example("rung list gemm", "the ladder of gemm, and how its problems are spelled");
  app.example("rung list gemm --backend cuda", "the part of it that runs on NVIDIA GPUs");
  app.example("rung list gemm/threads --json", "what is known of one rung, for scripts");
  app.exit_codes({{exit_good, "good"}, {exit_usage, "there is no such operator or rung"}});
  return [options] { return run(*options); };
}

const Command self{{.name = "list",
                    .order = 10,
                    .summary = "the operators and their rungs, and what can run here",
                    .setup = setup}};

}  // namespace
}  // namespace rung::workbench
