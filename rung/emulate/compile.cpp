// SPDX-License-Identifier: Apache-2.0
// Preprocesses, rewrites and compiles each source with the system's g++, several sources at a time.
#include "rung/emulate/compile.hpp"

#include <fmt/format.h>
#include <omp.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <fstream>
#include <functional>
#include <future>
#include <mutex>
#include <sstream>
#include <utility>

#include "rung/core/error.hpp"
#include "rung/core/text.hpp"
#include "rung/emulate/columns.hpp"
#include "rung/emulate/home.hpp"
#include "rung/emulate/messages.hpp"
#include "rung/emulate/process.hpp"
#include "rung/emulate/rewrite.hpp"
#include "rung/emulate/slices.hpp"
#include "rung/emulate/unhooked.hpp"

namespace rung::emulate {
namespace {
namespace fs = std::filesystem;

bool is_cuda(const std::string& file) { return file.ends_with(".cu") || file.ends_with(".cuh"); }
bool is_object(const std::string& file) {
  return file.ends_with(".o") || file.ends_with(".a") || file.ends_with(".so") ||
         file.ends_with(".obj") || file.ends_with(".lo") || file.find(".so.") != std::string::npos;
}
bool is_standard(const std::string& option) { return option.starts_with("-std="); }

/// Returns the requested C++ standard; nvcc's default if none was requested. Standards older than
/// C++17 become gnu++17, under which almost all older programs have the same meaning.
std::string standard_of(const Sources& sources) {
  std::string standard = "gnu++17";
  for (const std::string& one : sources.options) {
    if (is_standard(one)) standard = "gnu++" + one.substr(one.find("++") + 2);
  }
  const bool older = standard == "gnu++03" || standard == "gnu++98" || standard == "gnu++11" ||
                     standard == "gnu++14" || standard == "gnu++0x" || standard == "gnu++1y" ||
                     standard == "gnu++1z";
  return older ? "gnu++17" : standard;
}
bool is_older(const std::string& standard) { return standard == "gnu++17"; }

/// Returns true if the source includes rung's PTX headers, which need C++20.
bool needs_newer(const std::string& preprocessed) {
  return preprocessed.find("/rung/simt/wgmma.hpp\"") != std::string::npos;
}

/// Returns the environment variables by which g++ finds further include folders, with the empty
/// values that disable them.
const std::vector<std::pair<std::string, std::string>>& no_include_paths() {
  static const std::vector<std::pair<std::string, std::string>> variables = {
      {"CPATH", ""}, {"CPLUS_INCLUDE_PATH", ""}};
  return variables;
}

std::vector<std::string> common_options(const Sources& sources, const Home& home,
                                        const std::string& standard) {
  // The options for the simulator's own kernels, plus line information through inlined functions,
  // for messages.
  std::vector<std::string> options = {"-O2",
                                      "-g1",
                                      "-gstatement-frontiers",
                                      "-std=" + standard,
                                      "-fno-strict-aliasing",
                                      "-fno-tree-vectorize",
                                      "-fno-tree-slp-vectorize",
                                      "-fno-math-errno",
                                      "-fpermissive",
                                      "-Wno-deprecated",
                                      "-Wno-volatile",
                                      "-Wno-attributes",
                                      "-Wno-psabi",
                                      "-Wno-literal-suffix",
                                      "-Wno-narrowing",
                                      "-fdiagnostics-color=auto"};
  for (const std::string& one : sources.options) {
    if (!is_standard(one)) options.push_back(one);
  }
  for (const std::string& one : sources.include) options.push_back("-I" + one);
  if (is_older(standard)) {
    // Headers with backports of C++20 features, found before the C++ library's headers.
    options.insert(options.begin(),
                   {"-fconcepts", "-isystem", home.include + "/rung/emulate/include_older"});
  }
  options.insert(options.end(), {"-isystem", home.include + "/rung/emulate/include"});
  // Include folders from the environment would precede rung's, whose headers wrap the library's.
  for (const auto& [variable, unused] : no_include_paths()) {
    const char* const given = std::getenv(variable.c_str());
    std::istringstream folders(given != nullptr ? given : "");
    for (std::string one; std::getline(folders, one, ':');) {
      if (!one.empty()) options.insert(options.end(), {"-isystem", one});
    }
  }
  // g++ searches /usr/include anyway. Naming it would place it before the folder of <cmath>, whose
  // #include_next <math.h> would then fail.
  if (home.include != "/usr/include") options.insert(options.end(), {"-isystem", home.include});
  for (const std::string& one : sources.definitions) options.push_back("-D" + one);
  return options;
}

/// Returns options that add hooks at accesses; if not `hooks`, options that keep loops without side
/// effects from being removed.
std::vector<std::string> access_options(bool hooks, bool cuda) {
  if (!hooks) return {"-fno-finite-loops"};
  // Tail merging would give accesses in two branches the same site and line.
  return {cuda ? "-fsanitize=thread,alignment,bounds" : "-fsanitize=thread,alignment",
          "--param=tsan-distinguish-volatile=1", "--param=tsan-instrument-func-entry-exit=0",
          "-fno-tree-tail-merge", "-fno-crossjumping"};
}

std::vector<std::string> cuda_options(int capability) {
  const std::string arch = std::to_string(10 * capability);
  return {"-x",
          "c++",
          "-D__CUDACC__",
          "-D__NVCC__",
          "-D__RUNG_EMULATE__",
          "-D__CUDACC_VER_MAJOR__=13",
          "-D__CUDACC_VER_MINOR__=0",
          "-D__CUDACC_VER_BUILD__=0",
          "-D__CUDA_API_VER_MAJOR__=13",
          "-D__CUDA_API_VER_MINOR__=0",
          "-D__CUDACC_EXTENDED_LAMBDA__",
          "-D__CUDA_ARCH__=" + arch,
          "-D__CUDA_ARCH_LIST__=" + arch,
          "-include",
          "cuda_runtime.h"};
}

void run_compiler(const std::vector<std::string>& command, const std::string& file,
                  const char* what, const std::string& errors = "") {
  const Ending ending = run_program(command, no_include_paths(), 0, errors);
  if (interrupted() != 0) throw Error(ErrorCode::invalid_argument, "interrupted");
  if (ending.signal != 0) {
    throw Error(ErrorCode::not_available,
                fmt::format("{}: the compiler was ended by signal {}: is there enough memory?",
                            printable(file), ending.signal));
  }
  if (ending.exit_code != 0) {
    throw Error(ErrorCode::invalid_argument, fmt::format("{}: {}", printable(file), what));
  }
}

/// A preprocessed source and the rewritten file that is compiled.
struct Rewritten {
  const std::string& source;  // preprocessed source
  const std::string& path;    // path of the rewritten file
  const std::string& stem;    // prefix of derived file names
};

/// Compiles to `output`: assembly if `how` is "-S", an object if "-c". A wrong launch causes many
/// errors in rung's headers; if possible, they are replaced by messages about the original source.
void compile_rewritten(std::vector<std::string> command, const std::string& file,
                       const Rewritten& one, const std::string& how, const std::string& output) {
  std::vector<std::string> whole = command;
  whole.insert(whole.end(), {how, one.path, "-o", output});
  for (const char* option : column_options) {
    whole.emplace_back(option);
    command.emplace_back(option);
  }
  const std::string errors = one.stem + ".errors";
  const auto print = [](const std::string& text) {
    std::fputs((isatty(STDERR_FILENO) != 0 ? colored(text) : text).c_str(), stderr);
  };
  try {
    run_compiler(whole, file, "does not compile", errors);
    const std::string warnings = read_file(errors);
    if (!warnings.empty()) print(in_columns_of_files(warnings, read_file(one.path)));
  } catch (const Error&) {
    const std::string messages = read_file(errors);
    std::string plain;
    if (interrupted() == 0 && speaks_of_rewriting(messages)) {
      const std::string calls = one.stem + ".calls.ii";
      std::ofstream(calls, std::ios::binary) << rewrite_for_messages(one.source);
      std::erase(command, "-fpermissive");
      command.insert(command.end(), {"-fsyntax-only", "-fno-diagnostics-show-caret", calls});
      (void)run_program(command, no_include_paths(), 0, errors);
      plain = explained(messages, read_file(errors));
      if (!plain.empty()) plain = in_columns_of_files(plain, read_file(calls), false);
    }
    print(plain.empty() ? in_columns_of_files(messages, read_file(one.path)) : plain);
    throw;
  }
}

/// Compiles a rewritten source with and without hooks, concurrently, and merges the results into
/// one object.
void compile_twice(const std::vector<std::string>& hooked, std::vector<std::string> bare,
                   const std::string& file, const Rewritten& one, const std::string& object,
                   bool sliced) {
  const std::string with = one.stem + ".s", without = one.stem + ".unhooked.s";
  for (const std::string& option : access_options(false, true)) bare.push_back(option);
  if (sliced) {
    for (const std::string& option : slice_options()) bare.push_back(option);
  }
  // The hooked compilation reports the same errors, so these messages are discarded.
  bare.insert(bare.end(),
              {"-w", "-fpreprocessed", "-x", "c++-cpp-output", "-S", one.path, "-o", without});
  auto second = std::async(std::launch::async, [&] {
    return run_program(bare, no_include_paths(), 0, one.stem + ".unhooked.errors").exit_code;
  });
  try {
    compile_rewritten(hooked, file, one, "-S", with);
  } catch (...) {
    second.wait();
    throw;
  }
  std::string joined;
  if (second.get() == 0) {
    const std::string text = read_file(without);
    joined = add_unhooked(read_file(with), sliced ? add_slices(text) : text);
  }
  if (!joined.empty()) std::ofstream(with, std::ios::binary) << joined;
  run_compiler({host_compiler(), "-c", with, "-o", object}, file, "cannot be assembled");
}

std::string absolute(const std::string& path) { return fs::absolute(path).lexically_normal(); }

/// Returns the path at which an object is kept; "" for a temporary object.
std::string object_of(const Sources& sources, const std::string& file) {
  if (!sources.object_only) return "";
  const bool named = !sources.output.empty();
  return absolute(named ? sources.output : fs::path(file).stem().string() + ".o");
}

/// Source text of a constructor by which an object registers its library with the runtime on load.
constexpr const char* registration =
    "\nextern \"C\" void rung_emulate_object(const void*);\n"
    "[[maybe_unused]] static const bool rung_object_known = "
    "(rung_emulate_object(&rung_object_known), true);\n";

/// Returns the text without the parts that come from system headers and rung's headers.
std::string users_text(const std::string& preprocessed) {
  std::string text;
  bool system = false;
  for (std::size_t at = 0; at < preprocessed.size();) {
    std::size_t end = preprocessed.find('\n', at);
    end = end == std::string::npos ? preprocessed.size() : end + 1;
    const std::string_view line(preprocessed.data() + at, end - at);
    if (line.starts_with("# ")) {
      const std::size_t quote = line.rfind('"');
      system = quote != std::string_view::npos && line.find(" 3", quote) != std::string_view::npos;
    }
    if (!system) text += line;
    at = end;
  }
  return text;
}

/// Functions to which calls by a program are redirected to the runtime.
constexpr const char* wrapped[] = {"malloc", "free",    "_Znwm",   "_Znam", "_ZdlPv",
                                   "_ZdaPv", "_ZdlPvm", "_ZdaPvm", "clock"};

/// Makes an object independent of linker options: renames the calls that `rung emulate` otherwise
/// redirects with --wrap, and embeds the user's sources for advice.
void complete_object(const std::string& file, const std::string& object, const std::string& stem,
                     const std::string& preprocessed, const std::string& rewritten) {
  const std::string sources = stem + ".sources";
  {
    std::ofstream out(sources, std::ios::binary);
    for (const auto& [kind, text] : {std::pair{"plain", users_text(preprocessed)},
                                     std::pair{"rewritten", users_text(rewritten)}}) {
      out << "rung source " << kind << ' ' << text.size() << '\n' << text;
    }
  }
  std::vector<std::string> command = {"objcopy",
                                      "--add-section",
                                      ".rung_source=" + sources,
                                      "--set-section-flags",
                                      ".rung_source=noload,readonly",
                                      "--redefine-sym",
                                      "__assert_fail=rung_emulate_assert_fail"};
  for (const char* name : wrapped) {
    command.insert(command.end(), {"--redefine-sym", fmt::format("{0}=__wrap_{0}", name)});
  }
  command.push_back(object);
  run_compiler(command, file, "cannot be completed by objcopy");
}

void keep(const std::string& from, const std::string& to) {
  fs::copy_file(from, to, fs::copy_options::overwrite_existing);
}

std::string compile_one(const Sources& sources, const Home& home, const std::string& file,
                        const std::string& stem) {
  std::string standard = standard_of(sources);
  std::vector<std::string> options = common_options(sources, home, standard);
  // With ccache's option hash_dir = false, g++ may return the object of an identical source in
  // another folder, whose debug information names the wrong files. This option makes the folder
  // part of the ccache key.
  options.insert(options.begin(),
                 fmt::format("-frandom-seed={:x}", std::hash<std::string>()(absolute(file))));
  const std::string object = stem + ".o";
  std::vector<std::string> command = {host_compiler()};
  const auto add = [&](const std::vector<std::string>& more) {
    command.insert(command.end(), more.begin(), more.end());
  };
  if (!is_cuda(file) && !sources.all_cuda) {
    if (file.ends_with(".c")) std::erase_if(options, is_standard);
    add(options);
    if (!sources.host_plain) add(access_options(sources.watched, false));
    add(sources.dependencies);
    add({"-c", file, "-o", object});
    run_compiler(command, file, "does not compile");
    if (sources.object_only) keep(object, object_of(sources, file));
    return object;
  }
  const std::string preprocessed = stem + ".ii";
  const auto preprocess_source = [&](bool assembly) {
    command = {host_compiler()};
    add(options);
    add(cuda_options(sources.capability));
    const std::vector<std::string> with_options = command;
    add(sources.dependencies);
    add({"-E", file, "-o", preprocessed});
    if (assembly) add({"-include", "rung_cuda/ptx.h"});
    try {
      run_compiler(command, file, "cannot be preprocessed");
    } catch (const Error&) {
      if (interrupted() == 0) explain_missing_header(with_options, file, stem);
      throw;
    }
  };
  preprocess_source(false);
  refuse_libraries(file, read_file(preprocessed), home.include + "/rung/");
  const bool assembly = holds_assembly(read_file(preprocessed));
  const bool newer = is_older(standard) && (assembly || needs_newer(read_file(preprocessed)));
  if (newer) {
    const std::string seed = options.front();
    standard = "gnu++20";
    options = common_options(sources, home, standard);
    options.insert(options.begin(), seed);
  }
  if (assembly || newer) preprocess_source(assembly);
  // Volatile reads need hooks even if nothing is recorded, since the hooks detect waiting threads.
  const std::string source = read_file(preprocessed);
  const bool hooks = sources.watched || holds_volatile(source);
  const std::string rewritten = stem + ".rung.ii";
  const std::string kept = object_of(sources, file);
  std::ofstream(rewritten, std::ios::binary)
      << rewrite(source, sources.whole_program) << (sources.stands_alone ? registration : "");
  command = {host_compiler()};
  for (std::size_t i = 0; i < options.size(); ++i) {
    const bool preprocessing = options[i].starts_with("-I") || options[i].starts_with("-D");
    if (options[i] == "-isystem" || options[i] == "-include" || options[i] == "-iquote") {
      ++i;
    } else if (!preprocessing) {
      command.push_back(options[i]);
    }
  }
  const std::vector<std::string> bare = command;
  add(access_options(hooks, true));
  add({"-fpreprocessed", "-x", "c++-cpp-output"});
  const Rewritten one{source, rewritten, stem};
  // Compiling the templates of a large program twice would take minutes.
  constexpr std::size_t large = 4 << 20;
  if (sources.twice && source.size() < large && !holds_volatile(source)) {
    compile_twice(command, bare, file, one, object, may_slice(sources.options));
  } else {
    compile_rewritten(command, file, one, "-c", object);
  }
  if (sources.stands_alone) {
    complete_object(file, object, stem, source, read_file(rewritten));
  }
  if (!kept.empty()) {
    keep(object, kept);
    // python/rung/cuda/_compile.py identifies kernel strings by this file.
    if (!sources.host_plain) keep(preprocessed, kept + ".ii");
  }
  return object;
}

/// Compiles each file and returns the objects.
std::vector<std::string> compile_all(const Sources& sources, const Home& home,
                                     const std::string& folder) {
  for (const std::string& file : sources.files) {
    if (!fs::exists(file)) {
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("{}: there is no such file", printable(file)));
    }
  }
  const int count = static_cast<int>(sources.files.size());
  std::vector<std::string> objects(sources.files.size());
  std::exception_ptr failure;
  std::mutex mutex;
#pragma omp parallel for schedule(dynamic) num_threads(std::min(count, omp_get_max_threads()))
  for (int i = 0; i < count; ++i) {
    const std::string& file = sources.files[static_cast<std::size_t>(i)];
    try {
      // Truncated, since file names are limited to 255 bytes and derived names are longer than the
      // source's.
      constexpr std::size_t most = 100;
      const std::string name = fs::path(file).stem().string().substr(0, most);
      const std::string stem = fmt::format("{}/{}_{}", folder, i, name);
      objects[static_cast<std::size_t>(i)] =
          is_object(file) ? file : compile_one(sources, home, file, stem);
    } catch (...) {
      const std::lock_guard lock(mutex);
      if (failure == nullptr) failure = std::current_exception();
    }
  }
  if (failure != nullptr) std::rethrow_exception(failure);
  return objects;
}

void link(const Sources& sources, const Home& home, const std::vector<std::string>& objects,
          const std::string& program) {
  std::vector<std::string> command = {host_compiler()};
  if (sources.shared) command.emplace_back("-shared");
  command.insert(command.end(), objects.begin(), objects.end());
  for (const std::string& one : sources.options) {
    if (one == "-fopenmp" || one == "-pthread" || one == "-s" || one == "-no-pie") {
      command.push_back(one);
    }
  }
  command.insert(command.end(), sources.libraries.begin(), sources.libraries.end());
  command.insert(command.end(), {"-L" + home.libraries, "-Wl,-rpath," + home.libraries,
                                 "-Wl,-rpath-link," + home.libraries, "-rdynamic"});
  for (const char* name : wrapped) command.push_back(std::string("-Wl,--wrap=") + name);
  command.insert(command.end(),
                 {"-lrung_cublas", "-lrung_hooks", "-Wl,--no-as-needed", "-lrung_emulate", "-lrung",
                  "-lrung_thread", "-pthread", "-ldl", "-o", program});
  run_compiler(command, sources.files.front(), "does not link");
}

}  // namespace

std::string compile(const Sources& sources, const std::string& folder) {
  const Home home = find_home();
  const std::string program = folder + "/program";
  link(sources, home, compile_all(sources, home, folder), program);
  return program;
}

void build(const Sources& given, const std::string& folder) {
  Sources sources = given;
  sources.stands_alone = true;
  if (sources.object_only && !sources.output.empty() && sources.files.size() > 1) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("-c: one source at a time where -o names its object; given {}",
                            sources.files.size()));
  }
  const Home home = find_home();
  const std::vector<std::string> objects = compile_all(sources, home, folder);
  if (sources.object_only) return;
  link(sources, home, objects, sources.output.empty() ? "a.out" : sources.output);
}

void preprocess(const Sources& sources, const std::string& dependencies) {
  const Home home = find_home();
  for (const std::string& file : sources.files) {
    std::vector<std::string> command = {host_compiler()};
    const auto add = [&](const std::vector<std::string>& more) {
      command.insert(command.end(), more.begin(), more.end());
    };
    add(common_options(sources, home, standard_of(sources)));
    if (is_cuda(file) || sources.all_cuda) add(cuda_options(sources.capability));
    add(sources.dependencies);
    add({dependencies.empty() ? "-E" : dependencies, file});
    if (!sources.output.empty()) add({"-o", sources.output});
    run_compiler(command, file, "cannot be preprocessed");
  }
}

void write_empty_object(const std::string& output, const std::string& folder) {
  const std::string source = folder + "/empty.c";
  std::ofstream(source) << "";
  run_compiler({host_compiler(), "-x", "c", "-c", source, "-o", output}, output,
               "cannot be written");
}

bool is_built(const std::string& file) {
  std::error_code none;
  if (is_object(file) || !fs::is_regular_file(file, none) || access(file.c_str(), X_OK) != 0)
    return false;
  const std::string bytes = read_file(file);
  return bytes.starts_with("\177ELF") && bytes.find("librung_emulate.so") != std::string::npos;
}

std::string toolchain_file() { return find_home().include + "/rung/emulate/cmake/toolchain.cmake"; }

}  // namespace rung::emulate
