// SPDX-License-Identifier: Apache-2.0
// Profiler annotations; without effect.
#pragma once

#include "../nvToolsExt.h"
