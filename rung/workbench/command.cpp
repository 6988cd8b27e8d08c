// SPDX-License-Identifier: Apache-2.0
// The program around the commands: parses the command line, runs a command, and turns every error
// into a message and an exit code.
#include "rung/workbench/command.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <exception>
#include <memory>
#include <new>
#include <system_error>

#include "rung/core/tensor_ref.hpp"
#include "rung/workbench/cli.hpp"
#include "rung/workbench/output.hpp"
#include "rung/workbench/selection.hpp"
#include "rung/workbench/terminal.hpp"

namespace rung::workbench {
namespace {

constexpr const char* introduction =
    "rung: parallel kernels as ladders. Every operator (a matrix product, say) is a ladder: "
    "implementations from the textbook loop to the fastest known, each one a rung in a file of its "
    "own. This program lists the rungs, checks them against a double-precision oracle, and times "
    "them beside the vendors' libraries and the limits of this machine.";

constexpr std::pair<const char*, const char*> examples[] = {
    {"rung list gemm", "the ladder of the matrix product"},
    {"rung check gemm", "is every rung right?"},
    {"rung bench gemm \"f32 1024x1024x1024\"", "how fast is each, and how fast could it be?"},
    {"rung explain gemm", "what did each step change? counted, no GPU needed"},
    {"rung run gemm a.npy b.npy -o c.npy", "use it on files that NumPy wrote"},
};

constexpr const char* environment =
    "Text is as wide as the terminal (or COLUMNS); a file or a pipe gets 100 columns. NO_COLOR "
    "switches color off and FORCE_COLOR on, as --color does.\n"
    "`rung COMMAND --help` and `rung help COMMAND` tell more about one command.";

/// Head of the list of commands; constinit, so that registration order does not matter.
constinit const Command* first_command = nullptr;

std::vector<std::string> behind;

/// Adapter of the help text to CLI11's formatter interface, for -h anywhere on the command line.
class Formatter : public CLI::FormatterBase {
 public:
  std::string make_help(const CLI::App* app, std::string, CLI::AppFormatMode) const override {
    return help_text(*app);
  }
};

std::string version_text() {
  std::string text = fmt::format("rung {}", RUNG_VERSION);
  for (const Backend backend : all_backends) {
    const Availability here = available(backend);
    text += fmt::format("\n{:<5} {}", to_string(backend),
                        here ? "available" : "not available: " + here.why);
  }
  return text;
}

int report_error(std::string_view message, int code) {
  fmt::print(stderr, "{} {}\n", toned(Tone::bad, "rung:", STDERR_FILENO), message);
  return code;
}

/// Returns the option that `word` names within the commands from `begin` on; null: none.
const CLI::Option* option_named(const CLI::App& program, const char* const* begin,
                                const char* const* word) {
  const CLI::App* app = &program;
  for (const char* const* one = begin + 1; one < word; ++one) {
    const auto below =
        app->get_subcommands([&](const CLI::App* command) { return command->get_name() == *one; });
    if (!below.empty()) app = below.front();
  }
  return **word == '-' ? app->get_option_no_throw(*word) : nullptr;
}

/// Throws for an empty word, most often an empty variable of a script. CLI11 treats it as a missing
/// value, and the command would run with its default: everything. `emulate` parses its words
/// itself.
void expect_no_empty_word(const CLI::App& program, const char* const* begin,
                          const char* const* end) {
  const auto is_empty = [](const char* word) {
    return std::string_view(word).find_first_not_of(' ') == std::string_view::npos;
  };
  const char* const* const found = std::find_if(begin, end, is_empty);
  if (found == end || found == begin || std::string_view(begin[1]) == "emulate") return;
  const CLI::Option* const option = option_named(program, begin, found - 1);
  if (option != nullptr && option->get_required()) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{}: '{}' given, an empty word; accepted: a {}", found[-1], *found,
                            option->get_type_name()));
  }
  throw Error(ErrorCode::invalid_argument,
              fmt::format("'{}' given behind '{}', an empty word; leave {} out for the default",
                          *found, found[-1], option != nullptr ? "both" : "it"));
}

/// A flag that becomes another option if a file name follows: --json=FILE, or --json FILE.json. A
/// problem may follow too, but does not end in .json.
struct FileFlag {
  std::string_view command, flag, option;
};
constexpr FileFlag file_flags[] = {{"bench", "--json", "--output"}};

/// Returns the words of the command line with file flags replaced by the option names that CLI11
/// knows.
std::vector<std::string> with_file_options(const char* const* begin, const char* const* end) {
  std::vector<std::string> words(begin, end);
  if (words.size() < 2) return words;
  for (const auto& [command, flag, option] : file_flags) {
    if (words[1] != command) continue;
    for (std::size_t i = 2; i < words.size(); ++i) {
      if (words[i].starts_with(std::string(flag) + '=')) {
        words[i].replace(0, flag.size(), option);
      } else if (words[i] == flag && i + 1 < words.size() && words[i + 1].ends_with(".json")) {
        words[i] = option;
      }
    }
  }
  return words;
}

/// Reports a failed write to standard output, on the first call only; returns the exit code.
int report_output(std::error_code why) {
  static bool told = false;
  if (told) return exit_failed;
  told = true;
  return report_error("standard output cannot be written" + (why ? ": " + why.message() : ""),
                      exit_failed);
}

}  // namespace

ExitCode exit_code(ErrorCode code) noexcept {
  switch (code) {
    case ErrorCode::invalid_argument:
    case ErrorCode::io:
      return exit_usage;
    case ErrorCode::unsupported:
    case ErrorCode::not_available:
    case ErrorCode::out_of_memory:
      return exit_not_here;
    case ErrorCode::device:
    case ErrorCode::internal:
      break;
  }
  return exit_failed;
}

Command::Command(const CommandSpec& described) : spec(described), next_(first_command) {
  first_command = this;
}

std::vector<const Command*> commands() {
  std::vector<const Command*> all;
  for (const Command* one = first_command; one != nullptr; one = one->next_) all.push_back(one);
  std::sort(all.begin(), all.end(),
            [](const Command* a, const Command* b) { return a->spec.order < b->spec.order; });
  return all;
}

const std::vector<std::string>& words_behind() { return behind; }

void add_common_options(CLI::App& app) {
  app.set_help_flag("-h,--help", "print this help");
  std::vector<std::string> words{"auto", "always", "never"};
  app.add_option_function<std::string>(
         "--color",
         [words](const std::string& when) {
           const auto found = std::find(words.begin(), words.end(), when);
           if (found == words.end()) {
             throw CLI::ValidationError("--color",
                                        fmt::format("'{}' given; accepted: {}", when, join(words)));
           }
           choose_color(static_cast<Color>(found - words.begin()));
         },
         "color the output: auto (default: on a terminal), always or never")
      ->type_name("WHEN")
      ->group("common");
  details(app.get_option("--color")).candidates = [words](const Completing&) { return words; };
}

Program::Program() : app(introduction, "rung") {
  forget_details();
  app.formatter(std::make_shared<Formatter>());
  app.require_subcommand(1);
  add_common_options(app);
  app.set_version_flag("-v,--version", version_text, "print the version and what can run here");
  CommandDetails& more = details(&app);
  more.purpose = introduction;
  for (const auto& [command, comment] : examples) more.examples.emplace_back(command, comment);
  more.exit_codes = {{exit_good, "good"},
                     {exit_failed, "a check failed"},
                     {exit_usage, "the command line or a file is wrong"},
                     {exit_not_here, "right, but not available here; the message says why"}};
  for (const Command* command : commands()) {
    CLI::App* one = app.add_subcommand(command->spec.name, command->spec.summary);
    if (*command->spec.summary == '\0') one->group("");
    add_common_options(*one);
    actions.emplace_back(one, command->spec.setup(Parser(one)));
  }
  app.footer(environment);  // last: commands added later would inherit it
}

/// Returns the command named by the first word if it parses its words itself, else null.
static const Command* command_of_words(int argc, const char* const* argv) {
  if (argc < 2) return nullptr;
  const bool help =
      argc == 3 && (std::string_view(argv[2]) == "--help" || std::string_view(argv[2]) == "-h");
  for (const Command* one : commands()) {
    if (one->spec.run_words != nullptr && one->spec.name == std::string_view(argv[1])) {
      return help ? nullptr : one;
    }
  }
  return nullptr;
}

int run_program(int argc, const char* const* argv) {
  try {
    const char* const* const end = argv + argc;
    const char* const* const dashes =
        std::find_if(argv, end, [](const char* word) { return std::string_view(word) == "--"; });
    behind.assign(std::min(dashes + 1, end), end);
    choose_color(Color::automatic);
    if (const Command* const command = command_of_words(argc, argv)) {
      return command->spec.run_words({argv + 2, argv + argc});
    }
    Program program;
    expect_no_empty_word(program.app, argv, dashes);
    try {
      const std::vector<std::string> words = with_file_options(argv, dashes);
      std::vector<const char*> pointers;
      pointers.reserve(words.size());
      for (const std::string& word : words) pointers.push_back(word.c_str());
      program.app.parse(static_cast<int>(pointers.size()), pointers.data());
    } catch (const CLI::CallForVersion&) {
      fmt::print("{}\n", version_text());
      return exit_good;
    } catch (const CLI::Success& help_requested) {
      return program.app.exit(help_requested);
    } catch (const CLI::ParseError& error) {
      return report_usage(program.app, error);
    }
    for (const auto& [app, action] : program.actions) {
      if (app->parsed()) return action();
    }
    return exit_usage;
  } catch (const Error& error) {
    return report_error(error.what(), exit_code(error.code()));
  } catch (const std::bad_alloc&) {
    return report_error("out of memory", exit_not_here);
  } catch (const std::system_error& error) {
    if (std::ferror(stdout) == 0) return report_error(error.what(), exit_failed);
    return report_output(error.code());  // thrown by fmt::print()
  } catch (const std::exception& error) {
    return report_error(error.what(), exit_failed);
  }
}

int end_output(int code) {
  const bool failed = std::ferror(stdout) != 0;
  if (std::fflush(stdout) != 0) {
    report_output({errno, std::generic_category()});
  } else if (!failed) {
    return code;
  } else {
    report_output({});
  }
  return code == exit_good ? exit_failed : code;
}

}  // namespace rung::workbench
