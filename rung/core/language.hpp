// SPDX-License-Identifier: Apache-2.0
// Refuses compilers that do not read C++20. Every public header includes this one before it needs
// anything of C++20.
#pragma once

#if __cplusplus < 202002L
#error "rung needs C++20 (-std=c++20)"
// A missing file ends the translation, which otherwise goes on and reports hundreds of errors.
#include "rung needs C++20"
#endif
