// SPDX-License-Identifier: Apache-2.0
// Size arguments of cudaMalloc, cudaMemcpy and related calls in a source.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "rung/emulate/runtime/source_tree.hpp"
#include "rung/emulate/runtime/thread_values.hpp"

namespace rung::cuda {

/// Runtime call in a source, with its size argument.
struct SizedCall {
  const SourceTree* tree = nullptr;
  std::size_t name = 0;     // token of the function's name
  std::string pointer;      // variable named by the first argument; "": none
  TokenRange size;          // size argument, in bytes
  TokenRange source, kind;  // arguments of a copy
  [[nodiscard]] std::string text() const { return tree->text(size.begin, size.end); }
  [[nodiscard]] int line() const { return tree->line(name); }
  /// Returns a fix that multiplies the call's size by sizeof(type).
  [[nodiscard]] simt::record::Fix with_sizeof(const std::string& type) const;
};

/// Returns the allocation in this line, or an allocation that ends there; nullopt if there is none.
std::optional<SizedCall> allocation_at(const std::string& file, int line);
/// Returns copies (cudaMemcpy, cudaMemcpyAsync) of a source whose size lacks sizeof.
std::vector<SizedCall> copies_without_sizeof(const SourceTree& tree);

/// Returns true if a size counts elements as far as the source shows: neither the size nor the
/// variables from which it is computed contain a sizeof or a number of bytes.
bool counts_elements(const SourceTree& tree, TokenRange size);
/// Returns true if `bytes` is `elements` multiplied by a sizeof.
bool is_product_of(const SourceTree& tree, TokenRange bytes, TokenRange elements);

}  // namespace rung::cuda
