// SPDX-License-Identifier: Apache-2.0
// Replaces the header of this name for programs compiled as C++17 or older: the adjacent files
// provide the C++20 features that our headers use.
#pragma once

// g++'s spelling of the C++20 keyword.
#define constinit __constinit
