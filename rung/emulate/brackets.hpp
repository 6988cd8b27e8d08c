// SPDX-License-Identifier: Apache-2.0
// Matches C++ brackets, including angle brackets, for the rewriters of launches and kernels.
#pragma once

#include "rung/emulate/token.hpp"

namespace rung::emulate {

inline bool opens(const Token& token) { return token.is("(") || token.is("[") || token.is("{"); }
inline bool closes(const Token& token) { return token.is(")") || token.is("]") || token.is("}"); }

/// Returns the token < of the template argument list that ends with the > or >> at `last`.
std::size_t opening_angle(const TokenStream& tokens, std::size_t last);

/// Returns true if the { at `brace` opens a function body or an initializer, not a namespace or a
/// class.
bool opens_body(const TokenStream& tokens, std::size_t brace);
/// Returns true if the { at `brace` opens a namespace or an extern "C" block.
bool opens_namespace(const TokenStream& tokens, std::size_t brace);

}  // namespace rung::emulate
