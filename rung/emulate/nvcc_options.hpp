// SPDX-License-Identifier: Apache-2.0
// nvcc's options and their effects.
#pragma once

#include <string_view>

namespace rung::emulate {

enum class NvccEffect {
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
  relocatable_object,
  relocatable,
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
  NvccEffect effect;
};

/// Returns the option of this name, such as "-I" or "--include-path"; null if there is none.
const NvccOption* find_nvcc_option(std::string_view name);
/// Returns the option whose value follows in the same word: -Iinclude, -DN=1, -t4; null if there is
/// none.
const NvccOption* find_glued_nvcc_option(std::string_view word);

}  // namespace rung::emulate
