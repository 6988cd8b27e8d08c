// SPDX-License-Identifier: Apache-2.0
// Memory and primitive descriptors of oneDNN 2 or 3 for an operation of onednn.hpp.
#pragma once

#include "rung/peers/onednn.hpp"
#include "rung/peers/onednn_library.hpp"

namespace rung::onednn {

/// Memory descriptor of either version.
class Layout {
 public:
  Layout() = default;
  Layout(const Layout&) = delete;
  Layout& operator=(const Layout&) = delete;
  ~Layout() {
    if (made_ != nullptr) library().v3.layout_destroy(made_);
  }
  /// Describes a tensor; returns false for a type that oneDNN does not support. `any`: the library
  /// chooses the layout.
  bool make(const ConstTensorRef& tensor, bool any = false);
  /// Returns the descriptor, or null for an absent operand.
  [[nodiscard]] Description get() const {
    if (!known_) return nullptr;
    return made_ != nullptr ? made_ : static_cast<Description>(buffer_);
  }

 private:
  bool known_ = false;
  void* made_ = nullptr;
  alignas(16) std::byte buffer_[2048] = {};  // 696 bytes in 2.6
};

constexpr std::size_t max_operands = 8;

/// Descriptors of the operands of a call, indexed by role.
struct Layouts {
  Layout at[max_operands];
  Role roles[max_operands] = {};
  std::size_t count = 0;

  [[nodiscard]] bool has(Role role) const {
    for (std::size_t i = 0; i < count; ++i) {
      if (roles[i] == role) return true;
    }
    return false;
  }
  [[nodiscard]] Description operator[](Role role) const {
    for (std::size_t i = 0; i < count; ++i) {
      if (roles[i] == role) return at[i].get();
    }
    // A backward operation is described with its forward operation, whose tensors are taken to have
    // the layouts of their gradients.
    if (role == source) return (*this)[gradient_source];
    if (role == destination) return (*this)[gradient_destination];
    if (role == weights) return (*this)[gradient_weights];
    return nullptr;
  }
};

/// Returns a primitive descriptor, which the caller destroys; null on failure. A backward operation
/// needs the descriptor of its forward operation as a hint.
Handle describe(const Operation& operation, const Layouts& layouts, Handle hint);

}  // namespace rung::onednn
