// SPDX-License-Identifier: Apache-2.0
// Stands before the header of this name where a program is compiled as C++17 or older: the files
// beside it give our headers what they need of C++20.
#pragma once

// g++'s own spelling of C++20's keyword.
#define constinit __constinit
