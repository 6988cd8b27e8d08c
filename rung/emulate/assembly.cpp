// SPDX-License-Identifier: Apache-2.0
// Inline PTX.
#include "rung/emulate/rewrite.hpp"

namespace rung::emulate {

void rewrite_assembly(TokenStream&) {}

}  // namespace rung::emulate
