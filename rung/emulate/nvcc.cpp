// SPDX-License-Identifier: Apache-2.0
// Replaces nvcc: compiles, links, and answers queries of build systems.
#include "rung/emulate/nvcc.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <thread>

#include "rung/core/error.hpp"
#include "rung/core/text.hpp"
#include "rung/core/version.h"
#include "rung/emulate/compile.hpp"
#include "rung/emulate/home.hpp"
#include "rung/emulate/nvcc_words.hpp"
#include "rung/emulate/process.hpp"
#include "rung/emulate/toolkit.hpp"

namespace rung::emulate {
namespace {

namespace fs = std::filesystem;
using Product = NvccCall::Product;

/// Prints the version in nvcc's format, which CMake and other tools parse.
void print_version() {
  fmt::print(
      "nvcc: NVIDIA (R) Cuda compiler driver: rung {0} in its place, for a simulated GPU\n"
      "Cuda compilation tools, release {1}, V{2}\n",
      fmt::format("{}.{}.{}", RUNG_VERSION_MAJOR, RUNG_VERSION_MINOR, RUNG_VERSION_PATCH),
      toolkit_version().substr(0, toolkit_version().rfind('.')), toolkit_version());
}

bool is_source(const std::string& file) {
  for (const char* ending : {".cu", ".cpp", ".cc", ".cxx", ".c", ".C", ".cuh"}) {
    if (fs::path(file).extension() == ending) return true;
  }
  return false;
}

/// Returns the path of a source's object file, named as nvcc names it.
std::string object_path(const NvccCall& call, const std::string& source) {
  if (!call.sources.output.empty() && call.sources.files.size() == 1) return call.sources.output;
  const fs::path folder = call.output_folder.empty() ? "." : call.output_folder;
  const fs::path name = fs::path(source).stem().string() + ".o";
  return call.output_folder.empty() ? name : folder / name;
}

/// Adds the file name and the targets of dependency rules, chosen as nvcc chooses them.
void add_dependencies(const NvccCall& call, const std::string& product, Sources& sources) {
  std::string file = call.dependencies_file;
  if (file.empty()) file = fs::path(product).replace_extension(".d");
  sources.dependencies.insert(sources.dependencies.end(), {"-MF", file});
  bool named = false;
  for (const std::string& one : sources.dependencies) named = named || one == "-MT";
  if (!named) sources.dependencies.insert(sources.dependencies.end(), {"-MT", product});
}

/// Prints variables and commands in the format of nvcc --dryrun, from which CMake derives the
/// toolkit's folder and the host linker's arguments.
void print_plan(const NvccCall& call) {
  const std::string top = toolkit_folder();
  const std::string libraries = fmt::format("{} {}", shell_quoted("-L" + top + "/lib64/stubs"),
                                            shell_quoted("-L" + top + "/lib64"));
  fmt::print(stderr,
             "#$ _HERE_={0}/bin\n#$ TOP={0}\n#$ NVVMIR_LIBRARY_DIR={0}/nvvm/libdevice\n"
             "#$ PATH={0}/bin:{1}\n#$ INCLUDES={2}\n#$ LIBRARIES={3}\n",
             top, std::getenv("PATH") != nullptr ? std::getenv("PATH") : "",
             shell_quoted("-I" + top + "/include"), libraries);
  std::string objects;
  for (const std::string& file : call.sources.files) {
    if (!is_source(file)) {
      objects += shell_quoted(file) + " ";
      continue;
    }
    const std::string object = call.product == Product::object
                                   ? object_path(call, file)
                                   : fs::path(file).stem().string() + ".o";
    objects += shell_quoted(object) + " ";
    fmt::print(stderr, "#$ rung nvcc -arch compute_{} -c {} -o {}\n", call.sources.capability,
               shell_quoted(file), shell_quoted(object));
  }
  if (call.product != Product::program) return;
  fmt::print(stderr, "#$ {} {}{} -lcudadevrt -lcudart_static -lrt -lpthread -ldl -o {}\n",
             host_compiler(), objects, libraries,
             shell_quoted(call.sources.output.empty() ? "a.out" : call.sources.output));
}

void compile_objects(const NvccCall& call, const std::string& folder) {
  for (const std::string& file : call.sources.files) {
    if (!is_source(file) && !call.sources.all_cuda) continue;
    Sources one = call.sources;
    one.files = {file};
    one.object_only = true;
    one.output = object_path(call, file);
    if (call.writes_dependencies) add_dependencies(call, one.output, one);
    build(one, folder);
  }
}

void write_archive(const NvccCall& call, const std::string& folder) {
  const std::string archive = call.sources.output.empty() ? "a.a" : call.sources.output;
  std::vector<std::string> command = {"ar", "rcs", archive};
  for (std::size_t i = 0; i < call.sources.files.size(); ++i) {
    const std::string& file = call.sources.files[i];
    if (!is_source(file)) {
      command.push_back(file);
      continue;
    }
    Sources one = call.sources;
    one.files = {file};
    one.object_only = true;
    one.output = fmt::format("{}/member{}_{}.o", folder, i, fs::path(file).stem().string());
    build(one, folder);
    command.push_back(one.output);
  }
  if (run_program(command).exit_code != 0) {
    throw Error(ErrorCode::io, fmt::format("{}: ar has failed", printable(archive)));
  }
}

void expect_files(const Sources& sources) {
  if (sources.files.empty()) {
    throw Error(ErrorCode::invalid_argument, "nvcc: no source and no object given");
  }
  for (const std::string& file : sources.files) {
    if (fs::exists(file)) continue;
    throw Error(ErrorCode::invalid_argument,
                fmt::format("nvcc: {}: there is no such file", printable(file)));
  }
}

}  // namespace

void run_nvcc(const std::vector<std::string>& words) {
  if (words.size() == 1 && words[0] == "--rung-toolkit") {
    fmt::print("{}\n", toolkit_folder());
    return;
  }
  NvccCall call = read_nvcc_words(words);
  if (call.version) {
    print_version();
    return;
  }
  if (call.dry_run || call.sources.verbose) print_plan(call);
  if (call.dry_run) return;
  if (call.product != Product::device_link) expect_files(call.sources);
  if (call.product == Product::object && !call.sources.output.empty() &&
      call.sources.files.size() > 1) {
    throw Error(
        ErrorCode::invalid_argument,
        fmt::format("nvcc: -c with -o takes one source; given {}", call.sources.files.size()));
  }
  call.sources.twice = std::thread::hardware_concurrency() > 1;
  const TemporaryFolder temporary;
  std::string folder = temporary.path();
  if (call.keep) {
    folder = call.keep_folder.empty() ? "." : call.keep_folder;
    fs::create_directories(folder);
  }
  switch (call.product) {
    case Product::program:
      if (call.writes_dependencies) {
        add_dependencies(call, call.sources.output.empty() ? "a.out" : call.sources.output,
                         call.sources);
      }
      build(call.sources, folder);
      break;
    case Product::object:
      compile_objects(call, folder);
      break;
    case Product::preprocessed:
      preprocess(call.sources);
      break;
    case Product::dependencies:
      preprocess(call.sources, call.dependencies_option);
      break;
    case Product::device_link:
      // Device linking has no effect: the host linker resolves external symbols.
      write_empty_object(call.sources.output.empty() ? "a_dlink.o" : call.sources.output, folder);
      break;
    case Product::archive:
      write_archive(call, folder);
      break;
  }
}

}  // namespace rung::emulate
