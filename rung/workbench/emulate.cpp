// SPDX-License-Identifier: Apache-2.0
// rung emulate: compiles an ordinary CUDA program with the system's g++ and runs it on the
// simulated GPU.
#include "rung/workbench/command.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <thread>

#include "rung/bench/data_sheets.hpp"
#include "rung/core/text.hpp"
#include "rung/emulate/compile.hpp"
#include "rung/emulate/process.hpp"
#include "rung/simt/simulator.hpp"
#include "rung/workbench/annotate.hpp"
#include "rung/workbench/emulate_bound.hpp"
#include "rung/workbench/emulate_fix.hpp"
#include "rung/workbench/emulate_orders.hpp"
#include "rung/workbench/emulate_outcome.hpp"
#include "rung/workbench/emulate_report.hpp"
#include "rung/workbench/emulate_sweep.hpp"
#include "rung/workbench/emulate_words.hpp"
#include "rung/workbench/files.hpp"
#include "rung/workbench/table.hpp"

namespace rung::workbench {
namespace {

constexpr int exit_findings = 66;
constexpr int exit_timed_out = 128 + SIGALRM;

struct Options {
  emulate::Sources sources;
  std::vector<std::string> words;  // sources and nvcc's options
  std::vector<std::string> sweeps;
  std::string json, order = "forward", capability, gpu, keep, checks = "repeated";
  bool build = false, toolchain = false, no_checks = false, no_streams = false, leaks = false,
       annotate = false, branches = false, counters = false, fix = false;

  /// Returns true if an option uses the counters.
  [[nodiscard]] bool counts() const {
    return !json.empty() || annotate || counters || !sweeps.empty();
  }
  double timeout = 0;
  int threads = 0, devices = 1;
};

int parse_capability(const std::string& text) {
  int major = 0, minor = 0;
  if (std::sscanf(text.c_str(), "%d.%d", &major, &minor) < 1 || major < 6 || major > 12 ||
      minor < 0 || minor > 9) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("--compute-capability: given \"{}\", accepted are 6.0 to 12.0", text));
  }
  return 10 * major + minor;
}

void require_checks(const std::string& given) {
  if (given == "repeated" || given == "always") return;
  const bool number = !given.empty() && given.size() < 10 && given[0] != '0' &&
                      given.find_first_not_of("0123456789") == std::string::npos;
  if (number) return;
  throw Error(ErrorCode::invalid_argument,
              fmt::format("--checks: given \"{}\", accepted are repeated, always and a number of "
                          "launches from 1 on",
                          given));
}

std::vector<std::string> orders(const std::string& given) {
  if (given == "all") return {"forward", "reverse", "random:1"};
  try {
    (void)simt::ThreadOrder::parse(given);
  } catch (const Error&) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("--order: given \"{}\", accepted are forward, reverse, random, "
                            "random:SEED and all (forward, reverse and random:1 in turn)",
                            printable(given)));
  }
  return {given};
}

Outcome run_once(const Options& options, const std::string& program,
                 const std::vector<std::string>& arguments, const std::string& order,
                 const std::string& folder) {
  const std::string report = folder + "/report";
  for (const std::string& old : report_files(report)) {
    std::filesystem::remove(old);
    std::filesystem::remove(old + ".texts");
  }
  // Objects of a prebuilt program register the paths of their sources.
  const bool built = emulate::is_built(options.sources.files.front());
  const std::string sources = built ? "" : std::filesystem::path(program).parent_path().string();
  std::vector<std::string> command = {program};
  command.insert(command.end(), arguments.begin(), arguments.end());
  const auto flag = [](bool on) { return std::string(on ? "1" : "0"); };
  std::vector<std::pair<std::string, std::string>> variables = {
      {"RUNG_SIMT_ORDER", order},
      {"RUNG_EMULATE_REPORT", report},
      {"RUNG_EMULATE_SOURCES", sources},
      {"RUNG_EMULATE_CAPABILITY", std::to_string(options.sources.capability)},
      {"RUNG_EMULATE_TELL_LATER", flag(options.order == "all")},
      {"RUNG_EMULATE_CHECKS", flag(!options.no_checks)},
      {"RUNG_EMULATE_STREAMS", flag(!options.no_streams)},
      {"RUNG_EMULATE_COUNTERS", flag(options.counts())},
      {"RUNG_EMULATE_RECORDED_LAUNCHES", options.checks},
      {"RUNG_EMULATE_LEAKS", flag(options.leaks)},
      {"RUNG_EMULATE_DEVICES", std::to_string(options.devices)}};
  if (options.threads > 0) {
    variables.emplace_back("OMP_NUM_THREADS", std::to_string(options.threads));
  }
  const emulate::Ending ending = emulate::run_program(command, variables, options.timeout);
  if (ending.timed_out) {
    fmt::print(stderr, "rung: the program did not end within {} and was stopped\n",
               count_of(fmt::format("{}", options.timeout), "second"));
    // SIGPIPE from a closed pipe, as with `| head`, is not a failure of the program.
  } else if (ending.signal != 0 && ending.signal != SIGPIPE && emulate::interrupted() == 0) {
    fmt::print(stderr, "rung: the program was ended by signal {} ({})\n", ending.signal,
               strsignal(ending.signal));
    if (ending.signal == SIGKILL) fmt::print(stderr, "rung: perhaps for want of memory\n");
  }
  Outcome outcome = read_outcomes(report);
  outcome.exit_code = ending.exit_code;
  return outcome;
}

/// Adds bound and roofline for the chip, computed from the counters.
void add_chip(const Options& options, nlohmann::ordered_json& kernels) {
  const bench::Gpu* const gpu = find_gpu(options.gpu, options.sources.capability);
  add_occupancy(kernels, options.sources.capability, gpu != nullptr ? gpu->multiprocessors : 0);
  add_roofline(kernels, gpu);
  add_bound(kernels, gpu);
}

void write_json(const Options& options, const nlohmann::ordered_json& report) {
  constexpr auto utf8 = nlohmann::ordered_json::error_handler_t::replace;
  if (options.json.empty()) return;
  write_text_file(options.json, report.dump(-1, ' ', false, utf8) + "\n");
}

void tell_counts(const Options& options, const Outcome& outcome) {
  auto report = nlohmann::ordered_json::parse(
      fmt::format("{{\"exit_code\":{},{}}}", outcome.exit_code, outcome.fields));
  nlohmann::ordered_json& kernels = report.at("kernels");
  add_chip(options, kernels);
  write_json(options, report);
  if (options.counters) fmt::print("{}", kernel_summary(kernels));
  if (options.annotate) fmt::print("{}", annotate(kernels, options.sources.files));
}

int run_in_folder(const Options& options) {
  const emulate::TemporaryFolder folder;
  std::string place = folder.path();
  if (!options.keep.empty()) {
    std::filesystem::create_directories(options.keep);
    place = options.keep;
  }
  if (options.build) {
    emulate::build(options.sources, place);
    return exit_good;
  }
  const std::string& first = options.sources.files.front();
  const bool built = emulate::is_built(first);
  if (built && options.sources.files.size() > 1) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{} is a program: given {}, accepted is the program alone",
                            printable(first), count_of(options.sources.files.size(), "file")));
  }
  const std::string program =
      built ? std::filesystem::absolute(first).string() : emulate::compile(options.sources, place);
  Outcome worst;
  OrderedFindings merged;
  // Runs the orders one after another, for a program that must be correct under each.
  for (const std::string& order : orders(options.order)) {
    Outcome outcome = run_once(options, program, words_behind(), order, folder.path());
    if (options.order == "all") {
      outcome.texts.insert(outcome.texts.end(), outcome.notes.begin(), outcome.notes.end());
      merged.add(order, outcome.exit_code, outcome.parsed().at("findings"), outcome.texts);
    }
    const bool failed = outcome.exit_code != 0, failed_before = worst.exit_code != 0;
    const bool worse =
        failed != failed_before ? failed : outcome.findings != 0 && worst.findings == 0;
    if (worse || worst.fields.empty()) worst = outcome;
    if (emulate::interrupted() != 0) break;
  }
  if (options.order == "all") {
    fmt::print(stderr, "{}", merged.text());
    worst.findings = merged.size();
    nlohmann::ordered_json report = worst.parsed();
    report["findings"] = merged.json();
    worst.take(report);
  }
  if (options.counts()) tell_counts(options, worst);
  if (options.fix) {
    const auto sources = built ? std::vector<std::string>{} : options.sources.files;
    for (const std::string& note : write_fixed(worst.parsed().at("findings"), sources)) {
      fmt::print(stderr, "rung: {}\n", note);
    }
  }
  return worst.findings != 0 ? exit_findings : worst.exit_code;
}

/// Compiles and runs the program with one value per macro.
SweepRun run_swept(Options options, const SweptValues& values,
                   const std::vector<std::string>& definitions) {
  options.sources.definitions.insert(options.sources.definitions.end(), definitions.begin(),
                                     definitions.end());
  SweepRun run{.values = values};
  fmt::print(stderr, "rung: {}\n", printable(fmt::format("{}", fmt::join(definitions, ", "))));
  try {
    const emulate::TemporaryFolder folder;
    const std::string program = emulate::compile(options.sources, folder.path());
    const Outcome outcome =
        run_once(options, program, words_behind(), options.order, folder.path());
    nlohmann::ordered_json report = outcome.parsed();
    run.exit_code = outcome.exit_code;
    run.findings = std::move(report.at("findings"));
    run.kernels = std::move(report.at("kernels"));
    add_chip(options, run.kernels);
  } catch (const Error& error) {
    run.error = error.what();
    run.exit_code = exit_code(error.code());
  }
  return run;
}

int run_sweep(const Options& options) {
  const emulate::HeldSignals held;
  const std::vector<SweptMacro> macros = parse_sweeps(options.sweeps, options.sources.definitions);
  std::vector<SweepRun> runs;
  for (const SweptValues& values : combinations(macros)) {
    runs.push_back(run_swept(options, values, definitions_of(macros, values)));
    if (const int signal = emulate::interrupted(); signal != 0) return 128 + signal;
  }
  write_json(options, sweep_json(macros, runs));
  fmt::print("{}", sweep_text(macros, runs));
  return sweep_exit_code(runs, exit_findings);
}

/// Throws for options that do not combine with a sweep.
void check_sweep(const Options& options) {
  (void)parse_sweeps(options.sweeps, options.sources.definitions);
  const std::pair<const char*, bool> others[] = {
      {"--build", options.build},       {"--order all", options.order == "all"},
      {"--annotate", options.annotate}, {"--counters", options.counters},
      {"--fix", options.fix},           {"--keep", !options.keep.empty()}};
  for (const auto& [name, given] : others) {
    if (!given) continue;
    throw Error(ErrorCode::invalid_argument,
                fmt::format("--sweep: given with {}; accepted: one of the two", name));
  }
  if (emulate::is_built(options.sources.files.front())) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("--sweep: given with {}, a program that is compiled already; "
                            "accepted: its sources",
                            printable(options.sources.files.front())));
  }
}

/// Throws for nvcc's options that name an output file: a program that is run leaves none.
void expect_no_product(const emulate::Sources& sources) {
  const std::pair<const char*, bool> products[] = {
      {"-o", !sources.output.empty()}, {"-c", sources.object_only}, {"-shared", sources.shared}};
  for (const auto& [option, given] : products) {
    if (!given) continue;
    throw Error(
        ErrorCode::invalid_argument,
        fmt::format("{0}: `rung emulate` runs the program and leaves no file; `rung nvcc {0}` "
                    "writes one",
                    option));
  }
}

int run(Options& options) {
  if (options.toolchain) {
    fmt::print("{}\n", emulate::toolchain_file());
    return exit_good;
  }
  read_emulate_words(options.words, options.sources);
  if (!options.build) {
    expect_no_product(options.sources);
    options.sources.dependencies.clear();
  }
  if (options.sources.files.empty()) {
    throw Error(ErrorCode::invalid_argument, "rung emulate: no source file given");
  }
  (void)orders(options.order);
  check_report_path(options.json);
  if (!options.sweeps.empty()) check_sweep(options);
  require_checks(options.checks);
  const bench::Gpu* const gpu = find_gpu(options.gpu, 90);
  options.sources.capability =
      options.capability.empty() ? gpu->compute_capability : parse_capability(options.capability);
  options.sources.watched = !options.no_checks || options.counts();
  // The version without hooks is compiled at the same time, by a second core.
  options.sources.twice = options.sources.watched && options.checks != "always" &&
                          std::thread::hardware_concurrency() > 1;
  if (options.branches && !options.counts()) {
    throw Error(ErrorCode::invalid_argument,
                "--branches: counts for --json, --counters or --annotate, none of which is given");
  }
  if (options.counts()) {
    // Without this, a tail call of a hook would report the caller's address.
    options.sources.options.insert(options.sources.options.end(),
                                   {"-fsanitize-coverage=trace-pc", "-fno-optimize-sibling-calls"});
  }

  try {
    return options.sweeps.empty() ? run_in_folder(options) : run_sweep(options);
  } catch (const std::exception&) {
    // No message: the sender of the signal knows of it, and a closed pipe accepts none.
    if (const int signal = emulate::interrupted(); signal != 0) return 128 + signal;
    throw;
  }
}

CommandSpec::Action setup(Parser app) {
  auto options = std::make_shared<Options>();
  app.add_option("-I", options->sources.include, "folder of headers")
      .type_name("FOLDER")
      .word_by_word();
  app.add_option("-D", options->sources.definitions, "macro")
      .type_name("NAME[=VALUE]")
      .word_by_word();
  app.add_option("--sweep", options->sweeps,
                 "compile and run once per value of a macro, and compare; given twice, once per "
                 "combination")
      .type_name("NAME=V1,V2,...")
      .word_by_word();
  app.add_option("--json", options->json, "write findings and counters here").type_name("FILE");
  app.add_flag("--counters", options->counters, "print what each kernel did");
  app.add_flag("--annotate", options->annotate, "print the source with the counts of each line");
  app.add_flag("--branches", options->branches, "of no effect: branches are counted anyway");
  app.add_option("--order", options->order,
                 "of threads and blocks: forward, reverse, random, random:SEED, or all in turn")
      .completes([](const Completing&) {
        return std::vector<std::string>{"forward", "reverse", "random:", "all"};
      });
  app.add_option("--compute-capability", options->capability,
                 "of the simulated GPU; default that of --gpu, or 9.0");
  app.add_option("--gpu", options->gpu,
                 "whose peaks bound each kernel in --counters: " + bench::published_gpu_names())
      .type_name("NAME");
  app.add_option("--checks", options->checks,
                 "which launches are checked: repeated leaves out most that repeat others, N all "
                 "that repeat one of N others, always none")
      .type_name("repeated|N|always");
  app.add_flag("--no-checks", options->no_checks, "look for no races and bad accesses: faster");
  app.add_flag("--no-streams", options->no_streams,
               "do not check whether streams, events and waits of the host order their work");
  app.add_flag("--leaks", options->leaks, "memory that is never freed is a finding");
  app.add_flag("--fix", options->fix,
               "make the changes that findings advise: NAME.cu stays as it is, NAME.fixed.cu has "
               "them");
  app.add_option("--timeout", options->timeout,
                 "seconds that the program may run, compiling apart, before it is stopped")
      .not_negative();
  app.add_option("--threads", options->threads, "CPU threads; default: every core")
      .between(0, 4096);  // 0: every core, as in nvcc --threads=0
  app.add_option("--devices", options->devices, "GPUs that the program finds; default 1")
      .between(1, 64);
  app.add_flag(
      "--build", options->build,
      "compile and link as nvcc does, to the file of -o, with -c to an object; run nothing");
  app.add_flag("--toolchain-file", options->toolchain,
               "print the path of a toolchain file for CMake, which builds by --build");
  app.add_option("--keep", options->keep, "keep the rewritten sources in this folder");
  app.leave_unknown();
  app.purpose(
      "Compiles an ordinary CUDA C++ program with the system's g++ and runs it on the simulated "
      "GPU; neither a GPU nor a CUDA toolkit is needed. While it runs its kernels are checked: "
      "data races, accesses out of bounds, reads of uninitialized memory, misused barriers and "
      "more are findings, printed on standard error with their lines and what to change. "
      "Sources are .cu and .cpp files, or a program that --build has linked. Options of nvcc may "
      "appear among them; those that concern only the chip (-arch=sm_90) have no effect. What "
      "follows -- is for the program. "
      "examples/cuda (installed in share/doc/rung) has small programs to try, right (histogram.cu) "
      "and with a planted bug each (histogram_bug.cu).");
  app.example("rung emulate saxpy.cu", "compile, run and check");
  app.example("rung emulate --order all saxpy.cu",
              "under three orders of threads and blocks, each of which must be right");
  app.example("rung emulate --order random:7 main.cu kernels.cu -I include -- --size 1024",
              "two sources, a folder of headers; --size 1024 is the program's");
  app.example("rung emulate --counters --annotate transpose.cu",
              "sectors, bank conflicts and divergence of each kernel and each line");
  app.example("rung emulate --sweep TILE_WIDTH=8,16,32 matrix_multiply_tiled.cu",
              "how bytes, occupancy and bound move with the tile");
  app.example("rung emulate --json report.json --timeout 60 -lcublas gemm.cu",
              "findings and counters for a script; stopped after a minute");
  app.example("rung emulate --fix race.cu",
              "writes race.fixed.cu, with the advice followed where a program can");
  app.example("cmake --toolchain $(rung emulate --toolchain-file) -S . -B build",
              "configure a CMake project for the simulated GPU; rung emulate build/app runs it");
  app.exit_codes({{exit_good, "the program returned 0, and nothing was found"},
                  {exit_usage, "the command line is wrong, or a source does not compile"},
                  {exit_not_here, "a source uses what the simulator does not support"},
                  {exit_findings, "something was found, whatever the program returned"},
                  {exit_timed_out, "--timeout has stopped the program"}});
  app.footer(
      "Any other exit code is the program's own, or 128 + N where signal N ended it. A program "
      "may return one of those above, too; --json keeps both apart.");
  return [options, app] {
    options->words = app.unread();
    return run(*options);
  };
}

const Command self{{.name = "emulate",
                    .order = 60,
                    .summary = "run a CUDA program on the simulated GPU",
                    .setup = setup}};

}  // namespace
}  // namespace rung::workbench
