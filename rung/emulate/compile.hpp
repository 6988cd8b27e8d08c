// SPDX-License-Identifier: Apache-2.0
// Compilation of CUDA sources to programs for this machine.
#pragma once

#include <string>
#include <vector>

namespace rung::emulate {

struct Sources {
  std::vector<std::string> files;         // .cu; .cpp, .c, .o and .a are passed through
  std::vector<std::string> include;       // folders
  std::vector<std::string> definitions;   // NAME or NAME=VALUE
  std::vector<std::string> options;       // further compiler options: -O3, -std=, -fopenmp
  std::vector<std::string> libraries;     // for the linker: -lz
  std::vector<std::string> dependencies;  // preprocessor options for dependency files: -MD -MF x
  std::string output;                     // for build(); "": nvcc's default name
  bool object_only = false;               // for build(): compiles to objects without linking
  bool shared = false;                    // for build(): links a shared library
  int capability = 90;                    // 90 for compute capability 9.0
  bool watched = true;                    // hooks at accesses, for counters and checks
  bool all_cuda = false;                  // all files are CUDA sources, whatever their suffix
  bool twice = false;                     // each function in two versions, with and without hooks
  bool stands_alone = false;              // objects embed their sources; set by build()
  bool host_plain = false;                // C++ sources get only the user's options, as by nvcc
  bool whole_program = false;             // files do not use device code of each other
  bool verbose = false;                   // print each command
};

/// Compiles and links the program `folder`/program and returns its path. If the compiler rejects a
/// file, prints its messages and throws Error(invalid_argument).
std::string compile(const Sources& sources, const std::string& folder);

/// Compiles to objects or links a program, as nvcc does. Objects embed the user's sources in a
/// separate section, for advice at run time. `folder` receives temporary files.
void build(const Sources& sources, const std::string& folder);

/// Writes the preprocessed source to `sources.output`; to standard output if it is empty. With
/// `dependencies` (-M, -MM) writes make rules instead.
void preprocess(const Sources& sources, const std::string& dependencies = "");

/// Writes an empty object, the result of device linking, which the simulated GPU does not need.
void write_empty_object(const std::string& output, const std::string& folder);

/// Returns true if build() linked the file.
bool is_built(const std::string& file);

/// Returns the path of the toolchain file by which CMake builds CUDA programs for the simulated
/// GPU.
std::string toolchain_file();

}  // namespace rung::emulate
