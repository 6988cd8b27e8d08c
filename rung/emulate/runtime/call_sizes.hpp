// SPDX-License-Identifier: Apache-2.0
// Size arguments of cudaMalloc, cudaMemcpy and related calls in a source.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "rung/emulate/runtime/source_tree.hpp"
#include "rung/emulate/runtime/thread_values.hpp"

namespace rung::cuda {

/// A runtime call in a source, with its size argument.
struct SizedCall {
  const SourceTree* tree = nullptr;
  std::size_t name = 0;     // token of the function name
  std::string pointer;      // variable that the first argument names; "": none
  TokenRange size;          // size argument, in bytes
  TokenRange source, kind;  // source pointer and direction arguments of a copy
  [[nodiscard]] std::string text() const { return tree->text(size.begin, size.end); }
  [[nodiscard]] int line() const { return tree->line(name); }
  /// Returns a fix that multiplies the call's size by sizeof(type).
  [[nodiscard]] simt::record::Fix with_sizeof(const std::string& type) const;
};

/// Returns the allocation in this line, or one that ends in it; nullopt if there is none.
std::optional<SizedCall> allocation_at(const std::string& file, int line);
/// Returns the copies (cudaMemcpy, cudaMemcpyAsync) in a source whose size lacks a sizeof.
std::vector<SizedCall> copies_without_sizeof(const SourceTree& tree);

/// Returns true if a size appears to count elements: neither the size nor the variables from which
/// it is computed contain a sizeof or a number of bytes.
bool counts_elements(const SourceTree& tree, TokenRange size);
/// Returns true if `bytes` is `elements` multiplied by a sizeof.
bool is_product_of(const SourceTree& tree, TokenRange bytes, TokenRange elements);

}  // namespace rung::cuda
