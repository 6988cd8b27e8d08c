// SPDX-License-Identifier: Apache-2.0
// Translates nvcc's command line for g++ and the linker.
#include "rung/emulate/nvcc_words.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <filesystem>
#include <iterator>

#include "rung/core/error.hpp"
#include "rung/core/text.hpp"
#include "rung/emulate/messages.hpp"
#include "rung/emulate/nvcc_options.hpp"

namespace rung::emulate {
namespace {

/// Splits an options file or an environment variable into words, as a shell does.
std::vector<std::string> split_words(const std::string& text) {
  std::vector<std::string> words;
  std::string word;
  bool inside = false;
  char quote = '\0';
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quote != '\0' ? c == quote : c == '"' || c == '\'') {
      quote = quote != '\0' ? '\0' : c;
      inside = true;
    } else if (c == '\\' && quote != '\'' && i + 1 < text.size()) {
      word += text[++i];
      inside = true;
    } else if (quote == '\0' && std::isspace(static_cast<unsigned char>(c)) != 0) {
      if (inside) words.push_back(word);
      word.clear();
      inside = false;
    } else {
      word += c;
      inside = true;
    }
  }
  if (inside) words.push_back(word);
  return words;
}

/// Splits a list at commas; "\," is an escaped comma.
std::vector<std::string> split_list(const std::string& text) {
  std::vector<std::string> parts(1);
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\\' && i + 1 < text.size() && text[i + 1] == ',') {
      parts.back() += text[++i];
    } else if (text[i] == ',') {
      parts.emplace_back();
    } else {
      parts.back() += text[i];
    }
  }
  std::erase(parts, "");
  return parts;
}

/// Returns true for libraries that the emulated runtime replaces.
bool is_runtime(std::string_view library) {
  constexpr std::string_view ours[] = {"cudart",  "cudart_static",   "cuda",     "cudadevrt",
                                       "curand",  "curand_static",   "cublas",   "cublas_static",
                                       "culibos", "cublasLt_static", "cublasLt", "nvToolsExt"};
  return std::find(std::begin(ours), std::end(ours), library) != std::end(ours);
}

/// Returns true for host compiler flags that are incompatible with rewritten sources.
bool is_harmful(std::string_view flag) {
  return flag.starts_with("-Werror") || flag.starts_with("-flto") || flag.starts_with("-O") ||
         flag.starts_with("-pedantic") || flag == "-g" || flag.starts_with("-ggdb") ||
         flag == "-g0" || flag == "-g3" || flag == "-static" || flag == "-rdynamic" ||
         flag == "-fno-rtti" || flag.starts_with("-Wno-error");
}

[[noreturn]] void refuse(const std::string& message) {
  throw Error(ErrorCode::invalid_argument, "nvcc: " + message);
}

class NvccReader {
 public:
  explicit NvccReader(NvccCall& call) : call_(call) {}

  void read(const std::vector<std::string>& words) {
    for (const std::string& word : words) forward_ |= is_forward(word);
    read_words(words);
    if (relocatable_) call_.sources.definitions.emplace_back("__CUDACC_RDC__=1");
    call_.sources.whole_program = !relocatable_;
    if (capability_ != 0) call_.sources.capability = std::clamp(capability_, 60, 129);
  }

 private:
  static bool is_forward(const std::string& word) {
    const NvccOption* const option = find_nvcc_option(word);
    return option != nullptr && option->effect == NvccEffect::forward_unknown;
  }

  void read_words(const std::vector<std::string>& words) {
    for (std::size_t at = 0; at < words.size(); ++at) {
      const std::string& word = words[at];
      if (word.size() < 2 || word[0] != '-') {
        read_file(word);
        continue;
      }
      const std::size_t equals = word.find('=');
      const NvccOption* option = find_nvcc_option(word.substr(0, equals));
      std::string value;
      bool valued = equals != std::string::npos;
      if (valued) value = word.substr(equals + 1);
      if (option == nullptr) {
        option = find_glued_nvcc_option(word);
        valued = option != nullptr;
        if (valued) value = word.substr(word[2] == '=' ? 3 : 2);
      }
      if (option == nullptr) {
        read_unknown(word);
        continue;
      }
      if (option->takes_value && !valued) {
        if (at + 1 == words.size())
          refuse(fmt::format("{}: its value is missing", printable(word)));
        value = words[++at];
      }
      apply(*option, word, value);
    }
  }

  void read_unknown(const std::string& word) {
    const bool of_host = word == "-pthread" || word.starts_with("-f") || word.starts_with("-W") ||
                         word.starts_with("-march") || word.starts_with("-mtune");
    if (!forward_ && !of_host) {
      refuse(
          fmt::format("'{}': nvcc has no such option (with -forward-unknown-to-host-compiler it "
                      "goes to g++)",
                      printable(word)));
    }
    host_option(word);
  }

  void host_option(const std::string& flag) {
    if (flag.starts_with("-Wl,")) {
      call_.sources.libraries.push_back(flag);
    } else if (flag.starts_with("-std=")) {
      set_standard(flag.substr(5));
    } else if (flag == "-m32") {
      refuse("-m32: the simulated GPU is a 64-bit one; accepted: -m64");
    } else if (!is_harmful(flag)) {
      call_.sources.options.push_back(flag);
    }
  }

  void set_standard(const std::string& standard) {
    std::erase_if(call_.sources.options,
                  [](const std::string& one) { return one.starts_with("-std="); });
    call_.sources.options.push_back("-std=" + standard);
  }

  void read_file(const std::string& file) {
    const std::string ending = std::filesystem::path(file).extension().string();
    if (ending == ".ptx" || ending == ".cubin" || ending == ".fatbin") {
      throw Error(ErrorCode::not_available,
                  fmt::format("nvcc: {}: the simulated GPU runs CUDA C++ alone, no PTX and no "
                              "machine code",
                              printable(file)));
    }
    // The compiler would read a file named @name as an options file.
    call_.sources.files.push_back(file.starts_with('@') ? "./" + file : file);
  }

  void read_architecture(const std::string& value) {
    // Formats: sm_90a, compute_80, 90; lists; arch=...,code=[...].
    for (std::size_t at = 0; at < value.size(); ++at) {
      if (std::isdigit(static_cast<unsigned char>(value[at])) == 0) continue;
      char* end = nullptr;
      capability_ = std::max<int>(capability_, std::strtol(value.c_str() + at, &end, 10));
      at = static_cast<std::size_t>(end - value.c_str());
    }
  }

  void read_options_file(const std::string& file) {
    if (++depth_ > 16) refuse(fmt::format("--options-file: {} names itself", printable(file)));
    for (const std::string& one : split_list(file)) {
      if (!std::filesystem::exists(one)) {
        refuse(fmt::format("--options-file: there is no file {}", printable(one)));
      }
      const std::vector<std::string> words = split_words(read_file_text(one));
      for (const std::string& word : words) forward_ |= is_forward(word);
      read_words(words);
    }
    --depth_;
  }
  static std::string read_file_text(const std::string& file) { return emulate::read_file(file); }

  void apply(const NvccOption& option, const std::string& word, const std::string& value) {
    using Product = NvccCall::Product;
    Sources& to = call_.sources;
    const bool all = !word.starts_with("-MM") && word.find("nonsystem") == std::string::npos;
    switch (option.effect) {
      case NvccEffect::nothing:
        break;
      case NvccEffect::include:
        for (const std::string& one : split_list(value)) to.include.push_back(one);
        break;
      case NvccEffect::system_include:
        for (const std::string& one : split_list(value)) {
          to.options.insert(to.options.end(), {"-isystem", one});
        }
        break;
      case NvccEffect::pre_include:
        for (const std::string& one : split_list(value)) {
          to.options.insert(to.options.end(), {"-include", one});
        }
        break;
      case NvccEffect::define:
        to.definitions.push_back(value);
        break;
      case NvccEffect::undefine:
        to.options.push_back("-U" + value);
        break;
      case NvccEffect::library:
        for (const std::string& one : split_list(value)) {
          if (!is_runtime(one)) to.libraries.push_back("-l" + one);
        }
        break;
      case NvccEffect::library_folder:
        for (const std::string& one : split_list(value)) to.libraries.push_back("-L" + one);
        break;
      case NvccEffect::output:
        to.output = value;
        break;
      case NvccEffect::output_folder:
        call_.output_folder = value;
        break;
      case NvccEffect::object:
        call_.product = Product::object;
        break;
      case NvccEffect::relocatable_object:
        call_.product = Product::object;
        relocatable_ = true;
        break;
      case NvccEffect::relocatable:
        relocatable_ = value == "true";
        break;
      case NvccEffect::device_link:
        call_.product = Product::device_link;
        break;
      case NvccEffect::archive:
        call_.product = Product::archive;
        break;
      case NvccEffect::preprocess:
        call_.product = Product::preprocessed;
        break;
      case NvccEffect::dependencies:
        call_.product = Product::dependencies;
        call_.dependencies_option = all ? "-M" : "-MM";
        break;
      case NvccEffect::write_dependencies:
        call_.writes_dependencies = true;
        to.dependencies.emplace_back(all ? "-MD" : "-MMD");
        break;
      case NvccEffect::phony_dependencies:
        to.dependencies.emplace_back("-MP");
        break;
      case NvccEffect::dependencies_file:
        call_.dependencies_file = value;
        break;
      case NvccEffect::dependencies_target:
        to.dependencies.insert(to.dependencies.end(), {"-MT", value});
        break;
      case NvccEffect::shared:
        to.shared = true;
        break;
      case NvccEffect::standard:
        set_standard(value);
        break;
      case NvccEffect::default_stream: {
        const std::string macro = macro_of_default_stream(value);
        if (!macro.empty()) to.definitions.push_back(macro);
        break;
      }
      case NvccEffect::host_options:
        for (const std::string& list : split_words(value)) {
          // -Wl,a,b is a single flag for g++, although nvcc splits lists at commas.
          if (list.starts_with("-Wl,")) {
            host_option(list);
            continue;
          }
          for (const std::string& one : split_list(list)) host_option(one);
        }
        break;
      case NvccEffect::linker_options:
        for (const std::string& one : split_list(value)) to.libraries.push_back("-Wl," + one);
        break;
      case NvccEffect::language:
        if (value != "cu" && value != "c++" && value != "c") {
          refuse(fmt::format("-x: '{}' given; accepted: cu, c++, c", printable(value)));
        }
        to.all_cuda = value == "cu";
        break;
      case NvccEffect::architecture:
        read_architecture(value);
        break;
      case NvccEffect::options_file:
        read_options_file(value);
        break;
      case NvccEffect::dry_run:
        call_.dry_run = true;
        break;
      case NvccEffect::verbose:
        to.verbose = true;
        break;
      case NvccEffect::keep:
        call_.keep = true;
        break;
      case NvccEffect::keep_folder:
        call_.keep_folder = value;
        break;
      case NvccEffect::version:
        call_.version = true;
        break;
      case NvccEffect::help:
        call_.help = true;
        break;
      case NvccEffect::warnings_off:
        to.options.emplace_back("-w");
        break;
      case NvccEffect::forward_unknown:
        forward_ = true;
        break;
      case NvccEffect::no_chip_code:
        throw Error(ErrorCode::not_available,
                    fmt::format("nvcc: {}: no PTX and no machine code are made for the simulated "
                                "GPU, which runs CUDA C++; accepted: -c, -shared, -lib, -E, or a "
                                "program",
                                word));
      case NvccEffect::run:
        throw Error(
            ErrorCode::not_available,
            fmt::format("nvcc: {} is not supported; build a program, and start that", word));
    }
  }

  NvccCall& call_;
  bool forward_ = false, relocatable_ = false;
  int capability_ = 0, depth_ = 0;
};

}  // namespace

std::string macro_of_default_stream(const std::string& value) {
  if (value == "per-thread") return "CUDA_API_PER_THREAD_DEFAULT_STREAM=1";
  if (value == "legacy" || value == "null") return "";
  throw Error(ErrorCode::invalid_argument,
              fmt::format("--default-stream: '{}' given; accepted: legacy, null, per-thread",
                          printable(value)));
}

NvccCall read_nvcc_words(const std::vector<std::string>& words) {
  std::vector<std::string> all;
  const auto add_variable = [&](const char* name) {
    const char* const given = std::getenv(name);
    if (given == nullptr) return;
    for (std::string& one : split_words(given)) all.push_back(std::move(one));
  };
  add_variable("NVCC_PREPEND_FLAGS");
  all.insert(all.end(), words.begin(), words.end());
  add_variable("NVCC_APPEND_FLAGS");
  NvccCall call;
  call.sources.host_plain = true;
  NvccReader(call).read(all);
  return call;
}

}  // namespace rung::emulate
