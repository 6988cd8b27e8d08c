// SPDX-License-Identifier: Apache-2.0
// Rejects compilers without C++20. Every public header includes this one before it uses any C++20
// feature.
#pragma once

#if __cplusplus < 202002L
#error "rung needs C++20 (-std=c++20)"
// A missing include ends the compilation; after #error it would continue and report hundreds of
// errors.
#include "rung needs C++20"
#endif
