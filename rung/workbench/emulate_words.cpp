// SPDX-License-Identifier: Apache-2.0
// Parses sources and nvcc's options among the words of `rung emulate`.
#include "rung/workbench/emulate_words.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <sstream>
#include <string_view>

#include "rung/core/error.hpp"
#include "rung/core/text.hpp"
#include "rung/emulate/nvcc_words.hpp"
#include "rung/emulate/token.hpp"

namespace rung::workbench {
namespace {

/// Returns true for libraries that the emulated runtime replaces.
bool is_runtime(std::string_view library) {
  constexpr std::string_view ours[] = {"-lcudart", "-lcudart_static", "-lcuda",    "-lcudadevrt",
                                       "-lcurand", "-lcublas",        "-lcublasLt"};
  return std::find(std::begin(ours), std::end(ours), library) != std::end(ours);
}

void expect_macro(const std::string& definition) {
  const std::string name = definition.substr(0, definition.find_first_of("(="));
  const bool word = !name.empty() && std::all_of(name.begin(), name.end(), emulate::in_word) &&
                    (name.front() < '0' || name.front() > '9');
  if (word && definition.find('\n') == std::string::npos) return;
  throw Error(ErrorCode::invalid_argument,
              fmt::format("-D: '{}' given; accepted: NAME or NAME=VALUE, in one line",
                          printable(definition)));
}

class WordReader {
 public:
  WordReader(const std::vector<std::string>& words, emulate::Sources& sources)
      : words_(words), sources_(sources) {}

  void read() {
    for (; at_ < words_.size(); ++at_) {
      const std::string& word = words_[at_];
      if (word.size() > 1 && word[0] == '-') {
        read_option(word);
      } else {
        read_file(word);
      }
    }
  }

 private:
  void read_file(const std::string& file) {
    constexpr std::string_view sources[] = {".cu", ".cuh", ".cpp", ".cc", ".cxx",
                                            ".C",  ".c",   ".o",   ".a",  ".so"};
    constexpr std::pair<std::string_view, std::string_view> others[] = {
        {".cl", "OpenCL C"}, {".metal", "Metal"},   {".hip", "HIP"},
        {".ptx", "PTX"},     {".cubin", "a cubin"}, {".comp", "a compute shader"},
        {".hlsl", "HLSL"},   {".ispc", "ISPC"},     {".py", "Python"}};
    const std::string ending = std::filesystem::path(file).extension().string();
    for (const auto& [one, language] : others) {
      if (ending != one) continue;
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("{} is {}: `rung emulate` runs CUDA C++, in files .cu",
                              printable(file), language));
    }
    if (emulate::is_built(file)) {
      sources_.files.push_back(file);
      return;
    }
    const auto is_known = [&](const std::string& one) {
      return std::find(std::begin(sources), std::end(sources),
                       std::filesystem::path(one).extension().string()) != std::end(sources);
    };
    if (!sources_.all_cuda && !is_known(file)) {
      const auto source = std::find_if(words_.begin(), words_.end(), is_known);
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("{0}: a source ends with .cu, .cuh, .cpp, .cc, .cxx or .c, an object "
                              "with .o, .a or .so (-x cu takes any for CUDA){1}",
                              file.empty() ? "''" : printable(file),
                              source == words_.end()
                                  ? ""
                                  : "; arguments for the program follow --: rung emulate " +
                                        printable(*source) + " -- " + printable(file)));
    }
    sources_.files.push_back(as_path(file));
  }

  /// Returns the file name in a form that the compiler does not read as a response file (@name).
  static std::string as_path(const std::string& file) {
    return file.starts_with('@') ? "./" + file : file;
  }

  /// Returns the value of an option, after = or in the next word.
  std::string value_of(const std::string& word) {
    std::string value;
    if (const std::size_t equals = word.find('='); equals != std::string::npos) {
      value = word.substr(equals + 1);
    } else if (at_ + 1 < words_.size()) {
      value = words_[++at_];
    }
    if (value.empty()) {
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("{}: its value is missing", printable(word)));
    }
    return value;
  }

  void pass(const std::string& option) { sources_.options.push_back(option); }

  void read_option(const std::string& word) {
    const std::string name = word.substr(0, word.find('='));
    if (name == "-std" || name == "--std") {
      pass("-std=" + value_of(word));
    } else if (name == "-x" || name == "--x") {
      const std::string language = value_of(word);
      if (language != "cu") {
        throw Error(ErrorCode::invalid_argument,
                    fmt::format("-x: given \"{}\", accepted is cu", language));
      }
      sources_.all_cuda = true;
    } else if (name == "-isystem" || name == "-iquote" || name == "-include" ||
               name == "--pre-include") {
      const std::string value = value_of(word);
      pass(name == "--pre-include" ? "-include" : name);
      pass(as_path(value));
    } else if (word.starts_with("-isystem")) {
      pass("-isystem");
      pass(word.substr(8));
    } else if (name == "-Xcompiler" || name == "--compiler-options") {
      std::stringstream list(value_of(word));
      for (std::string one; std::getline(list, one, ',');) {
        if (!one.empty()) pass(one);
      }
    } else if (name == "-o" || name == "--output-file") {
      sources_.output = value_of(word);
    } else if (word == "-c" || word == "-dc" || word == "--compile" || word == "--device-c") {
      sources_.object_only = true;
    } else if (word == "-shared" || word == "--shared") {
      sources_.shared = true;
    } else if (word == "-MD" || word == "-MMD" || word == "-MP") {
      sources_.dependencies.push_back(word);
    } else if (word == "-MF" || word == "-MT" || word == "-MQ") {
      const std::string value = value_of(word);
      sources_.dependencies.insert(sources_.dependencies.end(), {word, value});
    } else if (word.starts_with("-Wl,")) {
      sources_.libraries.push_back(word);
    } else if (word == "-l" || word == "-L") {
      const std::string value = value_of(word);
      if (!is_runtime(word + value)) sources_.libraries.push_back(word + value);
    } else if ((word.starts_with("-l") || word.starts_with("-L")) &&
               !emulate::nvcc_option_kind(name).known) {  // not a library: -lineinfo, for example
      if (!is_runtime(word)) sources_.libraries.push_back(word);
    } else if (word == "-w" || word == "--disable-warnings") {
      pass("-w");
    } else if (word.starts_with("-O") && word.size() <= 3) {
      pass(word);
    } else {
      read_other(word, name);
    }
  }

  /// Parses any other option: nvcc's, which has no effect here, or the host compiler's.
  void read_other(const std::string& word, const std::string& name) {
    const emulate::NvccOptionKind kind = emulate::nvcc_option_kind(name);
    if (kind.known && kind.has_effect) {
      throw Error(
          ErrorCode::invalid_argument,
          fmt::format("{}: an option of nvcc's that `rung emulate` has no use for, since it "
                      "runs the program; `rung nvcc` builds objects, libraries and programs",
                      printable(word)));
    }
    if (name == "-default-stream" || name == "--default-stream") {
      const std::string macro = emulate::macro_of_default_stream(value_of(word));
      if (!macro.empty()) sources_.definitions.push_back(macro);
      return;
    }
    if (kind.known) {
      const std::string value = kind.takes_value ? value_of(word) : "";
      const bool relocatable = name == "-rdc" || name == "--relocatable-device-code";
      if (relocatable && value == "true") sources_.definitions.emplace_back("__CUDACC_RDC__=1");
      return;
    }
    if (word == "-pthread" || word.starts_with("-f") || word.starts_with("-W") ||
        word.starts_with("-U")) {
      pass(word);
    } else if (!word.starts_with("-arch") && !word.starts_with("-t")) {  // -arch=..., -t8
      throw Error(
          ErrorCode::invalid_argument,
          fmt::format("{}: neither `rung emulate` nor nvcc has such an option (rung emulate "
                      "--help lists them; -- goes in front of the program's own)",
                      printable(word)));
    }
  }

  const std::vector<std::string>& words_;
  emulate::Sources& sources_;
  std::size_t at_ = 0;
};

}  // namespace

void read_emulate_words(const std::vector<std::string>& words, emulate::Sources& sources) {
  // A bare "-D" would make the compiler take its next option as the macro, a bare "-I" as the
  // folder.
  for (const std::string& one : sources.definitions) expect_macro(one);
  for (const std::string& folder : sources.include) {
    if (!folder.empty()) continue;
    throw Error(ErrorCode::invalid_argument, "-I: '' given; accepted: a folder of headers");
  }
  // -x cu applies to all files, including earlier ones.
  for (std::size_t i = 0; i < words.size(); ++i) {
    sources.all_cuda |= words[i] == "-x" && i + 1 < words.size() && words[i + 1] == "cu";
  }
  WordReader(words, sources).read();
}

}  // namespace rung::workbench
