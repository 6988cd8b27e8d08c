// SPDX-License-Identifier: Apache-2.0
// An iterator of Thrust.
#pragma once

#include "rung_cuda/thrust_choices.h"
