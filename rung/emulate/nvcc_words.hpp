// SPDX-License-Identifier: Apache-2.0
// Parser of nvcc's command line.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "rung/emulate/compile.hpp"

namespace rung::emulate {

/// A parsed command line of nvcc.
struct NvccCall {
  enum class Product { program, object, preprocessed, dependencies, device_link, archive };
  Product product = Product::program;
  Sources sources;
  std::string dependencies_option;   // -M or -MM, if dependency rules are the output; else ""
  bool writes_dependencies = false;  // -MD or -MMD: dependency rules in addition to the output
  std::string dependencies_file, output_folder, keep_folder;
  bool keep = false, dry_run = false, version = false, help = false;
};

/// Properties of an option name.
struct NvccOptionKind {
  bool known = false;        // nvcc has an option of this name
  bool takes_value = false;  // the value follows = or is the next word
  bool has_effect = false;   // has an effect in `rung nvcc`
};
NvccOptionKind nvcc_option_kind(std::string_view name);

/// Returns the macro that --default-stream defines for this value; "" if none. Throws
/// Error(invalid_argument) for any other value than nvcc's.
std::string macro_of_default_stream(const std::string& value);

/// Parses nvcc's command line. Throws Error(invalid_argument) for an unknown option, and
/// Error(not_available) for outputs that the simulated GPU cannot produce (PTX, machine code).
NvccCall read_nvcc_words(const std::vector<std::string>& words);

}  // namespace rung::emulate
