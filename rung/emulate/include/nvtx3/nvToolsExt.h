// SPDX-License-Identifier: Apache-2.0
// Marks for a profiler, of which there is none.
#pragma once

#include "../nvToolsExt.h"
