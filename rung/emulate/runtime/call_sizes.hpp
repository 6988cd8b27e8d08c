// SPDX-License-Identifier: Apache-2.0
// Size arguments of cudaMalloc, cudaMemcpy and related calls in a source.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "rung/emulate/runtime/source_tree.hpp"
#include "rung/emulate/runtime/thread_values.hpp"

namespace rung::cuda {

/// A runtime call in a source.
struct SizedCall {
  const SourceTree* tree = nullptr;
  std::size_t name = 0;     // its token
  std::string pointer;      // variable named by the first argument; "": none
  TokenRange size;          // the argument in bytes
  TokenRange source, kind;  // arguments of a copy
  [[nodiscard]] std::string text() const { return tree->text(size.begin, size.end); }
  [[nodiscard]] int line() const { return tree->line(name); }
  /// Returns a fix that multiplies the call's size by sizeof(type).
  [[nodiscard]] simt::record::Fix with_sizeof(const std::string& type) const;
};

/// Returns the allocation in this line, or one that ends there; nullopt if there is none.
std::optional<SizedCall> allocation_at(const std::string& file, int line);
/// Returns copies (cudaMemcpy, cudaMemcpyAsync) of a source whose size lacks sizeof.
std::vector<SizedCall> copies_without_sizeof(const SourceTree& tree);

/// Returns true if a size counts elements as far as the source shows: it contains neither sizeof
/// nor a number of bytes, nor do the variables it is computed from.
bool counts_elements(const SourceTree& tree, TokenRange size);
/// Returns true if `bytes` is `elements` times a sizeof.
bool is_product_of(const SourceTree& tree, TokenRange bytes, TokenRange elements);

}  // namespace rung::cuda
