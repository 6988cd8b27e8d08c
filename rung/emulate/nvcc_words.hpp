// SPDX-License-Identifier: Apache-2.0
// nvcc's command line.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "rung/emulate/compile.hpp"

namespace rung::emulate {

/// What a command line of nvcc asks for.
struct NvccCall {
  enum class Product { program, object, preprocessed, dependencies, device_link, archive };
  Product product = Product::program;
  Sources sources;
  std::string dependencies_option;   // -M or -MM where that is the product
  bool writes_dependencies = false;  // -MD, -MMD: beside the product
  std::string dependencies_file, output_folder, keep_folder;
  bool keep = false, dry_run = false, version = false, help = false;
};

/// What is known of a name.
struct NvccOptionKind {
  bool known = false;        // nvcc has such an option
  bool takes_value = false;  // behind = or in the next word
  bool has_effect = false;   // on what `rung nvcc` does
};
NvccOptionKind nvcc_option_kind(std::string_view name);

/// Reads nvcc's words. Throws Error(invalid_argument) for an unknown option, Error(not_available)
/// for what the simulated GPU cannot give: PTX and machine code.
NvccCall read_nvcc_words(const std::vector<std::string>& words);

}  // namespace rung::emulate
