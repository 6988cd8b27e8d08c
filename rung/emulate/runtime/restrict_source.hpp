// SPDX-License-Identifier: Apache-2.0
// Maps an access to the kernel parameter through which it is made, by the compiled source.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "rung/emulate/runtime/api.hpp"
#include "rung/emulate/runtime/source_tree.hpp"
#include "rung/emulate/token.hpp"
#include "rung/simt/record.hpp"

namespace rung::cuda {

/// Source as compiled by g++, with columns.
class CompiledSource {
 public:
  explicit CompiledSource(const std::string& text);

  /// Returns the `__restrict__` parameter of `kernel` (name without namespaces and template
  /// arguments) through which the code at this location reads or writes; "" if unknown.
  [[nodiscard]] std::string_view parameter_at(const simt::record::Source& place, bool writes,
                                              std::string_view kernel,
                                              const Names& restricted) const;

 private:
  struct Scope {
    std::size_t begin, end;  // body of the kernel
    const Names& restricted;
  };
  [[nodiscard]] std::size_t base_of_write(std::size_t token) const;
  [[nodiscard]] std::size_t base_of_read(std::size_t token, const Names& restricted) const;
  [[nodiscard]] bool writes_first(std::size_t open) const;
  [[nodiscard]] std::size_t only_access(std::size_t begin, std::size_t end,
                                        const Names& restricted) const;
  [[nodiscard]] bool is_operand_end(std::size_t token) const;
  [[nodiscard]] std::size_t base_before(std::size_t end, bool follows) const;
  [[nodiscard]] std::size_t base_behind(std::size_t begin) const;
  [[nodiscard]] std::string_view origin(std::size_t name, const Scope& scope, int depth) const;
  [[nodiscard]] std::size_t base_of_value(std::size_t begin) const;
  [[nodiscard]] bool is_swapped(std::size_t word) const;
  [[nodiscard]] std::size_t token_at(const simt::record::Source& place) const;

  struct File {
    std::string name;
    std::size_t begin;  // first token
  };
  struct Position {
    int line, column;
  };
  emulate::TokenStream tokens_;
  std::vector<File> files_;          // in token order; a file may occur repeatedly
  std::vector<Position> positions_;  // of all tokens
};

/// Returns the base addresses of registered memory to which several arguments of a launch point;
/// empty unless its kernel has several `__restrict__` parameters. `kernel`: null while it is
/// unknown.
std::vector<const void*> memory_of_several(const LaunchConfig& config, const char* kernel);
/// Returns the `__restrict__` parameter through which the kernel's code at this location reads or
/// writes.
simt::record::RestrictedParameter parameter_of(const LaunchConfig& config, const char* kernel,
                                               const simt::record::Source& place, bool writes);

}  // namespace rung::cuda
