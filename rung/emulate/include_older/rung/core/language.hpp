// SPDX-License-Identifier: Apache-2.0
// Replaces rung/core/language.hpp for programs compiled as C++17 or older: the adjacent files
// provide the C++20 features that rung's headers use.
#pragma once

// g++'s spelling of the C++20 keyword in earlier standards.
#define constinit __constinit
