// SPDX-License-Identifier: Apache-2.0
// Profiler annotations. They have no effect.
#pragma once

#include "../nvToolsExt.h"
