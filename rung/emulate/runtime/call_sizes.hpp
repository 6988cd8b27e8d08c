// SPDX-License-Identifier: Apache-2.0
// The sizes that a source passes to cudaMalloc, cudaMemcpy and the like.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "rung/emulate/runtime/source_tree.hpp"
#include "rung/emulate/runtime/thread_values.hpp"

namespace rung::cuda {

/// One call of the runtime in a source.
struct SizedCall {
  const SourceTree* tree = nullptr;
  std::size_t name = 0;     // its token
  std::string pointer;      // variable that the first argument names; "": none
  TokenRange size;          // argument that counts bytes
  TokenRange source, kind;  // arguments of a copy
  [[nodiscard]] std::string text() const { return tree->text(size.begin, size.end); }
  [[nodiscard]] int line() const { return tree->line(name); }
  /// Returns a fix that multiplies the call's size by sizeof(type).
  [[nodiscard]] simt::record::Fix with_sizeof(const std::string& type) const;
};

/// Returns the allocation that is called in this line, or that ends there; nullopt: none is seen.
std::optional<SizedCall> allocation_at(const std::string& file, int line);
/// Returns the copies (cudaMemcpy, cudaMemcpyAsync) of a source whose size lacks sizeof.
std::vector<SizedCall> copies_without_sizeof(const SourceTree& tree);

/// Returns true if a size counts elements, as far as the source tells: neither sizeof nor a number
/// of bytes has a part in it, nor in the variables that it is made of.
bool counts_elements(const SourceTree& tree, TokenRange size);
/// Returns true if `bytes` is `elements` times a sizeof.
bool is_product_of(const SourceTree& tree, TokenRange bytes, TokenRange elements);

}  // namespace rung::cuda
