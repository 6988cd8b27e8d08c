// SPDX-License-Identifier: Apache-2.0
// rung nvcc: accepts nvcc's command line and compiles for the simulated GPU.
#include "rung/emulate/nvcc.hpp"

#include <memory>

#include "rung/emulate/process.hpp"
#include "rung/workbench/command.hpp"

namespace rung::workbench {
namespace {

int run_words(const std::vector<std::string>& words) {
  try {
    emulate::run_nvcc(words);
  } catch (const std::exception&) {
    if (const int signal = emulate::interrupted(); signal != 0) return 128 + signal;
    throw;
  }
  return exit_good;
}

/// Options for help and completion. nvcc_words.cpp parses the command line itself.
struct NvccHelp {
  std::string text;
  bool given = false;
};

CommandSpec::Action setup(Parser app) {
  auto shown = std::make_shared<NvccHelp>();
  app.leave_unknown();
  const auto flag = [&](const char* names, const char* help) {
    app.add_flag(names, shown->given, help);
  };
  const auto value = [&](const char* names, const char* type, const char* help) {
    app.add_option(names, shown->text, help).type_name(type);
  };
  flag("-c,--compile", "compile to objects");
  value("-o,--output-file", "FILE", "what is written");
  flag("--shared", "link a shared library");
  flag("--device-c", "as -c: objects for separable compilation");
  flag("--device-link", "write the object of a device link, which is empty");
  flag("--lib", "put objects into an archive");
  flag("-E,--preprocess", "preprocess only");
  flag("-M,--generate-dependencies", "print dependencies on headers for a makefile");
  value("-I,--include-path", "FOLDER", "folder of headers");
  value("-D,--define-macro", "NAME[=VALUE]", "macro");
  value("-L,--library-path", "FOLDER", "folder of libraries");
  value("-l,--library", "NAME", "library");
  value("--std", "STANDARD", "c++17, c++20 ...");
  value("--gpu-architecture", "SM", "sets __CUDA_ARCH__: sm_90");
  value("--compiler-options", "LIST", "options of the host compiler");
  value("--linker-options", "LIST", "options of the host linker");
  value("--options-file", "FILE", "more words in a file");
  flag("--dryrun", "print commands, run none");
  flag("--keep", "keep the rewritten sources");
  value("--keep-dir", "FOLDER", "where");
  flag("--version", "print the version in nvcc's form");
  flag("--rung-toolkit", "print a folder in the shape of a CUDA toolkit");
  app.purpose(
      "Takes nvcc's place in a build: compiles CUDA sources for the simulated GPU and links "
      "objects, "
      "libraries and programs, by nvcc's command line. `rung-nvcc` is the same as one word. The "
      "programs run by themselves and print what is found when they end.\n"
      "Options of nvcc that concern chips alone (-arch, -Xptxas, -lineinfo ...) are accepted; "
      "-arch "
      "sets __CUDA_ARCH__. -O has no effect, and warnings are never errors, since they are g++'s. "
      "-ptx, -cubin and -fatbin are refused: there is no machine code. `rung nvcc --rung-toolkit` "
      "prints a folder in the shape of a CUDA toolkit (bin/nvcc, include, lib64), for CUDA_HOME.\n"
      "Programs read options from the environment variable RUNG_EMULATE: --order, --checks, "
      "--no-checks, --leaks, --devices, --threads, --compute-capability and --json as `rung "
      "emulate` "
      "has them; --exit-code 66 ends a program with findings by that code.");
  app.example("make NVCC=\"rung nvcc\"", "a project with a makefile");
  app.example("cmake -DCMAKE_CUDA_COMPILER=rung-nvcc -S . -B build", "a CMake project");
  app.example("rung nvcc -shared -Xcompiler -fPIC -o libadd.so add.cu", "a library for ctypes");
  app.example("RUNG_EMULATE=\"--exit-code 66\" ctest --test-dir build", "a finding fails its test");
  app.exit_codes({{exit_good, "good"},
                  {exit_usage, "the command line is wrong, or a source does not compile"},
                  {exit_not_here, "an option or feature is not supported by the simulator"}});
  return [app, shown] { return run_words(app.unread()); };
}

const Command self{{.name = "nvcc",
                    .order = 61,
                    .summary = "build CUDA projects for the simulated GPU, by nvcc's options",
                    .setup = setup,
                    .run_words = run_words}};

}  // namespace
}  // namespace rung::workbench
