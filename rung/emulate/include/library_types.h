// SPDX-License-Identifier: Apache-2.0
// The types of data of the libraries.
#pragma once

#include "rung_cuda/data_types.h"
