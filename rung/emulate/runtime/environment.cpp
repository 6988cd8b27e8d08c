// SPDX-License-Identifier: Apache-2.0
// Reads RUNG_EMULATE before the rest of the runtime is initialized.
#include "rung/emulate/runtime/environment.hpp"

#include <omp.h>
#include <unistd.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <sstream>
#include <string_view>

namespace rung::cuda {
namespace {

constexpr const char* accepted =
    "--order forward|reverse|random:SEED, --checks repeated|N|always, --no-checks, --leaks, "
    "--devices N, --threads N, --compute-capability X.Y, --json FILE, --exit-code N";

[[noreturn]] void refuse(const std::string& word, const char* why) {
  std::fprintf(stderr, "rung: RUNG_EMULATE: '%s' given, %s; accepted: %s\n", word.c_str(), why,
               accepted);
  std::fflush(stderr);
  _exit(2);
}

void set(const char* name, const std::string& value) { setenv(name, value.c_str(), 1); }

/// Parser of the words of RUNG_EMULATE. A value follows a blank or =.
class WordReader {
 public:
  WordReader(const std::string& text, ProgramOptions& options) : options_(options) {
    std::istringstream words(text);
    for (std::string word; words >> word;) read(word, words);
  }

 private:
  void read(const std::string& word, std::istringstream& words) {
    const std::size_t equals = word.find('=');
    const std::string name = word.substr(0, equals);
    const auto value = [&] {
      std::string text = equals == std::string::npos ? "" : word.substr(equals + 1);
      if (equals == std::string::npos) words >> text;
      if (text.empty()) refuse(word, "without a value");
      return text;
    };
    const auto number = [&](int most) {
      const std::string text = value();
      const long given = std::strtol(text.c_str(), nullptr, 10);
      if (given < 1 || given > most) refuse(word, "whose value is out of range");
      return static_cast<int>(given);
    };
    if (name == "--order") {
      const std::string order = value();
      if (order == "all") refuse("--order all", "which takes several runs (rung emulate PROGRAM)");
      set("RUNG_SIMT_ORDER", order);
    } else if (name == "--checks") {
      set("RUNG_EMULATE_RECORDED_LAUNCHES", value());
    } else if (name == "--no-checks") {
      set("RUNG_EMULATE_CHECKS", "0");
    } else if (name == "--leaks") {
      set("RUNG_EMULATE_LEAKS", "1");
    } else if (name == "--devices") {
      set("RUNG_EMULATE_DEVICES", std::to_string(number(64)));
    } else if (name == "--threads") {
      omp_set_num_threads(number(4096));
    } else if (name == "--compute-capability") {
      const std::string given = value();
      const int tenths = static_cast<int>(std::lround(std::strtod(given.c_str(), nullptr) * 10));
      if (tenths < 60 || tenths > 129) refuse(word, "whose value is out of range");
      set("RUNG_EMULATE_CAPABILITY", std::to_string(tenths));
    } else if (name == "--json") {
      options_.json = value();
      set("RUNG_EMULATE_COUNTERS", "1");
    } else if (name == "--exit-code") {
      options_.exit_code = number(255);
    } else {
      refuse(word, "which is no option");
    }
  }

  ProgramOptions& options_;
};

ProgramOptions read_environment() {
  ProgramOptions options;
  options.under_emulate = std::getenv("RUNG_EMULATE_REPORT") != nullptr;
  if (options.under_emulate) return options;
  setenv("RUNG_EMULATE_CHECKS", "1", 0);
  const char* const given = std::getenv("RUNG_EMULATE");
  WordReader(given != nullptr ? given : "", options);
  return options;
}

// Runs before the constructors of the library's variables, which read the options.
[[gnu::constructor(101)]] void read_first() { (void)program_options(); }

}  // namespace

const ProgramOptions& program_options() {
  static const auto& options = *new ProgramOptions(read_environment());
  return options;
}

}  // namespace rung::cuda
