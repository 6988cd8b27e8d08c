// SPDX-License-Identifier: Apache-2.0
// Forwarding header: rung_cuda/thrust_*.h contain the implemented parts of Thrust.
#pragma once

#include "rung_cuda/thrust_choices.h"
