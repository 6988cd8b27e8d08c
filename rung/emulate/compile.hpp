// SPDX-License-Identifier: Apache-2.0
// From CUDA sources to a program for this machine.
#pragma once

#include <string>
#include <vector>

namespace rung::emulate {

struct Sources {
  std::vector<std::string> files;         // .cu, and .cpp, .c, .o, .a as they are
  std::vector<std::string> include;       // folders
  std::vector<std::string> definitions;   // NAME or NAME=VALUE
  std::vector<std::string> options;       // further ones for the compiler: -O3, -std=, -fopenmp
  std::vector<std::string> libraries;     // for the linker: -lz
  std::vector<std::string> dependencies;  // what the preprocessor is to write of headers: -MD -MF x
  std::string output;                     // of build(); "": as nvcc names it
  bool object_only = false;               // of build(): objects, nothing is linked
  bool shared = false;                    // of build(): a shared library
  int capability = 90;                    // 90 for 9.0: __CUDA_ARCH__
  bool watched = true;                    // accesses are to be counted or checked
  bool all_cuda = false;                  // whatever the files' names end with
  bool twice = false;                     // watched, and each function has a version without hooks
  bool stands_alone = false;              // objects carry their sources; set by build()
  bool host_plain = false;                // C++ sources get the user's options alone, as by nvcc
  bool verbose = false;                   // prints each command
};

/// Compiles and links into `folder`/program; its path. Throws Error(invalid_argument) when the
/// compiler has refused a file: it has said why.
std::string compile(const Sources& sources, const std::string& folder);

/// Compiles to objects, or links to a program, that stay: as nvcc does. Objects carry the user's
/// sources in a section of their own, for advice when the program runs. `folder` is for temporary
/// files.
void build(const Sources& sources, const std::string& folder);

/// Writes the preprocessed source to `sources.output`, or to standard output if that is empty.
/// With `dependencies` writes what a makefile needs instead (-M, -MM).
void preprocess(const Sources& sources, const std::string& dependencies = "");

/// Compiles no source: writes an empty object, which is what device linking yields here.
void write_empty_object(const std::string& output, const std::string& folder);

/// Returns true if build() linked the file.
bool is_built(const std::string& file);

/// Returns the toolchain file by which CMake builds CUDA programs for the simulated GPU.
std::string toolchain_file();

}  // namespace rung::emulate
