// SPDX-License-Identifier: Apache-2.0
// Table of nvcc's options with their translation for g++ or the linker. Options that affect only
// GPU code are ignored.
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

namespace rung::emulate {
namespace {

enum class Effect {
  nothing,
  include,
  system_include,
  pre_include,
  define,
  undefine,
  library,
  library_folder,
  output,
  output_folder,
  object,
  device_link,
  archive,
  preprocess,
  dependencies,
  write_dependencies,
  phony_dependencies,
  dependencies_file,
  dependencies_target,
  shared,
  standard,
  default_stream,
  host_options,
  linker_options,
  language,
  architecture,
  options_file,
  dry_run,
  verbose,
  keep,
  keep_folder,
  version,
  help,
  warnings_off,
  forward_unknown,
  no_chip_code,
  run
};

struct NvccOption {
  std::string_view names;  // separated by blanks
  bool takes_value;
  Effect effect;
};

constexpr NvccOption nvcc_options[] = {
    {"-I --include-path", true, Effect::include},
    {"-isystem --system-include", true, Effect::system_include},
    {"-include --pre-include", true, Effect::pre_include},
    {"-D --define-macro", true, Effect::define},
    {"-U --undefine-macro", true, Effect::undefine},
    {"-l --library", true, Effect::library},
    {"-L --library-path", true, Effect::library_folder},
    {"-o --output-file", true, Effect::output},
    {"-odir --output-directory", true, Effect::output_folder},
    {"-c --compile -dc --device-c -dw --device-w", false, Effect::object},
    {"-dlink --device-link", false, Effect::device_link},
    {"-lib --lib", false, Effect::archive},
    {"-E --preprocess", false, Effect::preprocess},
    {"-M --generate-dependencies -MM --generate-nonsystem-dependencies", false,
     Effect::dependencies},
    {"-MD --generate-dependencies-with-compile -MMD "
     "--generate-nonsystem-dependencies-with-compile",
     false, Effect::write_dependencies},
    {"-MP --generate-dependency-targets", false, Effect::phony_dependencies},
    {"-MF --dependency-output", true, Effect::dependencies_file},
    {"-MT --dependency-target-name", true, Effect::dependencies_target},
    {"-shared --shared", false, Effect::shared},
    {"-std --std", true, Effect::standard},
    {"-default-stream --default-stream", true, Effect::default_stream},
    {"-Xcompiler --compiler-options", true, Effect::host_options},
    {"-Xlinker --linker-options", true, Effect::linker_options},
    {"-x --x", true, Effect::language},
    {"-arch --gpu-architecture -gencode --generate-code -code --gpu-code", true,
     Effect::architecture},
    {"-optf --options-file", true, Effect::options_file},
    {"-dryrun --dryrun", false, Effect::dry_run},
    {"-v --verbose", false, Effect::verbose},
    {"-keep --keep -save-temps --save-temps", false, Effect::keep},
    {"-keep-dir --keep-dir", true, Effect::keep_folder},
    {"-V --version -version", false, Effect::version},
    {"-h --help -help", false, Effect::help},
    {"-w --disable-warnings", false, Effect::warnings_off},
    {"-forward-unknown-to-host-compiler --forward-unknown-to-host-compiler "
     "-forward-unknown-to-host-linker --forward-unknown-to-host-linker "
     "-forward-unknown-opts --forward-unknown-opts",
     false, Effect::forward_unknown},
    {"-ptx --ptx -cubin --cubin -fatbin --fatbin -optix-ir --optix-ir -ltoir --ltoir", false,
     Effect::no_chip_code},
    {"-cuda --cuda -clean --clean-targets -run --run -r --relocatable-link -fdevice-syntax-only "
     "--fdevice-syntax-only",
     false, Effect::run},
    // Ignored: options for GPU code or NVIDIA's compilers, and for files that rung does not
    // produce.
    {"-rdc --relocatable-device-code -Xptxas --ptxas-options -Xnvlink --nvlink-options "
     "-Xcudafe --cudafe-options -Xarchive --archive-options -ccbin --compiler-bindir "
     "-arbin --archiver-binary -maxrregcount --maxrregcount -t --threads -split-compile "
     "--split-compile -split-compile-extended --split-compile-extended -ftz --ftz "
     "-prec-div --prec-div -prec-sqrt --prec-sqrt -fmad --fmad -cudart --cudart "
     "-cudadevrt --cudadevrt -diag-suppress "
     "--diag-suppress -diag-error --diag-error -diag-warn --diag-warn -m --machine "
     "-target-dir --target-directory -O --optimize -Werror --Werror -brief-diag "
     "--brief-diagnostics -ldir --libdevice-directory -e --entries -run-args --run-args "
     "-idp --input-drive-prefix -ddp --dependency-drive-prefix -dp --drive-prefix -time "
     "--time -opt-info --optimization-info -dopt --dopt -Ofc --Ofast-compile -hls "
     "--host-linker-script -aug-hls --augment-host-linker-script -jtd --jump-table-density "
     "-fdevice-time-trace --fdevice-time-trace -compress-mode --compress-mode "
     "-frandom-seed --frandom-seed -ftemplate-backtrace-limit --ftemplate-backtrace-limit "
     "-ftemplate-depth --ftemplate-depth -qpp-config --qpp-config -sanitize --sanitize "
     "-device-stack-protector --device-stack-protector",
     true, Effect::nothing},
    {"-g --debug -G --device-debug -lineinfo --generate-line-info -m64 --m64 "
     "-use_fast_math --use_fast_math -extended-lambda --extended-lambda "
     "-expt-extended-lambda --expt-extended-lambda -expt-relaxed-constexpr "
     "--expt-relaxed-constexpr -dlto --dlink-time-opt -lto --lto -restrict --restrict -pg "
     "--profile -src-in-ptx --source-in-ptx -allow-unsupported-compiler "
     "--allow-unsupported-compiler -res-usage --resource-usage -rdynamic -ewp "
     "--extensible-whole-program -nodlink --no-device-link -noprof --dont-use-profile "
     "-no-align-double --no-align-double -extra-device-vectorization "
     "--extra-device-vectorization -Wno-deprecated-gpu-targets "
     "--Wno-deprecated-gpu-targets -Wno-deprecated-declarations "
     "--Wno-deprecated-declarations -Wreorder --Wreorder -Wdefault-stream-launch "
     "--Wdefault-stream-launch -Wmissing-launch-bounds --Wmissing-launch-bounds "
     "-Wext-lambda-captures-this --Wext-lambda-captures-this -err-no "
     "--display-error-number -no-err-no --no-display-error-number -keep-device-functions "
     "--keep-device-functions -no-compress --no-compress -gen-opt-lto --gen-opt-lto "
     "-objtemp --objdir-as-tempdir -use-local-env --use-local-env -noeh --no-exceptions "
     "-nohdinitlist --no-host-device-initializer-list -nohdmoveforward "
     "--no-host-device-move-forward -static-global-template-stub "
     "--static-global-template-stub -device-entity-has-hidden-visibility "
     "--device-entity-has-hidden-visibility -reloc-ptx --relocatable-ptx -astoolspatch "
     "--compile-as-tools-patch -force-cl-env-setup --force-cl-env-setup -jobserver "
     "--jobserver",
     false, Effect::nothing},
};

/// Options whose value may follow without a space: -Iinclude, -DN=1, -t4.
constexpr std::string_view glued[] = {"-I", "-D", "-U", "-l", "-L", "-O", "-t", "-m", "-j"};

bool has_name(const NvccOption& option, std::string_view name) {
  std::string_view rest = option.names;
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find(' '), rest.size());
    if (rest.substr(0, end) == name) return true;
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return false;
}

const NvccOption* find_option(std::string_view name) {
  for (const NvccOption& one : nvcc_options) {
    if (has_name(one, name)) return &one;
  }
  return nullptr;
}

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
    if (capability_ != 0) call_.sources.capability = std::clamp(capability_, 60, 129);
  }

 private:
  static bool is_forward(const std::string& word) {
    const NvccOption* const option = find_option(word);
    return option != nullptr && option->effect == Effect::forward_unknown;
  }

  void read_words(const std::vector<std::string>& words) {
    for (std::size_t at = 0; at < words.size(); ++at) {
      const std::string& word = words[at];
      if (word.size() < 2 || word[0] != '-') {
        read_file(word);
        continue;
      }
      const std::size_t equals = word.find('=');
      const NvccOption* option = find_option(word.substr(0, equals));
      std::string value;
      bool valued = equals != std::string::npos;
      if (valued) value = word.substr(equals + 1);
      if (option == nullptr) {
        option = find_glued(word);
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

  static const NvccOption* find_glued(const std::string& word) {
    for (const std::string_view letter : glued) {
      if (!word.starts_with(letter) || word.size() <= letter.size()) continue;
      // Matches -m64 and -t4, but not -march.
      const bool number =
          std::islower(static_cast<unsigned char>(letter[1])) != 0 && letter != "-l";
      const char first = word[2] == '=' ? '0' : word[2];
      if (!number || std::isdigit(static_cast<unsigned char>(first)) != 0) {
        return find_option(letter);
      }
    }
    return nullptr;
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
      case Effect::nothing:
        break;
      case Effect::include:
        for (const std::string& one : split_list(value)) to.include.push_back(one);
        break;
      case Effect::system_include:
        for (const std::string& one : split_list(value)) {
          to.options.insert(to.options.end(), {"-isystem", one});
        }
        break;
      case Effect::pre_include:
        for (const std::string& one : split_list(value)) {
          to.options.insert(to.options.end(), {"-include", one});
        }
        break;
      case Effect::define:
        to.definitions.push_back(value);
        break;
      case Effect::undefine:
        to.options.push_back("-U" + value);
        break;
      case Effect::library:
        for (const std::string& one : split_list(value)) {
          if (!is_runtime(one)) to.libraries.push_back("-l" + one);
        }
        break;
      case Effect::library_folder:
        for (const std::string& one : split_list(value)) to.libraries.push_back("-L" + one);
        break;
      case Effect::output:
        to.output = value;
        break;
      case Effect::output_folder:
        call_.output_folder = value;
        break;
      case Effect::object:
        call_.product = Product::object;
        break;
      case Effect::device_link:
        call_.product = Product::device_link;
        break;
      case Effect::archive:
        call_.product = Product::archive;
        break;
      case Effect::preprocess:
        call_.product = Product::preprocessed;
        break;
      case Effect::dependencies:
        call_.product = Product::dependencies;
        call_.dependencies_option = all ? "-M" : "-MM";
        break;
      case Effect::write_dependencies:
        call_.writes_dependencies = true;
        to.dependencies.emplace_back(all ? "-MD" : "-MMD");
        break;
      case Effect::phony_dependencies:
        to.dependencies.emplace_back("-MP");
        break;
      case Effect::dependencies_file:
        call_.dependencies_file = value;
        break;
      case Effect::dependencies_target:
        to.dependencies.insert(to.dependencies.end(), {"-MT", value});
        break;
      case Effect::shared:
        to.shared = true;
        break;
      case Effect::standard:
        set_standard(value);
        break;
      case Effect::default_stream: {
        const std::string macro = macro_of_default_stream(value);
        if (!macro.empty()) to.definitions.push_back(macro);
        break;
      }
      case Effect::host_options:
        for (const std::string& list : split_words(value)) {
          // -Wl,a,b is a single flag for g++, although nvcc splits lists at commas.
          if (list.starts_with("-Wl,")) {
            host_option(list);
            continue;
          }
          for (const std::string& one : split_list(list)) host_option(one);
        }
        break;
      case Effect::linker_options:
        for (const std::string& one : split_list(value)) to.libraries.push_back("-Wl," + one);
        break;
      case Effect::language:
        if (value != "cu" && value != "c++" && value != "c") {
          refuse(fmt::format("-x: '{}' given; accepted: cu, c++, c", printable(value)));
        }
        to.all_cuda = value == "cu";
        break;
      case Effect::architecture:
        read_architecture(value);
        break;
      case Effect::options_file:
        read_options_file(value);
        break;
      case Effect::dry_run:
        call_.dry_run = true;
        break;
      case Effect::verbose:
        to.verbose = true;
        break;
      case Effect::keep:
        call_.keep = true;
        break;
      case Effect::keep_folder:
        call_.keep_folder = value;
        break;
      case Effect::version:
        call_.version = true;
        break;
      case Effect::help:
        call_.help = true;
        break;
      case Effect::warnings_off:
        to.options.emplace_back("-w");
        break;
      case Effect::forward_unknown:
        forward_ = true;
        break;
      case Effect::no_chip_code:
        throw Error(ErrorCode::not_available,
                    fmt::format("nvcc: {}: no PTX and no machine code are made for the simulated "
                                "GPU, which runs CUDA C++; accepted: -c, -shared, -lib, -E, or a "
                                "program",
                                word));
      case Effect::run:
        throw Error(
            ErrorCode::not_available,
            fmt::format("nvcc: {} is not supported; build a program, and start that", word));
    }
  }

  NvccCall& call_;
  bool forward_ = false;
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

NvccOptionKind nvcc_option_kind(std::string_view name) {
  const NvccOption* const option = find_option(name);
  if (option == nullptr) return {};
  const bool has_effect =
      option->effect != Effect::nothing && option->effect != Effect::verbose &&
      option->effect != Effect::forward_unknown && option->effect != Effect::architecture &&
      option->effect != Effect::default_stream && option->effect != Effect::output_folder;
  return {true, option->takes_value, has_effect};
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
