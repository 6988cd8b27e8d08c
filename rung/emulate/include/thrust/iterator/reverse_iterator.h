// SPDX-License-Identifier: Apache-2.0
// A part of Thrust.
#pragma once

#include "rung_cuda/thrust_choices.h"
