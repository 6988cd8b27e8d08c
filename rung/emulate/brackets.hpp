// SPDX-License-Identifier: Apache-2.0
// Brackets of C++, angles included, as the rewriter of launches and that of kernels look for them.
#pragma once

#include "rung/emulate/token.hpp"

namespace rung::emulate {

inline bool opens(const Token& token) { return token.is("(") || token.is("[") || token.is("{"); }
inline bool closes(const Token& token) { return token.is(")") || token.is("]") || token.is("}"); }

/// The < that belongs to the template argument list that ends with the > or >> at `last`.
std::size_t opening_angle(const TokenStream& tokens, std::size_t last);

/// Returns whether the bracket { at `brace` is neither a namespace's nor a class's: it holds code
/// or data.
bool opens_body(const TokenStream& tokens, std::size_t brace);
/// Returns whether it is that of a namespace, or of extern "C".
bool opens_namespace(const TokenStream& tokens, std::size_t brace);

}  // namespace rung::emulate
