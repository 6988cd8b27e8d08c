// SPDX-License-Identifier: Apache-2.0
// Forwarding header: rung_cuda/thrust_*.h has all of Thrust.
#pragma once

#include "rung_cuda/thrust_choices.h"
